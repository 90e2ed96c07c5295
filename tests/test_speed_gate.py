"""The gate that guards the speed: it sees a planted regression, and lets through what only varies.

Time is made up here, so nothing depends on the machine; what real gauges do is for `make gate`.
"""

import itertools
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench import gate

BEFORE = Path("before")


@pytest.fixture(autouse=True)
def _an_even_yardstick(monkeypatch):
    monkeypatch.setattr(gate, "yardstick_ms", lambda: 10.0)


def noisy(turn_ms: float, noise: float, seed: int = 1) -> Iterator[float]:
    """A gauge that takes so long at least, and at most so much longer."""
    chance = random.Random(seed)
    return (turn_ms * (1 + noise * chance.random()) for _ in itertools.count())


def measuring(before: Iterator[float], now: Iterator[float]):
    """Measure one gauge whose turns take so long in either tree, each time the next."""

    def measured(tree: Path, names: list[str], planted: float = 0.0) -> dict[str, float]:
        gauge = noisy(next(before if tree == BEFORE else now), 0.15, random.randrange(10**9))
        return {name: gate.ratio(gauge, planted) for name in names}

    return measured


@pytest.fixture
def slower(monkeypatch):
    def run(before: Iterator[float], now: Iterator[float], planted: float = 0.0) -> list[str]:
        monkeypatch.setattr(gate, "measured", measuring(before, now))
        return gate.slower(BEFORE, ["one"], planted)

    return run


def test_a_planted_regression_is_caught(slower):
    found = slower(itertools.repeat(2.0), itertools.repeat(2.0), planted=0.4)
    assert found == ["one"]


def test_ten_runs_that_only_vary_pass(slower):
    assert not any(slower(itertools.repeat(2.0), itertools.repeat(2.0)) for _ in range(10))


def test_one_that_was_only_disturbed_is_measured_again(slower, capsys):
    assert slower(itertools.repeat(2.0), iter([4.0, 4.0, 2.0])) == []
    assert "| as before |" in capsys.readouterr().out


def test_a_gauge_that_was_not_there_before_is_new(monkeypatch, capsys):
    def measured(tree: Path, names: list[str], planted: float = 0.0) -> dict[str, float]:
        return {} if tree == BEFORE else dict.fromkeys(names, 0.2)

    monkeypatch.setattr(gate, "measured", measured)
    assert gate.slower(BEFORE, ["one"], 0.0) == []
    assert "| one | 0.2 | | | new |" in capsys.readouterr().out


def test_a_tree_is_laid_out_once_and_as_it_was(tmp_path, monkeypatch):
    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=tmp_path, check=True)

    git("init", "-q")
    git("config", "user.name", "nobody")
    git("config", "user.email", "nobody@example.org")
    (tmp_path / "file").write_text("before")
    git("add", "file")
    git("commit", "-qm", "before")
    monkeypatch.setattr(gate, "ROOT", tmp_path)
    commit = gate.git("rev-parse", "HEAD").decode().strip()
    (tmp_path / "file").write_text("now")
    tree = gate.laid_out(commit)
    assert tree is not None
    assert (tree / "file").read_text() == "before"
    assert gate.laid_out(commit) == tree


def test_without_history_nothing_is_compared_and_that_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gate, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["gate", "--baseline", "0" * 40])
    monkeypatch.delenv("CI", raising=False)
    gate.main()
    assert "nothing to compare with" in capsys.readouterr().out
    monkeypatch.setenv("CI", "true")
    with pytest.raises(SystemExit, match="clone without --depth"):
        gate.main()


def test_both_trees_load_loops_that_were_compiled_before(monkeypatch, capsys):
    """What a process compiles itself runs faster than what it loads."""
    compiled = []

    def run(tree: Path, code: str, names: list[str], planted: float = 0.0) -> str:
        if "ratio" not in code:
            compiled.append(tree)
            return ""
        assert compiled == [BEFORE, gate.ROOT]
        return json.dumps(dict.fromkeys(names, 0.2 * (1 + planted)))

    monkeypatch.setattr(gate, "run", run)
    monkeypatch.setattr(gate, "laid_out", lambda _commit: BEFORE)
    monkeypatch.setattr(sys, "argv", ["gate", "--gauges", "one"])
    gate.main()
    assert "| one | 0.2 | 0.2 | 1.00 | as before |" in capsys.readouterr().out
