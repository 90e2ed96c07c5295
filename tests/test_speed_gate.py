"""The gate that guards the speed: it sees a planted regression, and lets through what only varies.

Time is made up here, so nothing depends on the machine; what real gauges do is for `make gate`.
"""

import itertools
import random
import sys

import pytest

from tests.bench import gate
from tests.bench.gauges import GAUGES


@pytest.fixture(autouse=True)
def _an_even_yardstick(monkeypatch):
    monkeypatch.setattr(gate, "yardstick_ms", lambda: 10.0)


def noisy(turn_ms: float, noise: float):
    """Make gauges that take so long at least, and at most so much longer."""
    chance = random.Random(1)
    return lambda: (turn_ms * (1 + noise * chance.random()) for _ in itertools.count())


def test_a_planted_regression_is_caught():
    found, fine = gate.judge(noisy(2.0, 0.05), recorded=0.2, planted=0.3)
    assert not fine
    assert 1.25 < found / 0.2 < 1.4


def test_ten_runs_that_only_vary_pass():
    make = noisy(2.0, 0.15)
    recorded = gate.record(make)
    assert all(gate.judge(make, recorded)[1] for _ in range(10))


def test_one_that_was_only_disturbed_is_measured_again():
    slow_then_fast = itertools.chain([noisy(4.0, 0.0)()], itertools.repeat(noisy(2.0, 0.0)()))
    found, fine = gate.judge(lambda: next(slow_then_fast), recorded=0.2)
    assert fine
    assert found == pytest.approx(0.2)


def test_where_nothing_is_recorded_it_passes_and_says_so(monkeypatch, capsys):
    monkeypatch.setattr(gate, "processor", lambda: "one of tomorrow")
    monkeypatch.setattr(sys, "argv", ["gate", "--gauges", "one agent freed"])
    monkeypatch.setitem(GAUGES, "one agent freed", noisy(2.0, 0.0))
    gate.main()
    assert "| one agent freed | 0.2 | | | not recorded |" in capsys.readouterr().out
