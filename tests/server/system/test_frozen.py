"""A child process sees the state at the moment of the fork, whatever happens meanwhile."""

import mmap
import os
import subprocess
import sys
import time
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allocator.core.checkpoint import Detached, nbytes_of, to_columns
from allocator.server.system import frozen as module
from allocator.server.system.frozen import frozen
from allocator.wire.journal.checkpoint import write_checkpoint
from allocator.wire.journal.framing import frame
from tests.policies.test_nothing_is_left import make
from tests.tiers import examples
from tests.world.rows import given_back, settled


@settings(examples(10, 40), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1), before=st.integers(0, 3), after=st.integers(1, 4))
def test_a_checkpoint_is_of_the_moment_it_was_begun(seed, before, after):
    """The naive implementation copies everything at that moment."""
    chance = Random(seed)
    world = make(chance, rules=True)

    def go_on():
        world.quota(chance.choice("abd"), f"cpus:{chance.randint(0, 6)}")
        world.agent(f"cpus:{chance.randint(1, 15)};mem:{chance.randint(1, 15)}")
        world.now_ms += 1000
        made = world.allocator.allocate(world.now_ms)
        world.tell(settled(made))
        for rows in made.groups:
            world.tell(given_back(rows, 5000))

    for _ in range(before):
        go_on()
    kept = world.allocator.kept()
    copied = Detached(kept)
    assert nbytes_of(kept) == nbytes_of(copied.value)
    gone_on = mmap.mmap(-1, 1)  # memory that both processes share

    def written():
        # Only after the core continued: its changes must not be seen.
        while not gone_on[0]:
            time.sleep(0.001)
        yield from map(frame, write_checkpoint(to_columns(kept)))

    pieces = frozen(written)
    for _ in range(after):
        go_on()
    gone_on[0] = 1
    made = b"".join(pieces)
    assert made == b"".join(map(frame, write_checkpoint(to_columns(copied.value))))
    assert made != b"".join(map(frame, write_checkpoint(to_columns(world.allocator.kept()))))


@pytest.fixture
def child(monkeypatch):
    """The process that is forked."""
    found = []
    fork = os.fork

    def noted() -> int:
        found.append(fork())
        return found[-1]

    monkeypatch.setattr(os, "fork", noted)
    return found


def test_a_failed_child_is_reported(child):
    def make():
        yield b"a"
        raise ValueError("something new")

    pieces = frozen(make)
    with pytest.raises(OSError, match="ended with 1"):
        list(pieces)
    assert_ended(child)


def test_a_child_that_hangs_is_given_up(monkeypatch, child):
    def make():
        time.sleep(60)
        yield b"a"

    monkeypatch.setattr(module, "SILENT_S", 0.05)
    pieces = frozen(make)
    with pytest.raises(TimeoutError):
        list(pieces)
    assert_ended(child)


def test_a_child_ends_with_its_reader(child):
    """It would block forever on writing more."""
    pieces = frozen(lambda: iter([bytes(1 << 20)]))
    assert next(pieces)
    del pieces
    assert_ended(child)


def assert_ended(child: list[int]) -> None:
    with pytest.raises(ChildProcessError):
        os.waitpid(child[0], os.WNOHANG)


BESIDE_GRPC = """
import contextlib, threading, time
from concurrent.futures import ThreadPoolExecutor
from allocator.server.system.frozen import frozen
import grpc
server = grpc.server(ThreadPoolExecutor(2))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
channel = grpc.insecure_channel(f"127.0.0.1:{port}")
grpc.channel_ready_future(channel).result()

done = threading.Event()

def ask():
    while not done.is_set():
        with contextlib.suppress(grpc.RpcError):
            channel.unary_unary("/nobody/knows")(b"")

asking = threading.Thread(target=ask)
asking.start()

def make():
    time.sleep(0.3)  # in which threads of gRPC, if there are any, find their files closed
    yield b"x"

try:
    for _ in range(5):
        assert b"".join(frozen(make)) == b"x"
finally:
    done.set()
    asking.join()
    channel.close()
    server.stop(None).wait()
"""


@pytest.mark.long
@pytest.mark.parametrize("first", ["allocator.server", "laboratory.links.stream"])
def test_grpc_has_no_hand_in_a_child(first):
    """gRPC may be imported earlier or later. Its handlers would log that they were skipped."""
    command = [sys.executable, "-c", f"import {first}\n{BESIDE_GRPC}"]
    bare = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=bare)
    assert ran.returncode == 0, ran.stderr
    assert "fork()" not in ran.stderr


ALGEBRA = """
import os
import allocator
import numpy as np
square = np.random.default_rng(1).random((500, 500))
np.linalg.solve(square @ square, square)
print(len(os.listdir("/proc/self/task")))
"""


def test_linear_algebra_starts_no_threads():
    """A fork waits for such threads while it holds the interpreter lock."""
    bare = {name: value for name, value in os.environ.items() if "_NUM_THREADS" not in name}
    command = [sys.executable, "-c", ALGEBRA]
    done = subprocess.run(command, check=True, capture_output=True, env=bare)
    assert int(done.stdout) == 1
