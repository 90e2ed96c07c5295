"""`mesos-allocator top`, and lists with `--watch`: live views on a terminal."""

import json
import signal
from collections.abc import Iterator

import pytest

from tests.integration.operators.terminal import Terminal
from tests.server.forked import completed
from tests.server.sidecar_process import GrpcModule, SidecarProcess
from tests.wire.dialogue import STATE


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    """A sidecar in session, after a cycle that offered everything."""
    with SidecarProcess() as process, process.channel() as channel:
        module = GrpcModule(channel).begin(STATE)
        module.batch(cycle=True)
        yield process.targets[0]
        module.leave()


@pytest.mark.parametrize("end", ["q", "Ctrl-C"])
@pytest.mark.parametrize(
    ("words", "shown"),
    [("top", ("waited", "cycle")), ("agents --watch", ("state", "active"))],
)
def test_a_live_view_ends_cleanly(target, words, shown, end):
    command = (*words.split(), "--target", target, "--interval", "0.2")
    terminal = Terminal(*command, lines=20, columns=100)
    for each in shown:
        terminal.read_until(each)
    if end == "q":
        terminal.type("xq")
    else:
        terminal.process.send_signal(signal.SIGINT)
    assert terminal.ends() == 0
    assert "Traceback" not in terminal.text
    # The previous screen is restored.
    assert terminal.text.rstrip().endswith(("\x1b[?25h", "\x1b[?1049l"))


def test_piped_output_is_one_plain_table(target):
    done = completed("top", "--target", target)
    assert (done.returncode, done.stderr) == (0, "")
    head, *rows = done.stdout.splitlines()
    assert head.split() == [
        *["framework", "role", "waited", "share", "on", "offer", "offered", "for"],
        *["filters", "needs", "state"],
    ]
    assert rows
    assert "\x1b" not in done.stdout
    done = completed("top", "--target", target, "--json")
    assert len(json.loads(done.stdout)["clients"]) == len(rows)


def test_a_watched_list_follows_the_sidecar(target):
    command = ("agents", "-w", "--target", target, "--interval", "0.2")
    terminal = Terminal(*command, lines=20, columns=100)
    terminal.read_until("active")
    assert "drained" not in terminal.text
    assert completed("drain", "set", "agent-1", "--target", target).returncode == 0
    terminal.read_until("drained")
    terminal.type("q")
    assert terminal.ends() == 0
