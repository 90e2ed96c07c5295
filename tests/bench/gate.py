"""Counts the work of the sidecar, and fails if it grew; a busy machine makes no difference.

Each gauge runs in three small clusters: a basic one, one with twice the agents, and one with twice
the frameworks. Compiled loops run interpreted here, so that their steps are counted, too. A gauge
fails if a count exceeds the recorded one by more than `TOLERANCE`, or grows faster than the gauge
allows when the cluster doubles.

`counts.toml` has the recorded counts; `--record` writes it. `times.py` measures processor time.
"""

import argparse
import gc
import sys
import tomllib
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from allocator.core.numba.compiled import interpreted_here
from tests.bench.gauges import GAUGES, Gauge

RECORDED = Path(__file__).with_name("counts.toml")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
TOLERANCE = 1.1
WARM = 2
LARGE_BYTES = 1024


class Counts(NamedTuple):
    """The work of one turn.

    steps: executed lines of Python, and calls and returns.
    calls: calls of functions from Python, including those written in C.
    allocated: bytes allocated, summed over intervals between two calls or returns with at least a
        KiB.
    answered: decisions, or bytes of answers.
    """

    steps: int
    calls: int
    allocated: int
    answered: int


Found = dict[str, Counts]
"""Counts by the size of the cluster."""


def count(gauge: Gauge) -> Found:
    """Count in a cluster, in one with twice the agents, and in one with twice the frameworks."""
    agents, frameworks = gauge.counted
    sizes = [(agents, frameworks), (2 * agents, frameworks), (agents, 2 * frameworks)]
    return {f"{size[0]} x {size[1]}": count_one(gauge, *size) for size in sizes}


def count_one(gauge: Gauge, agents: int, frameworks: int) -> Counts:
    """Count one turn's steps, and the next one's memory, after a few turns that fill caches."""
    measure = _nothing

    def meter(*call: Any) -> tuple[Any, Any]:
        return measure(*call)

    turns = gauge.work(agents, frameworks, meter)
    gc.collect()
    gc.disable()
    try:
        with interpreted_here():
            for _ in range(WARM):
                next(turns)
            measure = _steps
            steps, calls, answered = next(turns)
            measure = _memory
            return Counts(steps, calls, next(turns), answered)
    finally:
        gc.enable()


def _nothing(call: Callable[..., Any], *arguments: Any) -> tuple[Any, Any]:
    return call(*arguments), None


def _steps(call: Callable[..., Any], *arguments: Any) -> tuple[Any, Any]:
    steps = calls = 0

    def trace(_frame: FrameType, _event: str, _argument: Any) -> Any:
        nonlocal steps
        steps += 1
        return trace

    def profile(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    with _watched(trace, profile):
        answer = call(*arguments)
    return answer, (steps, calls, len(answer))


def _memory(call: Callable[..., Any], *arguments: Any) -> tuple[Any, Any]:
    allocated = before = 0

    def profile(_frame: FrameType, _event: str, _argument: Any) -> None:
        nonlocal allocated, before
        now, peak = tracemalloc.get_traced_memory()
        if peak - before >= LARGE_BYTES:
            allocated += peak - before
        tracemalloc.reset_peak()
        before = now

    tracemalloc.start()
    try:
        with _watched(None, profile):
            answer = call(*arguments)
    finally:
        tracemalloc.stop()
    return answer, allocated


@contextmanager
def _watched(trace: Any, profile: Any) -> Iterator[None]:
    """Install profiling functions for this thread, and restore the previous ones."""
    before = sys.gettrace(), sys.getprofile()
    sys.setprofile(profile)
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])


def faults(gauge: Gauge, found: Found, recorded: Found) -> list[str]:
    """List gauges that do more than recorded, or grow too fast with the cluster."""
    said = []
    for size, counts in found.items():
        for unit, now, before in zip(
            Counts._fields, counts, recorded.get(size, counts), strict=True
        ):
            if now > before * TOLERANCE:
                said.append(f"{size}: {unit} {before:,} -> {now:,}")
    small, *larger = found.values()
    for what, bound, large in zip(("agents", "frameworks"), gauge.growth, larger, strict=True):
        for unit, one, two in zip(Counts._fields, small, large, strict=True):
            if two > one * bound:
                said.append(f"twice the {what}: {unit} x{two / max(one, 1):.2f}, over x{bound}")
    return said


def read() -> dict[str, Found]:
    """The recorded counts; None if another version of Python recorded them, as steps differ."""
    kept = tomllib.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    if kept.pop("python", PYTHON) != PYTHON:
        print("Recorded with another Python: only growth is judged.\n")
        return {}
    return {name: {at: Counts(*each) for at, each in rows.items()} for name, rows in kept.items()}


def write(recorded: dict[str, Found]) -> None:
    """Store the counts."""
    lines = ["# Written by `make gate ARGS=--record`: " + ", ".join(Counts._fields)]
    lines.append(f'python = "{PYTHON}"')
    for name, found in recorded.items():
        lines += ["", f'["{name}"]']
        lines += [f'"{size}" = {list(counts)}' for size, counts in found.items()]
    RECORDED.write_text("\n".join(lines) + "\n")


def cell(now: int, before: int) -> str:
    """Format a count, and its difference from the recorded one."""
    return f"{now:,}" if now == before else f"{now:,} ({now / max(before, 1) - 1:+.2%})"


def main() -> None:
    """Count, print a table, and fail if a gauge fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="keep these counts from now on")
    parser.add_argument("--gauges", nargs="*", default=list(GAUGES), choices=list(GAUGES))
    given = parser.parse_args()
    recorded = read()
    said = []
    print("| gauge | agents x frameworks |", " | ".join(Counts._fields), "|")
    print("|---" * (2 + len(Counts._fields)) + "|")
    for name in given.gauges:
        found = count(GAUGES[name])
        before = {} if given.record else recorded.get(name, {})
        for size, counts in found.items():
            cells = map(cell, counts, before.get(size, counts))
            print(f"| {name} | {size} |", " | ".join(cells), "|", flush=True)
        said += [f"{name}, {each}" for each in faults(GAUGES[name], found, before)]
        recorded[name] = found
    if given.record:
        write({name: recorded[name] for name in GAUGES if name in recorded})
    if said:
        accept = "" if given.record else "\nIf this is meant: make gate ARGS=--record"
        sys.exit("\n".join(["more work than allowed:", *said]) + accept)


if __name__ == "__main__":
    main()
