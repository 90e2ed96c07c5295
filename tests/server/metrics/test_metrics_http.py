"""The HTTP listener, on books that answer or are busy."""

import contextlib
import gzip
import http.client
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import structlog
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from allocator import policies
from allocator.core import AddAgent, AgentInfo, Allocator, Define, Kind, Options
from allocator.server.config import Config, Flag, load
from allocator.server.engine import monitor
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.following.books import FollowedBooks
from allocator.server.metrics import scraping, state_families
from allocator.server.metrics.family import Selection
from allocator.server.metrics.scraping import MetricsServer
from allocator.server.reports import report
from allocator.server.reports.report import Report
from allocator.server.system.http_socket import http_socket
from allocator.server.web import http as listener
from allocator.server.web.http import Check, nothing_wrong, plain_text
from tests.server.grpc.test_admin import CLUSTER
from tests.server.in_process import books_of, kept, running, tell_books
from tests.server.metrics.scraping import samples, value
from tests.server.sidecar_process import await_true

CONFIG = load(None, {}, [Flag("--set", "http.port", "0")])


def start_http(
    config: Config,
    books: FollowedBooks,
    pages: Iterable[BaseRoute] = (),
    health: Check = nothing_wrong,
    readiness: Check = nothing_wrong,
) -> MetricsServer:
    listener = http_socket(config.http.host, config.http.port)
    return MetricsServer(config, listener, books, (), pages, health=health, readiness=readiness)


@pytest.fixture
def loop() -> Iterator[FollowedBooks]:
    with kept(books_of()) as books:
        books.ask(lambda: report.read(books.allocator)).result(200)  # load compiled loops
        yield books


@pytest.fixture
def server(loop) -> Iterator[MetricsServer]:
    running = start_http(CONFIG, loop)
    yield running
    running.close()


@pytest.fixture
def impatient(monkeypatch):
    """Shorter timeouts than usual, for the same behaviour."""
    monkeypatch.setattr(scraping, "ANSWER_S", 0.05)


class Busy:
    """Keep the thread of books or of a core busy for the duration of the context."""

    def __init__(self, owner: FollowedBooks | CoreLoop) -> None:
        self.have = owner.ask if isinstance(owner, FollowedBooks) else owner.call
        self.done = threading.Event()

    def __enter__(self) -> None:
        began = threading.Event()

        def work() -> bool:
            began.set()
            return self.done.wait()

        self.work = self.have(work)
        assert began.wait(60)

    def __exit__(self, *_error: object) -> None:
        self.done.set()
        assert self.work.result(60)


def get(server: MetricsServer, path: str, method: str = "GET", **headers: str):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode("latin-1"), response.headers
    finally:
        connection.close()


def test_metrics_are_text_that_parses(server):
    status, text, headers = get(server, "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=")
    found = samples(text)
    assert value(found, "build_info") == 1
    assert value(found, "in_session") == 0
    assert value(found, "process_resident_memory_bytes") > 2**20


def test_the_form_is_what_the_scraper_accepts(server):
    wanted = "application/openmetrics-text;version=1.0.0"
    _, text, headers = get(server, "/metrics", Accept=wanted)
    assert headers["Content-Type"].startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")
    _, packed, headers = get(server, "/metrics?name=x", **{"Accept-Encoding": "gzip"})
    assert headers["Content-Encoding"] == "gzip"
    assert b"mesos_allocator_build_info" in gzip.decompress(packed.encode("latin-1"))


def test_other_pages_and_methods(server):
    assert get(server, "/nothing")[0] == 404
    assert get(server, "/metrics", "POST")[0] == 405
    status, text, headers = get(server, "/metrics", "HEAD")
    assert (status, text) == (200, "")
    assert int(headers["Content-Length"]) > 1000


def test_probes_say_what_is_wrong(loop):
    problems = {"health": "", "readiness": "starting"}
    server = start_http(
        CONFIG,
        loop,
        health=lambda: problems["health"],
        readiness=lambda: problems["readiness"],
    )
    try:
        assert get(server, "/readyz")[:2] == (503, "starting\n")
        assert get(server, "/healthz")[:2] == (200, "ok\n")
        problems.update(health="hung", readiness="")
        assert get(server, "/readyz")[:2] == (200, "ok\n")
        assert get(server, "/healthz")[:2] == (503, "hung\n")
    finally:
        server.close()


def test_ready_only_between_start_and_drain():
    with running(CoreLoop(Config(), build_policy=policies.build)) as core:
        problems: list[str] = []
        looked = monitor.Monitor(core, lambda: "".join(problems))
        assert looked.readiness() == "starting"
        looked.serving()
        assert looked.readiness() == ""
        problems.append("no room")
        assert looked.readiness() == "no room"
        looked.draining()
        assert looked.readiness() == "shutting down"
        assert looked.health() == ""


def test_a_busy_core_is_not_ready_and_in_the_end_not_alive(monkeypatch):
    monkeypatch.setattr(monitor, "BUSY_S", 0.05)
    monkeypatch.setattr(monitor, "SILENCE_S", 0.2)
    with running(CoreLoop(Config(), build_policy=policies.build)) as core:
        looked = monitor.Monitor(core, lambda: "")
        looked.serving()
        with Busy(core):
            assert looked.health() == ""
            time.sleep(0.1)
            assert looked.readiness() == "the core is busy"
            time.sleep(0.25)
            assert looked.health().startswith("the core has not answered for ")
        await_true(lambda: not looked.health() and not looked.readiness())


def test_a_busy_core_is_shown_as_it_was(server, loop, impatient):
    tell_books(
        loop,
        Options(),
        Define({0: Kind("cpus")}, {}),
        AddAgent(1, AgentInfo("a"), {0: 4000}),
    )
    fresh = samples(get(server, "/metrics")[1])
    assert value(fresh, "capacity", resource="cpus") == 4
    fresh_age_s = value(fresh, "report_age_seconds")
    with Busy(loop):
        time.sleep(0.3)
        for _ in range(5):
            stale = samples(get(server, "/metrics")[1])
            assert value(stale, "capacity", resource="cpus") == 4
            assert value(stale, "report_age_seconds") > fresh_age_s


def test_many_scrapes_query_busy_books_once(loop, impatient, monkeypatch):
    asked, read = [], report.read

    def counted(allocator: Allocator) -> Report:
        asked.append(1)
        return read(allocator)

    monkeypatch.setattr(report, "read", counted)
    scrapes = scraping.Scrapes(loop)
    with Busy(loop):
        for _ in range(5):
            assert scrapes.latest() is None
    loop.ask(lambda: None).result(60)  # requests that waited are answered first
    assert len(asked) == 1
    assert scrapes.latest() is not None
    assert len(asked) == 2


def test_before_the_first_answer_there_are_still_metrics(loop, impatient):
    with Busy(loop):
        server = start_http(CONFIG, loop)
        try:
            found = samples(get(server, "/metrics")[1])
        finally:
            server.close()
    assert value(found, "build_info") == 1
    assert not [name for name, _ in found if name == "in_session"]


CROWD = 100


@pytest.mark.parametrize("said", [b"", b"GET /metrics HT", b"GET /healthz HTTP/1.1\r\n"])
def test_idle_connections_do_not_block_others(server, said):
    crowd = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(CROWD)]
    try:
        for member in crowd:
            with contextlib.suppress(OSError):  # the oldest are disconnected already
                member.sendall(said)
        assert get(server, "/healthz")[0] == 200
        assert get(server, "/metrics")[0] == 200
        assert len(gone(crowd)) >= CROWD - listener.SILENT_MAX
    finally:
        for member in crowd:
            member.close()


def gone(crowd: list[socket.socket]) -> list[socket.socket]:
    """Clients whose connections have ended."""
    found = []
    for member in crowd:
        member.settimeout(0.01)
        with contextlib.suppress(TimeoutError):
            with contextlib.suppress(ConnectionError):
                member.recv(1)
            found.append(member)
    return found


BIG = 50_000_000


@contextlib.contextmanager
def not_read(loop: FollowedBooks, readers: int) -> Iterator[tuple[MetricsServer, list]]:
    """Yield a listener, and clients that requested a large answer and do not read it."""
    big = Route("/big", lambda _request: plain_text(200, "x" * BIG))
    server = start_http(CONFIG, loop, pages=[big])
    crowd = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(readers)]
    try:
        for member in crowd:
            member.sendall(b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert member.recv(15) == b"HTTP/1.1 200 OK"
        yield server, crowd
    finally:
        for member in crowd:
            member.close()
        server.close()


def test_clients_that_do_not_read_leave_room_for_probes_and_scrapes(loop, monkeypatch):
    """Each such answer waits for its reader until the timeout."""
    monkeypatch.setattr(listener, "OTHERS_MAX", 2)
    monkeypatch.setattr(listener, "REQUEST_TIMEOUT_S", 600.0)  # a busy machine may be slow
    with not_read(loop, 2) as (server, crowd):
        status, _, headers = get(server, "/big")
        assert (status, headers["Retry-After"]) == (503, "1")
        assert get(server, "/healthz")[0] == 200
        assert get(server, "/metrics")[0] == 200
        for member in crowd:
            member.close()
        while get(server, "/big")[0] != 200:
            time.sleep(0.01)


def test_a_scrape_displaces_a_client_that_does_not_read(loop, monkeypatch):
    """The oldest one is disconnected; scrapes do not have to wait for its timeout."""
    monkeypatch.setattr(listener, "SCRAPES_MAX", 2)
    monkeypatch.setattr(listener, "SCRAPED", "/big")
    monkeypatch.setattr(listener, "REQUEST_TIMEOUT_S", 600.0)  # it is not what ends the connection
    with not_read(loop, 2) as (server, crowd):
        assert get(server, "/big")[0] == 200
        assert cut_off(crowd[0])


def cut_off(member: socket.socket) -> bool:
    """Whether a connection ends before all of a large answer has arrived."""
    member.settimeout(15)
    read = 0
    with contextlib.suppress(ConnectionError):
        while piece := member.recv(1 << 20):
            read += len(piece)
    return read < BIG


def test_silence_is_cut_off(server, monkeypatch):
    monkeypatch.setattr(listener, "REQUEST_TIMEOUT_S", 0.5)
    with socket.create_connection(("127.0.0.1", server.port)) as silent:
        silent.sendall(b"GET /metrics HT")
        silent.settimeout(30)
        with contextlib.suppress(ConnectionError):
            assert silent.recv(1) == b""


def test_a_server_that_stops_answers_slow_requests_and_logs_no_traceback(loop, caplog):
    begun, go_on = threading.Event(), threading.Event()

    def slow(_request: object) -> Response:
        begun.set()
        assert go_on.wait(60)
        return plain_text(200, "too late")

    server = start_http(CONFIG, loop, pages=[Route("/slow", slow)])
    with ThreadPoolExecutor() as pool:
        try:
            asked = pool.submit(get, server, "/slow")
            assert begun.wait(60)
            server.close()
            status, text, _ = asked.result(60)
            assert (status, text) == (503, "the process is stopping; ask again in a moment\n")
        finally:
            go_on.set()
    assert not [each for each in caplog.records if each.exc_info]


def test_a_slow_answer_is_a_503_and_no_cut_connection(loop, monkeypatch):
    """The work continues, and keeps its place: starting more would delay all others."""
    monkeypatch.setattr(listener, "ANSWER_TIMEOUT_S", 0.2)
    monkeypatch.setattr(listener, "OTHERS_MAX", 1)
    go_on = threading.Event()

    def slow(_request: object) -> Response:
        assert go_on.wait(60)
        raise ZeroDivisionError

    quick = Route("/quick", lambda _request: plain_text(200, "ok"))
    server = start_http(CONFIG, loop, pages=[Route("/slow", slow), quick])
    try:
        with structlog.testing.capture_logs() as logged:
            status, text, headers = get(server, "/slow")
            assert (status, headers["Retry-After"]) == (503, "1")
            assert text == "no answer within 0.2 s; ask again in a moment\n"
            # A busy machine may take longer for the following requests.
            monkeypatch.setattr(listener, "ANSWER_TIMEOUT_S", 60.0)
            status, text, _ = get(server, "/quick")
            assert (status, text[:17]) == (503, "too many requests")
            assert get(server, "/healthz")[0] == 200
            go_on.set()
            while get(server, "/quick")[0] != 200:
                time.sleep(0.01)
        assert "an answer that came too late failed" in [each["event"] for each in logged]
    finally:
        go_on.set()
        server.close()


def test_a_port_that_is_taken_is_named(server, loop):
    config = load(None, {}, [Flag("--set", "http.port", str(server.port))])
    with pytest.raises(OSError, match=f"127.0.0.1:{server.port}"):
        start_http(config, loop)


def test_an_ipv6_address_can_be_listened_on(loop):
    config = load(None, {}, [Flag("", "http.port", "0"), Flag("", "http.host", "::1")])
    try:
        server = start_http(config, loop)
    except OSError:
        pytest.skip("this machine has no IPv6")
    try:
        with socket.create_connection(("::1", server.port)) as peer:
            peer.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            assert b" 200 " in peer.recv(1024)
    finally:
        server.close()


def test_close_frees_the_port(loop):
    server = start_http(CONFIG, loop)
    server.close()
    with pytest.raises(ConnectionRefusedError):
        get(server, "/healthz")


def asked_as(server: MetricsServer, host: str | None, path: str) -> int:
    """Send a request with this host name; without one, as HTTP/1.0 allows."""
    head = f"GET {path} HTTP/1.{0 if host is None else 1}\r\n"
    head += "" if host is None else f"Host: {host}\r\n"
    with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
        connection.sendall(f"{head}\r\n".encode())
        return int(connection.makefile("rb").readline().split()[1])


PATHS = ("/metrics", "/healthz", "/", "/none")
OWN = socket.gethostname()


@pytest.mark.parametrize(
    "host",
    [
        None,
        "10.1.2.3:5057",
        "10.1.2.3",
        "[2001:db8::7]:5057",
        "localhost:5057",
        "sidecar-1:5057",
        OWN,
        f"{OWN.upper()}.:5057",
        "sidecar.example.org:5057",
        "Sidecar.Example.Org.",
    ],
)
def test_a_scraper_that_uses_our_address_or_name_is_served(loop, host):
    http = CONFIG.http.model_copy(update={"names": ("sidecar.example.org",)})
    running = start_http(CONFIG.model_copy(update={"http": http}), loop)
    try:
        assert asked_as(running, host, "/metrics") == 200
        assert asked_as(running, host, "/healthz") == 200
    finally:
        running.close()


@pytest.mark.parametrize(
    "host",
    [
        "rebound.elsewhere.org:5057",
        "rebound.elsewhere.org",
        f"{OWN}.elsewhere.org",
        "127.0.0.1.elsewhere.org:5057",
        "10.1.2.3.:5057x",
        "localhost.elsewhere.org",
        "example.org:5057",
    ],
)
def test_a_page_of_another_origin_gets_no_answer(loop, server, host):
    """A script there could read names of frameworks, roles and agents."""
    assert {asked_as(server, host, path) for path in PATHS} == {403}
    http = CONFIG.http.model_copy(update={"names": ("*",)})
    running = start_http(CONFIG.model_copy(update={"http": http}), loop)
    try:
        assert asked_as(running, host, "/metrics") == 200
    finally:
        running.close()


def test_a_part_that_fails_takes_away_itself_alone(loop, monkeypatch):
    """The rest of the scrape and the session are not affected."""
    tell_books(loop, *CLUSTER)
    given = state_families._roles

    def failing(report: Report, limit: int) -> Selection:
        return replace(given(report, limit), rest=np.array([10**6]))  # there is no such row

    running = start_http(CONFIG, loop)
    try:
        whole = samples(get(running, "/metrics")[1])
        monkeypatch.setattr(state_families, "_roles", failing)
        with structlog.testing.capture_logs() as logged:
            for _ in range(3):
                status, text, _ = get(running, "/metrics")
                assert status == 200
        found = samples(text)
        gone = {name for name, _ in whole} - {name for name, _ in found}
        assert gone
        assert all("role" in name for name in gone)
        assert "role_weight" in gone, "what was made before the fault"
        assert value(found, "scrape_errors_total", part="roles") == 3
        assert value(whole, "scrape_errors_total", part="roles") == 0
        told = [each for each in logged if each["log_level"] == "error"]
        assert [each["part"] for each in told] == ["roles"]
        monkeypatch.undo()
        after = samples(get(running, "/metrics")[1])
        assert {name for name, _ in after} == {name for name, _ in whole}
        # If the state cannot be copied, the previous values are shown.
        monkeypatch.setattr(report, "read", failing_now)
        older = samples(get(running, "/metrics")[1])
        assert {name for name, _ in older} == {name for name, _ in whole}
    finally:
        running.close()


def failing_now(*_given: object) -> None:
    raise ZeroDivisionError
