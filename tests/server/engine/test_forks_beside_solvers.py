"""No fork waits for a solver that waits for the fork: the process would hang for good."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from allocator.policies import build
from allocator.server.config import Config
from allocator.server.engine import apart as module
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.system.frozen import ForkLaterError, frozen, is_child, may_fork, solving

ROOT = Path(__file__).resolve().parents[3]
WAIT_S = 60.0
HANGS_S = 900.0

THREADS = """
import allocator
import numpy as np
from pathlib import Path

matrix = np.random.default_rng(1).random((600, 600))
np.linalg.solve(matrix, matrix @ matrix)
print(len(list(Path("/proc/self/task").iterdir())))
"""


def run(*arguments: str) -> str:
    """Run Python anew, for its libraries look at the environment when they are loaded."""
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=ROOT, timeout=HANGS_S, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def test_linear_algebra_has_no_threads_of_its_own():
    assert run("-c", THREADS) == "1\n"


def test_its_threads_are_limited_where_this_package_is_only_a_part(monkeypatch):
    """Whatever the environment says."""
    for library in ("OPENBLAS", "OMP", "MKL"):
        monkeypatch.setenv(f"{library}_NUM_THREADS", "4")
    assert run("-c", THREADS) == "1\n"


def _plan_and_fork(seconds: float) -> None:
    said = run("-m", "tests.server.engine.forks_beside_solvers", str(seconds)).splitlines()[-1]
    assert all(int(each) > 0 for each in said.split())


def test_forks_beside_plans_come_back():
    """Of 16 MB of books and more."""
    _plan_and_fork(2)


@pytest.mark.long
def test_forks_beside_plans_come_back_for_two_minutes():
    _plan_and_fork(120)


def test_no_process_is_forked_while_a_solver_is_at_work():
    with solving():
        with solving():
            assert not may_fork()
        with pytest.raises(ForkLaterError):
            frozen(lambda: iter([b""]))
    assert may_fork()
    assert list(frozen(lambda: iter([b"now"]))) == [b"now"]


def test_a_question_waits_for_a_solver_and_then_the_core_answers_it(monkeypatch):
    monkeypatch.setattr(module, "LARGE", 0)
    loop = CoreLoop(Config(), build_policy=build)
    loop.start()

    def ask(work):
        return loop.call(work).result(WAIT_S)

    monkeypatch.setattr(module, "SOLVER_S", 0.01)
    with solving():
        assert loop.apart.ask(ask, is_child) is False
    assert (loop.apart.begun, loop.apart.failed) == (0, 0)
    # It waits as long as it takes, within reason.
    monkeypatch.setattr(module, "SOLVER_S", WAIT_S)
    with solving():
        found: list[bool] = []
        asking = threading.Thread(target=lambda: found.append(loop.apart.ask(ask, is_child)))
        asking.start()
        time.sleep(0.01)
        assert not found
    asking.join(WAIT_S)
    assert found == [True]
    loop.stop()


def test_in_a_small_cluster_no_question_waits_for_a_solver(monkeypatch):
    """The core's thread answers it anyway."""
    waits: list[float] = []
    monkeypatch.setattr(module, "may_fork", waits.append)
    loop = CoreLoop(Config(), build_policy=build)
    loop.start()
    for _ in range(2):
        assert loop.apart.ask(lambda work: loop.call(work).result(WAIT_S), is_child) is False
    assert not waits
    loop.stop()


def test_a_solver_does_not_wait_for_the_process_that_was_forked():
    pieces = frozen(lambda: iter([b"made"]))
    with solving():
        assert list(pieces) == [b"made"]
