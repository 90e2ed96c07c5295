"""`mesos-allocator top`: a live view on a terminal, one plain table elsewhere."""

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
def test_a_live_view_ends_cleanly(target, end):
    terminal = Terminal("top", "--target", target, "--interval", "0.2", lines=20, columns=100)
    terminal.read_until("waited")
    terminal.read_until("cycle")
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
