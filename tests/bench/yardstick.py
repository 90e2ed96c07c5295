"""The current speed of this machine: processor time of a constant piece of work.

Times in seconds are unreliable if other processes share the caches and clock rates change. A time
divided by that of constant work of the same type, measured at the same moment, shows whether the
program has changed. The types are those of the sidecar's work: interpreter, arrays, compiled loops.
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
"""Calls a function; returns its result and its cost, as `clock_ms` does."""

ROUNDS = 3


def clock_ms(call: Callable[..., Answer], *arguments: object) -> tuple[Answer, float]:
    """Call something; returns its result, and the processor time that it took in this process."""
    begun = time.process_time()
    answer = call(*arguments)
    return answer, (time.process_time() - begun) * 1000


def yardstick_ms() -> float:
    """The geometric mean over the types of work, of the minimum of a few rounds of each."""
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
    """Follow a chain of entries, each of which names the next."""
    at, total = 0, 0
    for _ in range(steps):
        total += at & 7
        at = (numbers[at] + total) % len(numbers)
    return total


def processor() -> str:
    """The processor of this machine, as far as it is known."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    said = dict(line.replace("\t", "").split(":", 1) for line in lines if ":" in line)
    parts = ("cpu family", "model", "stepping", "cache size")
    more = ", ".join(f"{part} {said[part].strip()}" for part in parts if part in said)
    return f"{said.get('model name', platform.machine()).strip()} ({more})"
