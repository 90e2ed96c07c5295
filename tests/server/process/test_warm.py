"""A warm sidecar compiles nothing while it serves, and no disk error in a loop ends a session."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from allocator.core.numba import compiled
from allocator.core.numba.compiled import Loop, _Mode, tolerate_cache_errors
from allocator.server.system import loop_cache

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.long
def test_after_warming_no_policy_and_no_plan_needs_another_loop():
    """Each would block the core for seconds, once, in the middle of a session."""
    words = [sys.executable, "-m", "tests.server.process.warm_loops"]
    done = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
    *missing, last = done.stdout.splitlines()
    assert last.startswith("loops: ")
    assert missing == []


def test_loops_are_kept_apart_by_every_source_that_one_may_be_made_of():
    """A loop in one file is compiled against functions of another, whose changes numba ignores."""
    marked = re.compile(r"(?m)^@(loop|part|compiled|hot|allocating)\b")
    package = ROOT / "allocator"
    with_loops = {path for path in package.rglob("*.py") if marked.search(path.read_text())}
    assert len({path.parent for path in with_loops}) > 8, "they are found at all"
    assert with_loops <= set(loop_cache.sources())


@pytest.fixture
def doubling(monkeypatch) -> Loop:
    """A loop whose cache is on a full disk, and that works without it."""
    monkeypatch.setattr(_Mode, "cache_may_fail", False)
    monkeypatch.setattr(_Mode, "interpreted", False)
    loop = Loop(_double, {"cache": True}, entry=True)

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    impl = loop.dispatcher._cache._impl
    assert impl.locator.get_cache_path()
    monkeypatch.setattr(loop.dispatcher._cache._cache_file, "save", full)
    monkeypatch.setattr(loop.dispatcher._cache._cache_file, "load", full)
    return loop


def _double(values: np.ndarray) -> np.ndarray:
    return values * 2


def test_a_loop_runs_though_its_cache_cannot_be_read_or_written(doubling):
    tolerate_cache_errors()
    assert compiled.cache_may_fail()
    assert doubling(np.arange(3)).tolist() == [0, 2, 4]


def test_warm_reports_that_the_cache_is_not_kept(doubling):
    with pytest.raises(OSError, match="No space left"):
        doubling(np.arange(3))
