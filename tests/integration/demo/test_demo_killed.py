"""A demo that is interrupted or killed leaves no process and no directory behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

from tests.tiers import long

MARK = "MESOS_ALLOCATOR_TEST_MARK"
WAIT_S = 200.0
"""With a cold cache the sidecar compiles first."""


def marked(mark: str) -> dict[int, str]:
    """The processes that inherited a mark in their environment, with their command lines."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (path / "environ").read_bytes():
                found[int(path.name)] = (path / "cmdline").read_bytes().decode().replace("\0", " ")
        except OSError:
            continue  # It has ended, or belongs to another user.
    return found


def wait_for(condition, what: str) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.02)


@pytest.fixture
def mark():
    value = uuid4().hex
    yield value
    for number in marked(value):
        os.kill(number, signal.SIGKILL)


@pytest.mark.parametrize("moment", [" serve ", *long("run_worker")])
@pytest.mark.parametrize(
    ("number", "group"),
    [
        pytest.param(signal.SIGINT, True, id="ctrl-c"),
        pytest.param(signal.SIGTERM, False, id="terminate", marks=pytest.mark.long),
        pytest.param(signal.SIGKILL, False, id="kill", marks=pytest.mark.long),
    ],
)
def test_nothing_is_left_of_a_demo(moment, number, group, mark, tmp_path):
    """It is ended while sidecars or workers start. Ctrl-C reaches its whole process group."""
    folder = tmp_path / "t"
    folder.mkdir()
    demo = subprocess.Popen(
        [sys.executable, "-m", "laboratory", "demo", "--out", str(tmp_path / "out")],
        env={**os.environ, MARK: mark, "TMPDIR": str(folder)},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )

    def reached() -> bool:
        assert demo.poll() is None, demo.communicate()
        return any(moment in line for line in marked(mark).values())

    wait_for(reached, f"no process with {moment!r}")
    assert any(folder.iterdir())
    (os.killpg if group else os.kill)(demo.pid, number)
    _, said = demo.communicate(timeout=WAIT_S)
    assert demo.returncode != 0
    assert "Traceback" not in said
    wait_for(lambda: not marked(mark), "a process is left")
    assert not list(folder.iterdir())
