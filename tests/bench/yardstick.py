"""How fast this machine is just now, in processor time of work that is always the same.

A figure in seconds says little where neighbours share the caches and clocks change. The ratio to
work of the same kind, done in the same moment, says whether the program has changed. The kinds are
those that the sidecar lives on: the interpreter, arrays, and compiled loops.
"""

import math
import platform
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numba import njit

from allocator.server.system import loop_cache

loop_cache.prepare()

Answer = TypeVar("Answer")

Meter = Callable[..., tuple[Any, Any]]
"""Calls a function; returns its answer and what that cost, as `clock_ms` does."""

ROUNDS = 3


def clock_ms(call: Callable[..., Answer], *arguments: object) -> tuple[Answer, float]:
    """Call something; returns its answer, and the processor time that it took in this process."""
    begun = time.process_time()
    answer = call(*arguments)
    return answer, (time.process_time() - begun) * 1000


def yardstick_ms() -> float:
    """The geometric mean of the kinds of work, the least of a few rounds of each."""
    least = [min(clock_ms(work)[1] for _ in range(ROUNDS)) for work in _warm()]
    return math.prod(least) ** (1 / len(least))


@lru_cache(maxsize=1)
def _warm() -> tuple[Callable[[], object], ...]:
    for work in (_interpret, _sort, _chase):
        work()
    return _interpret, _sort, _chase


def _interpret() -> int:
    """Dictionaries, small objects, calls."""
    seen: dict[tuple[int, int], list[int]] = {}
    for number in range(30_000):
        seen.setdefault((number % 997, number % 7), []).append(number)
    return sum(len(each) for each in seen.values())


@lru_cache(maxsize=1)
def _numbers() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 1 << 40, 200_000)


def _sort() -> int:
    """Sort, gather, add up."""
    order = np.argsort(_numbers(), kind="stable")
    return int(np.cumsum(_numbers()[order] >> 20)[-1])


def _chase() -> int:
    return int(_walk(_numbers(), 600_000))


@njit(cache=True)
def _walk(numbers, steps):
    """Jump from entry to entry, each of which says which comes next."""
    at, total = 0, 0
    for _ in range(steps):
        total += at & 7
        at = (numbers[at] + total) % len(numbers)
    return total


def processor() -> str:
    """What this machine computes with, as far as it says."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    said = dict(line.replace("\t", "").split(":", 1) for line in lines if ":" in line)
    parts = ("model name", "cpu family", "model", "stepping", "cache size")
    return ", ".join(said[part].strip() for part in parts if part in said) or platform.machine()
