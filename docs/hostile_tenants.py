"""The page about hostile tenants: what each manner does, and what it cost before and costs now."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from allocator.lab.hostile import CREW

HERE = Path(__file__).resolve().parent
KEPT = HERE / "hostile-tenants.json"

STAGES = {
    "simulated": "## The module's brain, the session and the core",
    "wired": "## The sidecar alone",
}

INTRODUCTION = """\
# Hostile tenants

<!-- `make docs` writes this file. -->

Whatever a framework or an agent may tell a Mesos master is a stranger's. This is the crew that
tries it: each manner stands once in `allocator/lab/hostile/`, and is played with the module's brain
and the sidecar in one process and before the sidecar alone (`tests/hostile/test_crew.py`), before a
sidecar process (`mesos-allocator torture`), and before a real master where one is at hand
(`tests/cluster/test_tenants.py`).

Beside it stand eight honest agents and an honest framework with a guarantee, which declines
whatever it is offered: it may wait three intervals at most, no session may end, memory grows by
100 MiB at most (before the sidecar alone by 300), and no page has 20,000 lines.

Beside one tenant it also stands without a guarantee, in a cluster of two agents, for twelve
intervals: there it has its turns, and waits no longer than three intervals either.
"""

MEASURED = """\
Processor time of the core and of the module, and memory, in six intervals with the tenants; *wait*
is the most intervals in a row in which the honest framework was offered nothing, and *lines* are
those of the longest page. `python -m tests.hostile.table` measures it, one process for each, with
120 s of a processor and 6 GiB. In each cell stands what was before there were bounds, and what is
now.
"""

SAME = "Before the sidecar alone no module bounds first what it is told.\n"


def page() -> str:
    """The whole page."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    parts = [INTRODUCTION, "| manner | |", "|---|---|"]
    parts += [f"| `{each.name}` | {_cell(each.does)} |" for each in CREW]
    parts += ["", MEASURED]
    for stage, title in STAGES.items():
        parts += [title, "", *([SAME] if stage == "wired" else []), *_table(kept[stage]), ""]
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


def _cells(row: dict[str, Any]) -> list[str]:
    if "failed" in row:
        return [_cell(row["failed"]), *["?"] * 5]
    if not row:
        return ["?"] * 6
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
