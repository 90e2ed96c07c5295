"""The status page as text: what it shows, to which clients, and what it never contains."""

import base64
import hashlib
import http.client
import itertools
import re
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from allocator.core import (
    AddAgent,
    AddAgents,
    AddFramework,
    AgentInfo,
    Define,
    FrameworkInfo,
    Kind,
    Options,
    SetDrain,
    SetPaused,
)
from allocator.rule_kinds import KINDS
from allocator.server.config import Config, Flag, Loaded, load
from allocator.server.following.books import FollowedBooks
from allocator.server.following.settings import FollowedSettings
from allocator.server.following.usage import UsageKeeper
from allocator.server.metrics.scraping import MetricsServer
from allocator.server.reports import agent_rows
from allocator.server.reports.agent_rows import AgentRows
from allocator.server.views.views import Views
from allocator.server.web import http as listener
from allocator.server.web.page import agent_map, look, page_routes, routes, tables
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2
from tests.integration.web.page_cluster import HOSTILE, TURNED, state
from tests.server.in_process import books_of, kept, tell_books
from tests.server.metrics.test_metrics_http import Busy, start_http

CONFIG = load(None, {}, [Flag("--set", "http.port", "0")])

PAGES = ("/", "/shares", "/shares?fair=1", "/agents", "/explain?kind=framework&name=id-0003")


HEADINGS = {f"h{level}" for level in range(1, 7)}


@pytest.fixture(autouse=True)
def always_fresh(monkeypatch):
    monkeypatch.setattr(look, "FRESH_S", 0.0)
    monkeypatch.setattr(routes, "FRESH_S", 0.0)


@pytest.fixture
def loop() -> Iterator[FollowedBooks]:
    with kept(books_of()) as books:
        books.ask(lambda: books.allocator.allocate(1)).result(200)  # load compiled loops
        yield books


@pytest.fixture
def views(loop) -> Views:
    settings = FollowedSettings(loop, Loaded(Config(), {}))
    return Views(loop, settings, UsageKeeper(loop, lambda: ""))


@pytest.fixture
def server(loop, views) -> Iterator[MetricsServer]:
    running = start_http(CONFIG, loop, pages=page_routes(views, "local"))
    yield running
    running.close()


def ask(server: MetricsServer, path: str, method: str = "GET"):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read().decode(), response.headers
    finally:
        connection.close()


def page(server: MetricsServer, path: str) -> str:
    status, text, _ = ask(server, path)
    assert status == 200, text
    return text


class Elements(HTMLParser):
    """Every element with its attributes, and all text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("path", PAGES)
def test_nothing_is_run_and_nothing_comes_from_elsewhere(loop, server, path):
    tell_books(loop, Options(), *state(60))
    elements = Elements(page(server, path)).found
    assert not {tag for tag, _ in elements} & {"script", "iframe", "object", "embed", "base"}
    for tag, attributes in elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
        for name in ("href", "src", "action", "formaction"):
            address = attributes.get(name)
            if address is not None:
                assert re.match(r"/(?!/)|\?|#|data:,$", address), (tag, address)


def test_any_name_of_a_framework_is_text(loop, server):
    tell_books(loop, Options(), *state(60))
    text = page(server, "/")
    assert HOSTILE not in text
    shown = "".join(Elements(text).text)
    assert HOSTILE in shown
    assert TURNED not in shown
    assert TURNED.replace("\N{RIGHT-TO-LEFT OVERRIDE}", "\N{REPLACEMENT CHARACTER}") in shown


def test_headers_forbid_all_but_the_page_itself(loop, server):
    for path in PAGES[:-1]:
        _, text, headers = ask(server, path)
        style = text[text.index("<style>") + 7 : text.index("</style>")]
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        allowed = headers["Content-Security-Policy"]
        assert allowed.startswith(f"default-src 'none'; style-src 'sha256-{digest}';")
        assert "frame-ancestors 'none'" in allowed
        assert "unsafe" not in allowed
    for path in ("/metrics", "/", "/nothing"):
        headers = ask(server, path)[2]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert "Server" not in headers


def test_the_page_is_read_only(server):
    for path in ("/", "/shares", "/agents", "/explain", "/metrics", "/healthz", "/readyz"):
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            assert ask(server, path, method)[0] == 405, (method, path)


def test_shares_and_states_stand_in_it(loop, server):
    tell_books(loop, Options(), *state(60))
    shown = " ".join("".join(Elements(page(server, "/")).text).split())
    assert "No warnings." not in shown
    assert "no session no master has a session" in shown
    assert "58 of 60 agents" in shown
    assert "8 frameworks" in shown
    for role in ("eng", "ads", "search", "index", "ops", "science"):
        assert f" {role} " in shown
    inside = " ".join("".join(Elements(page(server, "/shares?role=eng/search")).text).split())
    assert " index " in inside
    assert " ops " not in inside
    assert "Root mean square" in page(server, "/shares?fair=1&sort=name")


def test_the_map_shows_a_drained_agent_as_not_offered(loop, server):
    tell_books(loop, Options(), *state(3))
    rows = loop.ask(lambda: agent_rows.take(loop.allocator)).result(60)
    tell_books(loop, SetDrain(rows.name[0]))
    drained = loop.ask(lambda: agent_rows.take(loop.allocator)).result(60)
    assert (rows.on[0], drained.on[0]) == (True, False)
    assert drained.on[1:].tolist() == rows.on[1:].tolist()


def test_errors_are_reported(loop, server):
    tell_books(loop, Options(), *state(3), SetPaused(True))
    shown = "".join(Elements(page(server, "/")).text)
    assert "the master makes no offers yet" in shown


def test_an_explanation_is_found_by_name_and_by_id(loop, server):
    tell_books(loop, Options(), *state(60))
    for question in ("kind=framework&name=spark-pi", "name=id-0001"):
        shown = "".join(Elements(page(server, f"/explain?{question}")).text)
        assert "spark-pi id-0001, in the role" in shown
    assert "is not offered" in page(server, "/explain?kind=agent&name=agent-29")
    assert "frameworks:" in page(server, "/explain?kind=role&name=eng")
    assert ask(server, "/explain?kind=role&name=")[0] == 303


ODD = (
    "ends with a line separator\u2028",
    "\u2028begins\u00a0with one ",
    " blanks ",
    "a/b//c/",
    "100%25 & more=1;x+y#z?q",
    "quotes ' \" ` <b>",
    "escape \x1b[2J bell \x07",
    "turned \u202e round, tab\t, line\n",
    "\N{PILE OF POO} \u0130",
)


ROLES = tuple(f"r{number}{name.replace('/', '|')}" for number, name in enumerate(ODD))


def links_to(server: MetricsServer, path: str, begins: str) -> list[str]:
    found = (attributes.get("href") for _, attributes in Elements(page(server, path)).found)
    return [each for each in found if each and each.startswith(begins)]


def test_links_lead_to_what_has_the_name(loop, server):
    tell_books(
        loop,
        Options(),
        Define({0: Kind("cpus")}, {1 + each: role for each, role in enumerate(ROLES)}),
        *(AddAgent(1 + n, AgentInfo(f"a{n}", hostname=name), {0: 1}) for n, name in enumerate(ODD)),
        *(
            AddFramework(1 + number, FrameworkInfo(name, name=name), (1 + number,))
            for number, name in enumerate(ODD)
        ),
    )
    links = links_to(server, "/?refresh=0", "/explain?kind=")
    links += links_to(server, "/?refresh=0", "/shares?role=")
    assert len(links) >= 3 * len(ODD)
    asked = {kind: set[str]() for kind in ("framework", "agent", "role")}
    for link in links:
        query = parse_qs(urlsplit(link).query, strict_parsing=True)
        name, kind = query.get("name", query.get("role", []))[0], query.get("kind", ["role"])[0]
        asked[kind].add(name)
        assert ask(server, link)[0] == 200, link
    assert asked["framework"] >= set(ODD)
    assert asked["agent"] >= set(ODD)
    assert asked["role"] >= set(ROLES)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text())
def test_any_name_survives_an_address(name):
    link = str(tables.url(name))
    assert link.isascii()
    assert not set(link) & set("\"'<>&=?#/+ \n")
    assert parse_qs(f"name={link}", keep_blank_values=True) == {"name": [name]}


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/explain?kind=framework&name=spark-py", 404, "there is no such framework; no master"),
        ("/explain?kind=planet&name=mars", 400, "must be one of framework, role, agent"),
        ("/shares?role=enk", 400, "role = &#39;enk&#39;: there is no such role"),
        ("/shares?sort=size", 400, "must be one of waiting, share, name"),
        ("/?refresh=-1", 400, "must be a number from 0 to 3600"),
        ("/?refresh=99999999999999999999", 400, "must be a number from 0 to 3600"),
        ("/?resource=gpus", 400, "there is no such resource; one of cpus, mem"),
        ("/agents?first=61", 400, "must be a number from 0 to 60"),
        ("/agents?first=%F0%9F%98%80", 400, "must be a number"),
        ("/explain?kind=framework&name=<script>", 404, "there is no such framework"),
    ],
)
def test_a_wrong_question_is_answered_with_what_would_be_right(loop, server, path, status, text):
    tell_books(loop, Options(), *state(60))
    got, answer, _ = ask(server, path.replace("<", "%3C").replace(">", "%3E"))
    assert got == status
    assert text in answer
    assert "<script" not in answer


def request_from(host: str | None) -> Request:
    headers = [(b"host", b"localhost:5057")]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": headers, "query_string": b""}
    return Request({**scope, "client": host and (host, 4711)})


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:5057", 200),
        ("localhost", 200),
        ("127.0.0.1:8080", 200),
        ("[::1]:5057", 200),
        ("[::1]", 200),
        ("rebound.elsewhere.org:5057", 403),
        ("127.0.0.1.elsewhere.org", 403),
        ("10.0.0.7:5057", 403),
        ("", 403),
    ],
)
def test_a_page_of_another_origin_cannot_read_it(loop, views, host, status):
    """A foreign name may resolve to this address; the browser sends that name as the host."""
    server = start_http(CONFIG, loop, pages=page_routes(views, "local"))
    try:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.putrequest("GET", "/", skip_host=True)
        connection.putheader("Host", host)
        connection.endheaders()
        assert connection.getresponse().status == status
        connection.close()
    finally:
        server.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
def test_the_page_is_shown_to_this_machine(views, host):
    pages = routes.Pages(views, local_only=True)
    assert pages.answer(pages.status, request_from(host)).status_code == 200


@pytest.mark.parametrize("host", ["10.0.0.7", "::ffff:10.0.0.7", "fe80::1%eth0", None])
def test_other_machines_need_permission(views, host):
    pages = routes.Pages(views, local_only=True)
    refused = pages.answer(pages.status, request_from(host))
    assert refused.status_code == 403
    assert b'http.page = "all"' in refused.body
    opened = routes.Pages(views, local_only=False)
    assert opened.answer(opened.status, request_from(host)).status_code == 200


def test_the_page_can_be_turned_off(loop, views):
    server = start_http(CONFIG, loop, pages=page_routes(views, "off"))
    try:
        assert ask(server, "/")[1].startswith("/metrics ")
        assert ask(server, "/shares")[0] == 404
        assert ask(server, "/healthz")[0] == 200
    finally:
        server.close()


def test_a_busy_core_is_shown_as_it_was(loop, server, monkeypatch):
    monkeypatch.setattr(look, "ANSWER_S", 0.05)
    monkeypatch.setattr(routes, "QUESTION_S", 0.05)
    tell_books(loop, Options(), *state(60))
    with Busy(loop):
        status, text, _ = ask(server, "/")
        assert status == 503
        assert "The observer is busy" in text
    before = page(server, "/?refresh=0")
    with Busy(loop):
        assert page(server, "/?refresh=0") == before
        status, text, _ = ask(server, "/explain?kind=role&name=eng")
        assert status == 503


def test_pages_leave_room_for_probes(views):
    assert routes.PAGES_MAX < listener.OTHERS_MAX / 2
    pages = routes.Pages(views, local_only=True)
    for _ in range(routes.PAGES_MAX):
        assert pages._places.acquire(blocking=False)
    refused = pages.answer(pages.status, request_from("127.0.0.1"))
    assert refused.status_code == 503
    assert refused.headers["Retry-After"] == "1"
    pages._places.release()
    assert pages.answer(pages.status, request_from("127.0.0.1")).status_code == 200


def test_a_look_is_taken_once_for_all_who_ask_at_the_same_time(views):
    counted = itertools.count(1)
    latest = look.Latest(lambda: next(counted), 60.0)
    assert [latest.get() for _ in range(5)] == [1] * 5


def share(role: str, part: float = 0.0, waited_cycles: int = 0) -> pb.Share:
    return pb.Share(role=role, share=part, weighted_share=part, waited_cycles=waited_cycles)


def test_a_role_with_any_name_is_below_its_parent():
    paths = ["a", "a-b", "a/c", "a/c/d", "b"]
    found = tables.tree([share(path) for path in paths])
    assert [each.role for each in found.rows] == ["a", "a/c", "a/c/d", "a-b", "b"]


def test_roles_are_left_out_from_the_deepest_level_on():
    many = [share(f"top{n}") for n in range(10)] + [share(f"top{n}/x") for n in range(10)]
    found = tables.tree(many, most=15)
    assert [each.role for each in found.rows] == [f"top{n}" for n in range(10)]
    assert found.more == 10
    largest = tables.tree([share(f"r{n}", n / 100) for n in range(20)], most=3)
    assert [each.role for each in largest.rows] == ["r17", "r18", "r19"]
    assert largest.more == 17


def test_the_longest_wait_is_listed_first_then_the_largest_share():
    found = tables.frameworks(
        [share("a", 0.1), share("b", 0.3), share("c", 0.2, waited_cycles=5)], 2
    )
    assert [each.role for each in found.rows] == ["c", "b"]
    assert found.more == 1


def test_a_map_has_a_bounded_number_of_cells():
    count = 50_000
    used = np.arange(count, dtype=np.int64)[:, None]
    rows = AgentRows(
        name=tuple(f"node-{n}" for n in range(count)),
        on=np.arange(count) % 2 == 0,
        capacity=np.full((count, 1), count - 1),
        used=used,
        offered=np.zeros_like(used),
        resources=("cpus",),
        counted=np.ones(1, np.bool_),
    )
    drawn = agent_map.draw(rows)
    cells = drawn.cells()
    assert len(cells) <= agent_map.CELLS_MAX
    assert sum(each.size for each in cells) == count
    assert sum(each.off for each in cells) == count // 2
    # In the order of their numbers, so each cell is fuller than the one before.
    assert [each.used for each in cells] == sorted(each.used for each in cells)
    assert (cells[0].shade, cells[-1].shade) == ("u1", "u10")
    inside = drawn.cells(cells[3].first, cells[3].size)
    assert [each.size for each in inside] == [1] * cells[3].size
    assert np.mean([each.used for each in inside]) == pytest.approx(cells[3].used)
    assert sum(number for _, number in drawn.bands()) == count


def test_an_agent_without_a_resource_is_idle_and_one_that_is_off_looks_so():
    rows = AgentRows(
        name=("b", "a"),
        on=np.array([True, False]),
        capacity=np.array([[0, 8], [4, 8]]),
        used=np.array([[0, 8], [1, 0]]),
        offered=np.array([[0, 0], [3, 0]]),
        resources=("gpus", "cpus"),
        counted=np.ones(2, np.bool_),
    )
    off, full = agent_map.draw(rows).cells()
    assert (off.name, off.shade, off.used, off.offered) == ("a", "off", 0.25, 0.75)
    assert (full.name, full.shade, full.used) == ("b", "u10", 1.0)
    assert [each.used for each in agent_map.draw(rows, "gpus").cells()] == [0.25, 0.0]
    assert dict(agent_map.draw(rows).bands())["full"] == 1


def test_a_cluster_of_many_agents_and_frameworks_makes_a_page_of_bounded_size(loop, server):
    agents, frameworks = 20_000, 300
    handles = np.arange(1, agents + 1)
    tell_books(
        loop,
        Options(),
        Define({0: Kind("cpus")}, {1: "eng"}),
        AddAgents(
            handles,
            tuple(AgentInfo(f"agent-{n}", hostname=f"host-{n}.example") for n in handles.tolist()),
            np.array([0]),
            np.full((agents, 1), 8000),
            np.ones(agents, np.bool_),
            np.full(agents, -1),
            np.zeros(agents, np.int64),
        ),
        *(AddFramework(n, FrameworkInfo(f"id-{n}"), (1,)) for n in range(1, frameworks + 1)),
    )
    text = page(server, "/")
    assert len(text) < 400_000
    assert text.count('class="u0" href') == len(
        agent_map.draw(loop.ask(lambda: agent_rows.take(loop.allocator)).result(60)).cells()
    )
    assert "not shown: 275 frameworks" in text


def test_a_long_text_is_cut_and_markup_is_not():
    assert len(str(tables.printable("x" * 100_000))) == tables.TEXT_MAX + 1
    assert tables.url("a b/<") == "a%20b%2F%3C"


def test_of_a_rule_is_said_how_many_it_is_about():
    match = settings_pb2.RuleMatch(agents=1, agents_total=4, frameworks=2, frameworks_total=3)
    said = {kind: tables.matched(settings_pb2.Setting(key=kind, match=match)) for kind in KINDS}
    assert said["drain"] == "1 of 4 agents"
    assert said["weight"] == said["limit"] == "2 of 3 frameworks"
    assert said["demand"] == "2 of 3 frameworks, counts for 0"
    assert said["constraint"] == "1 of 4 agents, 2 of 3 frameworks"
    assert tables.matched(settings_pb2.Setting(key="policy.name")) == ""


@pytest.mark.parametrize("path", PAGES)
def test_headings_are_in_order(loop, server, path):
    """Users of screen readers jump from one heading to the next: no level is skipped."""
    tell_books(loop, Options(), *state(60))
    found = [int(tag[1]) for tag, _ in Elements(page(server, path)).found if tag in HEADINGS]
    assert found[0] == 1
    assert found.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(found)), found


def test_shares_are_written_and_drawn_as_parts_of_the_cluster(loop, server, views):
    tell_books(loop, Options(), *state(60))
    text = page(server, "/shares")
    shares = views.shares(partial(loop.read, within_s=60.0), pb.GetSharesRequest())
    for role in (each for each in shares.roles if each.share):
        row = text[text.index(f">{role.role.rpartition('/')[2]}</a></th>") :]
        assert f'class="number">{role.share:.4f}</td>' in row
        (width,) = re.findall(r'class="used" width="([\d.]+)"', row[: row.index("</tr>")])
        assert float(width) == pytest.approx(100 * role.share, abs=0.01)


def test_remedies_are_folded(loop, server):
    text = page(server, "/")
    folded = re.findall(r"<details class=\"warning\"><summary>(.*?)</summary>(.*?)</details>", text)
    assert any("no session" in summary and "<em>" in rest for summary, rest in folded)
