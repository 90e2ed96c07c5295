"""The page about hostile tenants: what each manner does, and what it cost before and costs now."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from allocator.lab.hostile import CREW

DATA = Path(__file__).resolve().parent / "data"
KEPT = DATA / "hostile-tenants.json"
HOUR = DATA / "hostile-hour.jsonl"

STAGES = {
    "simulated": "## The module's brain, the session and the core",
    "wired": "## The sidecar alone",
}

INTRODUCTION = """\
# Hostile tenants

<!-- `make docs` writes this file. -->

This page shows what hostile frameworks and agents can cost, before there were bounds and now.
Anybody may register with a Mesos master, so what a framework or an agent says is a stranger's word.
The rules behind the figures are on [Security](security.md).

Each *manner* of hostility stands once in `allocator/lab/hostile/`. It is played

- with the module's brain and the sidecar in one process, and before the sidecar alone
  (`tests/hostile/test_crew.py`);
- before a sidecar process (`mesos-allocator torture`);
- before a real master, where one is at hand (`tests/cluster/test_tenants.py`).

Beside it stand eight honest agents and an honest framework with a guarantee, which declines
whatever it is offered. It may wait three intervals at most, and no session may end. Memory grows by
100 MiB at most (before the sidecar alone by 300), and no page has 20,000 lines.

Beside one tenant it also stands without a guarantee, in a cluster of two agents, for twelve
intervals: there it has its turns, and waits no longer than three intervals either.
"""

MEASURED = """\
The tables have processor time of the core and of the module, and memory, in six intervals with the
tenants. *Wait* is the most intervals in a row in which the honest framework was offered nothing.
*Lines* are those of the longest page. In each cell stands what was before there were bounds, and
what is now. A dash stands for no figure: the manner is younger than the bounds, and was never
played without them. A question mark stands where a manner did not come to its end.

`python -m tests.hostile.table` measures it, one process for each, with 120 s of a processor and
6 GiB.
"""

AN_HOUR = """\
## An hour before a real master

Here all manners that there were by then meet in one life of a Mesos master (1.12.0-dev), one after
the other, with one sidecar and one honest framework. No session may end in it. *Wait* is again in
intervals. Memory is what the processes had when the manner's tenants had left. Mesos itself keeps
frameworks that have completed. The flag `max_completed_frameworks=0` leaves that out. *Refused*
is what the master itself did not take, by its answer.

There are two agents and no guarantee. Each framework has its turn once before another one has its
second, and a turn is a cycle. In this hour a framework of very many roles could still take all
agents in its turn, so beside seven of those (`roles-more-than-fit`) the honest framework waited
longer than three intervals. Since then [one role of a framework](../decisions/004-ties-by-turns.md)
is in front in each cycle. Played again before a real master, five times each, it waited 2 to 3
intervals, and 1 to 3 beside `revive-role-by-role`.

`python -m tests.cluster.hour --seconds 3600 --flag max_completed_frameworks=0` plays it.
"""

NOTHING = "\N{EN DASH}"

SAME = "Before the sidecar alone no module bounds first what it is told.\n"


def page() -> str:
    """The whole page."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    parts = [INTRODUCTION, "| manner | |", "|---|---|"]
    parts += [f"| `{each.name}` | {_cell(each.does)} |" for each in CREW]
    parts += ["", MEASURED]
    for stage, title in STAGES.items():
        parts += [title, "", *([SAME] if stage == "wired" else []), *_table(kept[stage]), ""]
    parts += [AN_HOUR, *_hour(), ""]
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


def _hour() -> Iterator[str]:
    first, *manners, whole = map(json.loads, HOUR.read_text(encoding="utf-8").splitlines())
    master, sidecar = first["at first"]
    most_master, most_sidecar = whole["most"]
    yield (
        f"In {whole['seconds']:,} s {whole['manners played']} were played, and "
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
