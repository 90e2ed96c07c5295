"""The speed gate: its counts are exact, and it detects planted regressions."""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from allocator.core import Allocator
from tests.bench import gate, times
from tests.bench.gauges import GAUGES

SMALL = GAUGES["one agent freed"]._replace(counted=(2000, 100))
COUNT = """
from tests.bench import gate
from tests.bench.gauges import GAUGES, one_agent, launches
for work in (one_agent, launches):
    counts = gate.count_one(GAUGES["launches"]._replace(work=work), 1000, 100)
    print(*counts)
"""


@pytest.fixture(scope="module")
def recorded():
    """The counts of a cycle over one freed agent."""
    return gate.count(SMALL)


@pytest.fixture
def planted(recorded, monkeypatch):
    """The findings of the gate if each cycle does more work."""
    allocate = Allocator.allocate

    def find(more: Callable[[Allocator], object]) -> list[str]:
        def slowed(allocator: Allocator, *arguments):
            more(allocator)
            return allocate(allocator, *arguments)

        monkeypatch.setattr(Allocator, "allocate", slowed)
        return gate.faults(SMALL, gate.count(SMALL), recorded)

    return find


@pytest.mark.long
def test_equal_costs_pass(planted):
    assert planted(lambda _: None) == []


@pytest.mark.long
def test_counts_are_the_same_in_every_process():
    def run(seed: str) -> subprocess.Popen[str]:
        environment = os.environ | {"PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", COUNT]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    said = [child.communicate()[0].splitlines() for child in [run("1"), run("2")]]
    first, second = ([gate.Counts(*map(int, row.split())) for row in rows] for rows in said)
    assert len(first) == 2
    for one, other in zip(first, second, strict=True):
        assert one._replace(allocated=0) == other._replace(allocated=0)
        assert one.allocated == pytest.approx(other.allocated, abs=2000)


@pytest.mark.long
def test_more_calls_are_seen(planted):
    found = planted(lambda _: [len(()) for _ in range(1200)])
    assert any(": calls " in each for each in found), found


@pytest.mark.long
def test_a_loop_over_all_agents_is_seen(planted):
    found = planted(lambda allocator: [each > 0 for each in allocator.state.free])
    assert any(each.startswith("twice the agents: steps ") for each in found), found


@pytest.mark.long
def test_a_copy_of_the_book_is_seen(planted):
    def copies(allocator: Allocator) -> np.ndarray:
        ledger = allocator.state.ledger
        return ledger.books.held[:, ledger.rows()]

    found = planted(copies)
    assert any(each.startswith("twice the agents: allocated ") for each in found), found


@pytest.mark.parametrize(("now_ms", "found"), [(3.0, []), (5.0, ["one"])])
def test_only_times_that_double_fail(monkeypatch, capsys, now_ms, found):
    @contextmanager
    def opened(tree: Path):
        yield lambda _name, _turns: now_ms if tree == times.ROOT else 2.0

    monkeypatch.setattr(times, "opened", opened)
    assert times.slower(Path("before"), ["one"]) == found
    assert f"| one | {now_ms:.4g} | 2 | {now_ms / 2:.2f} |" in capsys.readouterr().out
