"""The page about hostile tenants: what each manner does, and what it cost before and costs now."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # tests are not installed
from tests.hostile.crew import CREW

DATA = Path(__file__).resolve().parent / "data"
KEPT = DATA / "hostile-tenants.json"
AT_SCALE = DATA / "hostile-at-scale.json"
HOUR = DATA / "hostile-hour.jsonl"

STAGES = {
    "simulated": "## Module and sidecar together",
    "wired": "## The sidecar alone",
}

INTRODUCTION = """\
# Hostile tenants

<!-- `make docs` writes this file. -->

This page shows how much time and memory hostile frameworks and agents can cost, now and before the
allocator bounded their input. Any program may register with a Mesos master, so input from
frameworks and agents is untrusted. [Security](security.md) describes the bounds.

Each hostile behaviour (*manner*) is defined once (`tests/hostile/crew.py`), and run in three ways:

- with the module's brain and the sidecar in one process, and with the sidecar alone
  (`tests/hostile/test_crew.py`);
- with a sidecar process (`python -m tests.torture`);
- with a real master, if one is available (`tests/cluster/test_tenants.py`).

The cluster also has eight honest agents, and an honest framework with a guarantee, which declines
all its offers. The tests require that this framework waits at most three intervals, that no session
ends, that memory grows by at most 100 MiB (with the sidecar alone, by 300 MiB), and that no page of
metrics has 20,000 lines.

A second test has one hostile tenant, an honest framework without a guarantee, and two agents, for
twelve intervals. The honest framework must be served in turn with the hostile one, and again waits
at most three intervals.
"""

MEASURED = """\
The tables show the processor time of the core and of the module, and memory, in six intervals with
the tenants. *Wait* is the maximum number of consecutive intervals without an offer to the honest
framework. *Lines* is the number of lines of the longest page. Each cell has the figure before there
were bounds, and then the present one. A dash means that the manner was defined after the bounds,
and never run without them. A question mark means that the run did not finish.

`python -m tests.hostile.table` makes these measurements, with one process for each manner, limited
to 120 s of processor time and 6 GiB.
"""

IN_A_LARGE_CLUSTER = """\
## The core of a large cluster

This test has agents with 20 attributes each. In each cycle all agents are offered to an honest
framework, which returns them. The table shows the core's processor time minus that of the same
cycles without hostile tenants, the longest time between two offers to the honest framework (in
processor time of the core), and the growth of the peak memory. The observer needs the same memory
again. Each cell has the figure with {fewer} agents, and then with {more}. With more agents, cycles
take longer, and more memory is needed for pairs of an agent with a client that it excludes, or with
an invented resource name. Measured on 30 November 2026 on a quiet machine, in one process each.

`python -m tests.hostile.at_scale` makes these measurements.
"""

AN_HOUR = """\
## An hour with a real master

In this run, all manners that existed at the time ran one after another with the same Mesos master
(1.12.0-dev), one sidecar and one honest framework. No session may end. *Wait* is again in
intervals. Memory is that of the processes after the tenants of a manner had left. Mesos itself
remembers completed frameworks; the flag `max_completed_frameworks=0` disables that. *Refused*
counts requests that the master itself rejected, by its answer.

There are two agents, and the honest framework has no guarantee. Each framework has one turn before
any framework has a second one; a turn is a cycle. At the time of this run, a framework with
thousands of roles could still take all agents in its turn. With seven such frameworks
(`roles-more-than-fit`) the honest framework therefore waited longer than three intervals. Since
then only [one role of a framework](../decisions/004-ties-by-turns.md) competes for the first turn
of each cycle. In five repetitions with a real master, the honest framework waited 2 to 3 intervals,
and 1 to 3 with `revive-role-by-role`.

`python -m tests.cluster.hour --seconds 3600 --flag max_completed_frameworks=0` repeats the run.
"""

NOTHING = "\N{EN DASH}"

SAME = "In this test there is no module that bounds the input before the sidecar receives it.\n"


def page() -> str:
    """The whole page."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    parts = [INTRODUCTION, "| manner | |", "|---|---|"]
    parts += [f"| `{each.name}` | {_cell(each.does)} |" for each in CREW]
    parts += ["", MEASURED]
    for stage, title in STAGES.items():
        parts += [title, "", *([SAME] if stage == "wired" else []), *_table(kept[stage]), ""]
    parts += [*_at_scale(), "", AN_HOUR, *_hour(), ""]
    return "\n".join(parts)


def _table(kept: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield "| manner | core s | module s | MiB | sessions ended | wait | lines | set aside now |"
    yield "|---|---|---|---|---|---|---|---|"
    for each in CREW:
        before, now = kept["before"].get(each.name, {}), kept["now"].get(each.name, {})
        pairs = zip(_cells(before), _cells(now), strict=True)
        cells = [f"{was} → {is_}" for was, is_ in pairs]
        cells.append(", ".join(sorted(now.get("set_aside", {}))))
        yield f"| `{each.name}` | {' | '.join(cells)} |"


def _at_scale() -> Iterator[str]:
    kept = json.loads(AT_SCALE.read_text(encoding="utf-8"))
    fewer, more = sorted(kept["cost"], key=int)
    yield IN_A_LARGE_CLUSTER.format(fewer=f"{int(fewer):,}", more=f"{int(more):,}")
    yield "| scenario | | core s | wait s | MiB |"
    yield "|---|---|---|---|---|"
    for name, does in kept["does"].items():
        rows = (kept["cost"][agents].get(name, [NOTHING] * 3) for agents in (fewer, more))
        cells = " | ".join(f"{few} → {many}" for few, many in zip(*rows, strict=True))
        yield f"| `{name}` | {_cell(does)} | {cells} |"


def _hour() -> Iterator[str]:
    first, *manners, whole = map(json.loads, HOUR.read_text(encoding="utf-8").splitlines())
    master, sidecar = first["at first"]
    most_master, most_sidecar = whole["most"]
    yield (
        f"In {whole['seconds']:,} s {whole['manners played']} manners ran, and "
        f"{sum(whole['ends'].values())} sessions ended. The master grew from {master:.0f} to "
        f"{most_master:.0f} MiB, the sidecar from {sidecar:.0f} to {most_sidecar:.0f}.\n"
    )
    yield "| manner | took s | wait | sessions ended | master MiB | sidecar MiB | refused |"
    yield "|---|---|---|---|---|---|---|"
    for row in manners:
        wait = row.get("wait", _cell(row.get("wrong", "?")))
        ended, (of_master, of_sidecar) = sum(row["ends"].values()), row["mib"]
        refused = ", ".join(f"{count} x {code}" for code, count in sorted(row["refused"].items()))
        yield (
            f"| `{row['manner']}` | {row['took_s']} | {wait} | {ended} | {of_master:.0f} | "
            f"{of_sidecar:.0f} | {_cell(refused)} |"
        )


def _cells(row: dict[str, Any]) -> list[str]:
    if "failed" in row:
        return [_cell(row["failed"]), *["?"] * 5]
    if not row:
        return [NOTHING] * 6
    return [
        f"{row['core_s']:.2f}",
        f"{row['brain_s']:.2f}",
        f"{row['memory_mib']}",
        f"{row['ended']}",
        f"{row['wait']}",
        f"{max(row['lines'].values()):,}",
    ]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
