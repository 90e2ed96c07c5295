"""The page about scaling limits, from the measurements of `tests/bench/scaling.py`.

Costs are fitted by a sum of parts: fixed, per agent, per framework, and per pair of these. Figures
for sizes that were not measured follow from the fit; the page also states the error of the fit at
measured sizes.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

KEPT = Path(__file__).resolve().parent / "data" / "scaling.json"

INTERVAL_MS = 1_000
START_MS = 10_000
MEMORY_MIB = 16 * 1024
CELLS = (2, 4, 8)
LARGE = (200_000, 10_000)
"""The cluster that is cut into cells: agents, frameworks."""

HEAD = """\
# How far one sidecar goes

<!-- `make docs` writes this file. -->

This page shows how much time and memory a sidecar needs, depending on the size of the cluster, and
which cluster is too large for one sidecar. Use it to [size your own](../how-to/size.md).

Three operations are measured, under DRF in oblivious mode, with a hundred roles:

- *snapshot*: a new master sends the state of its whole cluster;
- *re-offer*: all agents are declined, and offered again;
- *idle*: a cycle finds nothing to offer, because everything is on offer; the time includes the
  outcomes of all offers.

Times are the sidecar's processor time, including reading and writing messages, but without gRPC. A
sidecar decides on one thread, so the elapsed time is at least as long. *Bytes* is the size of the
protobuf messages in both directions. Memory is resident memory, with the emulated master in the
same process.

`python -m tests.bench.scaling --out tools/docs/data/scaling.json` measures it again.
"""

GROWTH = """\
The *power* of agents (or frameworks) is computed between the two largest numbers of agents (or
frameworks), at the largest number of the other: 1 means that twice as many cost twice as much. The
costs were also fitted by a sum of four parts: a fixed part, and parts for each agent, each
framework and each pair of these. The last column is the largest relative error of this fit at any
size in the table above.
"""

LIMITS = """\
These numbers are computed from the fit; the large ones are far beyond the sizes that were measured.
The smallest number in a column is the size beyond which a sidecar is too slow or too large. The
limits in the configuration (`[limits]`) may be reached earlier.
"""

MODULE = """\
This table shows the elapsed time from declining all agents until all are offered again, with the
module and a sidecar, and with Mesos's own allocator. The program `driver` takes the place of the
master in both cases, with Mesos's own libraries and one role. The time includes both directions
through gRPC. It grows with the number of offers; the last column is the number of agents at which
it reaches an interval of 1 s.
"""

SPLIT = """\
A cluster that is too large for one sidecar could be divided into cells. Each cell would have some
of the top-level roles, a part of the agents in proportion to the weights of these roles, and a
sidecar of its own. Within a cell, shares would be as fair as now. Between cells, they would be fair
only as far as agents are distributed by weight. Idle resources of one cell could not be used by
another until agents are redistributed.

A master has only one allocator, so cells would need a module that uses several sidecars. Such a
module does not exist, and cells would not make the module itself faster.
"""

Row = Mapping[str, float]


class Law(NamedTuple):
    """A cost as ``fixed + agent * A + framework * F + pair * A * F``, none of it negative.

    Attributes
    ----------
    fixed, agent, framework, pair : float
    error : float
        The largest relative error if it was measured.
    """

    fixed: float
    agent: float
    framework: float
    pair: float
    error: float = 0.0

    def at(self, agents: float, frameworks: float) -> float:
        """Cost of a cluster."""
        each_agent = self.agent + self.pair * frameworks
        return self.fixed + each_agent * agents + self.framework * frameworks

    def agents_for(self, cost: float, frameworks: float) -> float:
        """Number of agents that costs this much."""
        left = cost - self.fixed - self.framework * frameworks
        return left / (self.agent + self.pair * frameworks)


class Cost(NamedTuple):
    """Something that is measured, and how it is shown."""

    key: str
    title: str
    shown: Callable[[float], str]


def _ms(value: float) -> str:
    return f"{value:,.1f} ms" if value < 100 else f"{value:,.0f} ms"


def _mib(value: float) -> str:
    return f"{value:,.0f} MiB"


def _bytes(value: float) -> str:
    return f"{value / 2**20:,.2f} MiB"


COSTS = (
    Cost("snapshot_ms", "snapshot", _ms),
    Cost("snapshot_bytes", "snapshot, bytes", _bytes),
    Cost("reoffer_ms", "re-offer", _ms),
    Cost("reoffer_bytes", "re-offer, bytes", _bytes),
    Cost("idle_ms", "idle", _ms),
    Cost("memory_mib", "memory", _mib),
)


def law(rows: Sequence[Row], key: str) -> Law:
    """Fit a cost; every size counts by its relative error."""
    agents, frameworks, cost = (
        np.array([row[name] for row in rows]) for name in ("agents", "frameworks", key)
    )
    terms = np.column_stack([np.ones(len(rows)), agents, frameworks, agents * frameworks])
    # Scaled, so that no term is tiny beside the others.
    scale = terms.max(axis=0)
    found, _ = nnls(terms / scale / cost[:, None], np.ones(len(rows)))
    fitted = Law(*(found / scale).tolist())
    error = max(abs(fitted.at(row["agents"], row["frameworks"]) / row[key] - 1) for row in rows)
    return fitted._replace(error=error)


def exponent(rows: Sequence[Row], key: str, along: str) -> float:
    """By what power a cost grows along one side, between the two largest sizes of it."""
    other = "frameworks" if along == "agents" else "agents"
    most = max(row[other] for row in rows)
    *_, before, last = sorted((row[along], row[key]) for row in rows if row[other] == most)
    return float(np.log(last[1] / before[1]) / np.log(last[0] / before[0]))


def page(kept: Path = KEPT) -> str:
    """The whole page, from the figures that are kept."""
    found = json.loads(kept.read_text("utf-8"))
    laws = {cost.key: law(found["rows"], cost.key) for cost in COSTS}
    return "\n".join(
        [
            HEAD,
            f"Processor: one core of {found['processor']}.\n",
            *_measured(found["rows"]),
            *_growth(found["rows"], laws),
            *_limits(laws),
            *_module(found["module"]),
            *_cells(laws),
        ]
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def _size(agents: float, frameworks: float) -> str:
    return f"{agents:,.0f} x {frameworks:,.0f}"


def _measured(rows: Sequence[Row]) -> list[str]:
    head = ["agents x frameworks", *(cost.title for cost in COSTS)]
    cells = [
        [_size(row["agents"], row["frameworks"]), *(cost.shown(row[cost.key]) for cost in COSTS)]
        for row in rows
    ]
    return ["## What was measured\n", *_table(head, cells)]


def _growth(rows: Sequence[Row], laws: Mapping[str, Law]) -> list[str]:
    cells = []
    for cost in COSTS:
        its = laws[cost.key]
        powers = [exponent(rows, cost.key, along) for along in ("agents", "frameworks")]
        parts = (its.fixed, 1_000 * its.agent, 1_000 * its.framework, 1_000_000 * its.pair)
        cells.append(
            [
                cost.title,
                *(f"{power:.2f}" for power in powers),
                *(cost.shown(part) for part in parts),
                f"{its.error:.0%}",
            ]
        )
    head = ["cost", "power of agents", "power of frameworks", "fixed", "a thousand agents"]
    head += ["a thousand frameworks", "a million pairs", "largest error"]
    return [
        "## How it grows\n",
        GROWTH,
        *_table(head, cells),
    ]


def _limits(laws: Mapping[str, Law]) -> list[str]:
    asked: list[tuple[str, str, float]] = [
        ("a re-offer of everything takes the interval of 1 s", "reoffer_ms", INTERVAL_MS),
        ("a new master's snapshot takes 10 s", "snapshot_ms", START_MS),
        ("memory reaches 16 GiB", "memory_mib", MEMORY_MIB),
    ]
    frameworks = (100, 1_000, 10_000)
    cells = [
        [text, *(f"{laws[key].agents_for(cost, each):,.0f}" for each in frameworks)]
        for text, key, cost in asked
    ]
    head = ["agents at which", *(f"{each:,} frameworks" for each in frameworks)]
    return [
        "## The largest cluster for one sidecar\n",
        LIMITS,
        *_table(head, cells),
    ]


def _module(rows: Sequence[Row]) -> list[str]:
    cells = [
        [
            _size(row["agents"], row["frameworks"]),
            _ms(row["ours_s"] * 1_000),
            _ms(row["built_in_s"] * 1_000),
            f"{row['ours_s'] / row['built_in_s']:.2f}",
            f"{row['agents'] / row['ours_s']:,.0f}",
        ]
        for row in rows
    ]
    head = ["agents x frameworks", "module and sidecar", "built-in", "ratio", "agents in 1 s"]
    return ["## With the module\n", MODULE, *_table(head, cells)]


def _cells(laws: Mapping[str, Law]) -> list[str]:
    agents, frameworks = LARGE
    costs = [cost for cost in COSTS if cost.key in {"snapshot_ms", "reoffer_ms", "memory_mib"}]
    cells = [
        [
            str(count),
            _size(agents / count, frameworks / count),
            *(cost.shown(laws[cost.key].at(agents / count, frameworks / count)) for cost in costs),
        ]
        for count in (1, *CELLS)
    ]
    head = ["cells", "each", *(f"{cost.title}, each" for cost in costs)]
    return [
        "## Dividing a cluster into cells\n",
        SPLIT,
        f"{_size(agents, frameworks)}, by the fit:\n",
        *_table(head, cells),
    ]
