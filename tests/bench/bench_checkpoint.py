"""Cost of a checkpoint: the time that the core waits, and the work of the writing thread.

python tests/bench/bench_checkpoint.py [AGENTS FRAMEWORKS HOLDINGS FILTERS]
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from allocator.core import AddFilters, Allocator, Hold, Holdings, PolicySpec, Settings
from allocator.core.checkpoint import Detached, nbytes_of, restore, to_columns
from allocator.policies import build
from allocator.server.system.frozen import frozen
from allocator.wire.journal.checkpoint import mark, read_checkpoint, write_checkpoint
from tests.bench.cluster import cluster

_T = TypeVar("_T")


def measured(name: str, work: Callable[[], _T]) -> _T:
    begun_s, begun_cpu_s = time.perf_counter(), time.thread_time()
    result = work()
    took_s, cpu_s = time.perf_counter() - begun_s, time.thread_time() - begun_cpu_s
    print(f"{name:28} {1000 * took_s:10.1f} ms, of the processor {1000 * cpu_s:10.1f} ms")
    return result


def pairs(agents: int, frameworks: int, count: int, roles: int) -> tuple[np.ndarray, ...]:
    """Distinct (framework, role, agent), spread over all."""
    chosen = np.random.default_rng(0).choice(agents * frameworks, count, replace=False)
    framework = 1 + chosen // agents
    return framework, 1 + framework % roles, 1 + chosen % agents


def fill(allocator: Allocator, agents: int, frameworks: int, held: int, refused: int) -> None:
    roles, kind, at_once = min(100, frameworks), np.array([0, 1]), 50_000
    random = np.random.default_rng(1)
    where = pairs(agents, frameworks, held, roles)
    for first in range(0, held, at_once):
        framework, role, agent = (column[first : first + at_once] for column in where)
        amount = random.integers(1, 50, (len(agent), 2)) * 10
        allocator.step(Hold(Holdings(framework, role, agent, kind, amount)))
    where = pairs(agents, frameworks, refused, roles)
    for first in range(0, refused, at_once):
        framework, role, agent = (column[first : first + at_once] for column in where)
        amount = random.integers(1, 50, (len(agent), 2)) * 1000
        expires_ms = random.integers(10**6, 10**8, len(agent))
        allocator.step(AddFilters(Holdings(framework, role, agent, kind, amount), expires_ms))


def main(agents: int, frameworks: int, held: int, refused: int) -> None:
    print(f"{agents} agents, {frameworks} frameworks, {held} holdings, {refused} filters")
    spec = PolicySpec("drf", mode="characterised")
    allocator = cluster(agents, frameworks, spec)
    fill(allocator, agents, frameworks, held, refused)
    measured("(a cycle)", lambda: allocator.allocate(1000))
    for _ in range(3):
        measured("its size", lambda: nbytes_of(allocator.kept()))
        # If the pipe has no reader, the child ends.
        measured("fork: the core waits", lambda: frozen(lambda: iter([b""])).close())
    measured("copy, where none is forked", lambda: Detached(allocator.kept()))
    for _ in range(3):
        measured("again, in warm memory", lambda: Detached(allocator.kept()))
    detached = Detached(allocator.kept())
    print(f"{'arrays':28} {nbytes_of(detached.value) / 2**20:10.1f} MiB")
    root = measured("into columns", lambda: to_columns(detached.value))
    records = measured("compress, digest, serialize", lambda: list(write_checkpoint(root)))
    size = sum(record.ByteSize() for record in records)
    print(f"{'on disk':28} {size / 2**20:10.1f} MiB")
    end = measured("digest alone", lambda: mark(root))
    pieces = [record.checkpoint_piece for record in records[:-1]]
    read = measured("read", lambda: read_checkpoint(pieces, end))
    fresh = Allocator(build, Settings(policy=spec))
    measured("restore", lambda: fresh.resume(restore(read, fresh.kept())))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:] or ["50000", "6000", "1000000", "1000000"]))
