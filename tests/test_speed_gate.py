"""The gate that guards the speed: it sees a planted regression, and lets through what only varies.

Time is made up here, so nothing depends on the machine; what real gauges do is for `make gate`.
"""

import itertools
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bench import gate

BEFORE = Path("before")
_GAUGES = """
import itertools, os, pathlib

def launches():
    with pathlib.Path("begun").open("a") as begun:
        print(os.getpid(), file=begun)
    yield from itertools.repeat(0.25)

GAUGES = {"launches": launches}
"""


def side(turn_ms: float, *gauges: str) -> gate.Side:
    """A tree whose gauges take so long at least, and at most 15 % longer."""

    def took_ms(_name: str, turns: int) -> float:
        return sum(turn_ms * random.uniform(1, 1.15) for _ in range(turns))

    return gate.Side(list(gauges), took_ms)


@pytest.fixture
def slower(monkeypatch):
    """Compare one gauge whose turns take so long in either tree, each time the next."""

    def run(before: Iterator[float], now: Iterator[float], planted: float = 0.0) -> list[str]:
        @contextmanager
        def opened(tree: Path, names: list[str]) -> Iterator[gate.Side]:
            yield side(next(before if tree == BEFORE else now), *names)

        monkeypatch.setattr(gate, "opened", opened)
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


def test_a_machine_that_gets_slower_meanwhile_is_no_regression():
    pace = itertools.count(1.0, 0.05)
    slowing = gate.Side(["one"], lambda _name, turns: turns * 2.0 * next(pace))
    found = gate.compare(slowing, slowing, "one")
    assert found.before_ms is not None
    assert found.now_ms > 1.01 * found.before_ms
    assert 0.9 < found.ratio < 1.1


def test_a_gauge_that_was_not_there_before_is_new(monkeypatch, capsys):
    @contextmanager
    def opened(tree: Path, names: list[str]) -> Iterator[gate.Side]:
        yield gate.Side([] if tree == BEFORE else names, lambda _name, turns: turns * 0.2)

    monkeypatch.setattr(gate, "opened", opened)
    assert gate.slower(BEFORE, ["one"]) == []
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


def test_both_trees_load_loops_that_were_compiled_before(tmp_path, monkeypatch, capsys):
    """What a process compiles itself runs faster than what it loads."""
    trees = {tree: tmp_path / tree for tree in ("before", "now")}
    for tree in trees.values():
        bench = tree / "tests" / "bench"
        bench.mkdir(parents=True)
        (bench / "gauges.py").write_text(_GAUGES)
    monkeypatch.setattr(gate, "ROOT", trees["now"])
    monkeypatch.setattr(gate, "laid_out", lambda _commit: trees["before"])
    monkeypatch.setattr(sys, "argv", ["gate", "--gauges", "launches"])
    gate.main()
    assert "| launches | 0.25 | 0.25 | 1.00 | as before |" in capsys.readouterr().out
    begun = {name: (tree / "begun").read_text().split() for name, tree in trees.items()}
    # Each tree in two processes: one that compiles, one that is measured.
    assert all(len(set(processes)) == len(processes) == 2 for processes in begun.values())
