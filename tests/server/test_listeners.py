"""An address that cannot be listened on is noticed before anything slow begins."""

import socket
import subprocess
import sys
from contextlib import closing

import pytest

from allocator.server.config import Config
from allocator.server.listeners import ListenError, claim_addresses


def config(*targets: str, http: int = 0) -> Config:
    listen = {"targets": targets, "allow_plaintext": True}
    return Config.model_validate({"listen": listen, "http": {"port": http}})


@pytest.fixture
def taken():
    """A port on which somebody listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_a_port_that_is_taken_is_noticed(host, taken):
    with pytest.raises(ListenError, match=f"{host}:{taken} cannot be listened on: .*listen"):
        claim_addresses(config("127.0.0.1:0", f"{host}:{taken}"))


def test_the_port_of_the_metrics_is_claimed_too(taken):
    with pytest.raises(ListenError, match=f"127.0.0.1:{taken} cannot be listened on: .*http"):
        claim_addresses(config("127.0.0.1:0", http=taken))


@pytest.mark.parametrize(("host", "why"), [("no.such.host.invalid", ""), ("192.0.2.1", "assign")])
def test_an_address_that_is_not_ours_is_noticed(host, why):
    with pytest.raises(ListenError, match=f"{host}:5056 cannot be listened on: .*{why}"):
        claim_addresses(config(f"{host}:5056"))


def test_what_is_free_stays_free(tmp_path, taken):
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        free = server.getsockname()[1]
    path = tmp_path / "a.sock"
    wanted = config(f"127.0.0.1:{free}", f"unix:{path}", "localhost:0")
    claim_addresses(wanted)
    claim_addresses(wanted)
    assert not path.exists()
    socket.create_server(("127.0.0.1", free)).close()


def test_a_socket_file_on_which_somebody_listens_is_noticed(tmp_path):
    path = tmp_path / "a.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        with pytest.raises(ListenError, match="another process listens there"):
            claim_addresses(config(f"unix:{path}"))
    assert path.exists()


def test_nothing_is_compiled_for_an_address_that_is_taken(taken):
    """The loops, which take a minute to compile, are not even imported."""
    program = f"""
import sys
from allocator.server.config import Flag
from allocator.server.config.source import load_all
from allocator.server.main import run
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
