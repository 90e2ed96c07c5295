"""An address that is in use is reported before any slow work starts."""

import errno
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Timer

import grpc
import pytest

from allocator.server.config import Config
from allocator.server.grpc.listeners import ListenError, claim_addresses, listen
from allocator.server.system import http_socket


def config(*targets: str, http: int = 0) -> Config:
    listen = {"targets": targets, "allow_plaintext": True}
    return Config.model_validate({"listen": listen, "http": {"port": http}})


@pytest.fixture
def taken():
    """A port with a listener."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_a_port_that_is_taken_is_noticed(host, taken):
    with pytest.raises(ListenError, match=f"{host}:{taken} cannot be bound: .*listen"):
        claim_addresses(config("127.0.0.1:0", f"{host}:{taken}").listen.targets)


def test_the_port_of_the_metrics_is_claimed_too(taken, monkeypatch):
    monkeypatch.setattr(http_socket, "TAKEN_S", 0.0)
    with pytest.raises(OSError, match=f"127.0.0.1:{taken} cannot be bound: .*http"):
        http_socket.http_socket("127.0.0.1", taken)


def test_a_port_that_is_let_go_a_moment_later_is_taken():
    """Its observer may outlive a killed sidecar by milliseconds."""
    before = socket.create_server(("127.0.0.1", 0))
    port = before.getsockname()[1]
    Timer(0.2, before.close).start()
    with closing(http_socket.http_socket("127.0.0.1", port)) as mine:
        assert mine.getsockname()[1] == port


def test_that_a_port_needs_rights_is_not_taken_for_a_taken_one(monkeypatch):
    def bind(_self, _address):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(socket.socket, "bind", bind)
    with pytest.raises(ListenError, match="Permission denied; privileged ports need root"):
        claim_addresses(config("127.0.0.1:80").listen.targets)


@pytest.mark.parametrize(("host", "why"), [("no.such.host.invalid", ""), ("192.0.2.1", "assign")])
def test_an_address_that_is_not_ours_is_noticed(host, why):
    with pytest.raises(ListenError, match=f"{host}:5056 cannot be bound: .*{why}"):
        claim_addresses(config(f"{host}:5056").listen.targets)


def test_a_free_address_is_not_occupied_by_the_check(tmp_path, taken):
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        free = server.getsockname()[1]
    path = tmp_path / "a.sock"
    wanted = config(f"127.0.0.1:{free}", f"unix:{path}", "localhost:0")
    claim_addresses(wanted.listen.targets)
    claim_addresses(wanted.listen.targets)
    assert not path.exists()
    socket.create_server(("127.0.0.1", free)).close()


def test_a_socket_file_in_use_is_noticed(tmp_path):
    path = tmp_path / "a.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        with pytest.raises(ListenError, match="another process listens there"):
            claim_addresses(config(f"unix:{path}").listen.targets)
    assert path.exists()


def test_nothing_is_compiled_for_an_address_that_is_taken(taken):
    """The loops, which take a minute to compile, are not even imported."""
    program = f"""
import sys
from allocator.server.config import Flag
from allocator.server.config.source import load_all
from allocator.server.process.main import run
flags = [Flag("", "listen.targets", "127.0.0.1:{taken}"), Flag("", "http.port", "0")]
loaded = load_all(None, {{}}, flags)
print(run(lambda: loaded, loaded))
print([name for name in sys.modules if name.endswith(("filling.by_agent", "filling.by_client"))])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "1\n[]\n"
    assert f"127.0.0.1:{taken}" in done.stderr


@contextmanager
def listening(path: Path, **options: object) -> Iterator[os.stat_result]:
    """Listen on a socket file; returns its status."""
    section = Config.model_validate({"listen": {"targets": (f"unix:{path}",), **options}}).listen
    server = grpc.server(ThreadPoolExecutor(1))
    try:
        listen(server, section)
        yield path.stat()
    finally:
        server.stop(None).wait()


def test_a_socket_has_the_configured_owner(tmp_path):
    with listening(tmp_path / "a.sock") as status:
        assert (status.st_uid, status.st_gid) == (os.geteuid(), os.getegid())
    group = (os.getgroups() or [os.getegid()])[-1]
    with listening(tmp_path / "b.sock", unix_owner=f":{group}", unix_mode=0o660) as status:
        assert status.st_gid == group
        assert stat.S_IMODE(status.st_mode) == 0o660


def test_an_owner_that_there_is_not_is_named(tmp_path):
    wrong = "b.sock cannot be given to :no-such-group: there is no such .*listen.unix_owner"
    with (
        pytest.raises(ListenError, match=wrong),
        listening(tmp_path / "b.sock", unix_owner=":no-such-group"),
    ):
        pass


@pytest.mark.parametrize("owner", ["a:b:c", "a b", "a:", "/etc"])
def test_an_owner_of_another_form_is_refused(tmp_path, owner):
    with pytest.raises(ValueError, match="must be user:group"):
        Config.model_validate({"listen": {"unix_owner": owner}})
