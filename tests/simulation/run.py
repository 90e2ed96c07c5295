"""Runs many seeds of the simulation in parallel, and prints the first violation of each.

    python -m tests.simulation.run --seeds 0-99 --acts 10000

Repeat a failed seed with ``--seeds N``, and add it to `FOUND` of the tests once its defect is
fixed.
"""

import argparse
import multiprocessing
import os
import sys
import time
import traceback
from functools import partial
from pathlib import Path

from allocator.server.system import loop_cache
from tests.simulation.brain import LIBRARY, library_path
from tests.simulation.simulation import Simulation

AUDIT_EVERY = 1000
"""Acts between two audits."""


def play(seed: int, acts: int, library: Path) -> tuple[int, str, int, int, str]:
    """Run one seed; returns it, the violation, numbers of events and faults, the trace's hash."""
    simulation = Simulation(seed, library)
    try:
        for _ in range(0, acts, AUDIT_EVERY):
            simulation.run(min(AUDIT_EVERY, acts))
    except Exception:  # noqa: BLE001 - whatever it is, it is this seed's finding.
        wrong = f"seed {seed}, event {simulation.events}:\n{traceback.format_exc()}"
    else:
        wrong = ""
    return seed, wrong, simulation.events, simulation.faulted, simulation.digest()


def main() -> int:
    """Run the seeds; returns 1 if one found a violation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0-9", help="one, or a range: 3, 0-99")
    parser.add_argument("--acts", type=int, default=10_000, help="of the world, for each seed")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    given = parser.parse_args()
    library = library_path()
    if library is None:
        parser.error(f"set {LIBRARY} to the brain's library; `make module` builds it")
    loop_cache.prepare()
    first, _, last = given.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    begin, failed, events, faults = time.monotonic(), 0, 0, 0
    with multiprocessing.get_context("spawn").Pool(given.workers) as pool:
        one = partial(play, acts=given.acts, library=library)
        for _, wrong, happened, struck, _ in pool.imap_unordered(one, seeds):
            events, faults = events + happened, faults + struck
            if wrong:
                failed += 1
                print(wrong, file=sys.stderr, flush=True)
    print(
        f"{len(seeds)} seeds, {events:,} events, {faults:,} faults:"
        f" {failed} seeds failed; {time.monotonic() - begin:.0f} s"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
