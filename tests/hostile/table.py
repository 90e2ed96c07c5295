"""Prints the cost of each manner of the crew, measured in its own process with limits.

    python -m tests.hostile.table
    python -m tests.hostile.table --stage wired --agents 100 roles-many filter-deep
    python -m tests.hostile.table --keep now

The last one stores the measurements for `docs/explanation/hostile-tenants.md`, which `make docs`
writes. A manner that exceeds the limits is reported as a finding.
"""

import argparse
import json
import multiprocessing
import resource
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from allocator.server.system import loop_cache
from tests.hostile import simulated, wired
from tests.hostile.crew import CREW
from tests.hostile.measuring import AGENTS, INTERVALS, Figures
from tests.hostile.words import Manner
from tests.simulation.brain import LIBRARY, library_path

NO_TENANTS = Manner("none", "the same cluster without tenants")
KEPT = Path(__file__).resolve().parents[2] / "tools/docs/data/hostile-tenants.json"
CPU_S, MEMORY_MIB = 120, 6 * 1024

COLUMNS = (
    "manner", "core s", "most s", "module s", "most s", "memory MiB", "sessions ended",
    "longest wait", "page s", "page lines", "metrics lines", "below 0", "set aside",
)  # fmt: skip


def main() -> None:
    """Measure the named manners, or all, and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--stage", choices=("simulated", "wired"), default="simulated")
    parser.add_argument("--agents", type=int, default=AGENTS, help="honest ones")
    parser.add_argument("--intervals", type=int, default=INTERVALS)
    parser.add_argument("--keep", choices=("before", "now"), help="for the page in docs")
    given = parser.parse_args()
    library = library_path()
    if library is None and given.stage == "simulated":
        parser.error(f"set {LIBRARY} to the brain's library; `make module` builds it")
    crew = [each for each in (NO_TENANTS, *CREW) if not given.names or each.name in given.names]
    loop_cache.prepare()
    play(NO_TENANTS, library, given)  # load everything before processes are forked
    _say(COLUMNS)
    _say("---" for _ in COLUMNS)
    for manner in crew:
        found = _measure(manner, library, given)
        _say(_row(manner.name, found))
        if given.keep:
            _keep(manner.name, found, given)


def play(manner: Manner, library: Path | None, given: argparse.Namespace) -> Figures:
    """Play a manner on the chosen stage."""
    if given.stage == "wired":
        return wired.play(manner, given.agents, given.intervals)
    assert library is not None
    stage = simulated.Stage(manner, library, given.agents)
    return stage.play(given.intervals)


def _measure(manner: Manner, library: Path | None, given: argparse.Namespace) -> dict[str, Any]:
    """Play a manner in its own process; returns its figures, or ``failed`` and the reason."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=_one, args=(manner, library, given, sender))
    process.start()
    sender.close()
    try:
        found: dict[str, Any] = receiver.recv()
    except EOFError:
        found = {"failed": f"more than {CPU_S} s of a processor"}
    process.join()
    return found


def _one(
    manner: Manner, library: Path | None, given: argparse.Namespace, sender: Connection
) -> None:
    """Play a manner under resource limits, and send its figures."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MIB * 2**20, MEMORY_MIB * 2**20))
    try:
        sender.send(asdict(play(manner, library, given)))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is this manner's finding
        sender.send({"failed": f"{type(error).__name__}: {error}"[:80]})


def _row(name: str, figures: dict[str, Any]) -> Iterator[str]:
    """Format a row of the table: the figures, or the reason of a failure."""
    yield name
    if "failed" in figures:
        yield figures["failed"]
        return
    for each in ("core_s", "core_most_s", "brain_s", "brain_most_s"):
        yield f"{figures[each]:.2f}"
    for each in ("memory_mib", "ended", "wait"):
        yield f"{figures[each]:.0f}"
    yield f"{figures['page_s']:.2f}"
    yield from (str(figures["lines"][page]) for page in ("page", "metrics"))
    yield str(len(figures["negative"]))
    yield ", ".join(f"{each} {n}" for each, n in sorted(figures["set_aside"].items()))


def _keep(name: str, figures: dict[str, Any], given: argparse.Namespace) -> None:
    """Store figures in the data file."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    row = figures
    if "failed" not in figures:
        row = {each: round(figures[each], 2) for each in ("core_s", "brain_s", "page_s")}
        row |= {each: round(figures[each]) for each in ("memory_mib", "ended", "wait")}
        row |= {"lines": figures["lines"], "below_0": len(figures["negative"])}
        row["set_aside"] = figures["set_aside"]
    kept.setdefault(given.stage, {}).setdefault(given.keep, {})[name] = row
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _say(cells: Iterable[str]) -> None:
    print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
