"""How good forecasts are: the page is written from results that are kept.

`tests.explain.lives` keeps those of simulations, and `gang_days.py` those of recorded days.
`python tools/docs/forecasts.py` draws the picture.
"""

import json
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
KEPT = HERE / "data" / "forecasts.json"
RECORDED = HERE / "data" / "which-policy" / "gang_days.json"
PICTURE = HERE.parents[1] / "docs" / "pictures" / "forecasts.svg"

Rows = list[dict[str, int]]

PAGE = """\
# How good forecasts are

<!-- `make docs` writes this file. -->

`mesos-allocator explain framework NAME` forecasts the [next
offer](modes.md#when-is-it-my-turn) of a framework as a range, from p50 to p95. If the forecasts
were exact, half of all offers would come before the p50, and 95 % before the p95. This page
compares them with what happened in {lives} random simulations (`python -m tests.explain.lives`).

Each simulation has 3 to 7 agents, and 2 to 5 frameworks in two roles, which always want more. Their
tasks have 1 to 3 CPUs. The mean duration of a framework's tasks is between 5 and 40 s: half of them
take half of the mean, the durations of the others are exponentially distributed. A cycle takes 1 s,
and the policy is DRF in characterised mode. After 100 s, every 10 s, each waiting framework gets a
forecast if it has none; a forecast ends when the offer comes or is late.

{rows}

- The p95 is a safe bound: at most {late} % of the offers came later.
- The p50 is pessimistic, and more so the further ahead it is. One cause is that forecasts assume
  that tasks that begin meanwhile do not end. If the p50 is more than a few seconds ahead, read the
  range as an upper bound.

## On recorded days

The same comparison for {windows} windows of two days of the openb trace, which are [played with
stated gangs and backfill](which-policy.md#two-days-of-a-gpu-cluster). Decisions are made every two
minutes, so shorter forecasts cannot be exact. Durations of tasks are those of the trace, and
nothing is learnt when a window begins. Every ten minutes, every framework that waits gets a
forecast, if enough is learnt. Of these offers, {part:.1f} % came before the p95. Here jobs also
arrive and leave, which forecasts do not foresee.

{recorded}

![Parts of the offers that came before the p50 and the p95](../pictures/forecasts.svg)

The metric `mesos_allocator_offer_forecasts_total`
[measures this](../how-to/scale.md#how-good-forecasts-are) in your own cluster.
"""


def binned(offered: Sequence[tuple[int, int, int]], edges_s: Sequence[int]) -> Rows:
    """Count offers before the p50 and the p95, by how far ahead the p50 was.

    `offered`: p50 and p95 of each forecast, and when the offer came, in ms after it.
    """
    rows = []
    for first_s, end_s in pairwise(edges_s):
        some = [each for each in offered if first_s <= each[0] / 1000 < end_s]
        before = [sum(when <= each[at] for *each, when in some) for at in (0, 1)]
        rows.append({"from_s": first_s, "count": len(some), "p50": before[0], "p95": before[1]})
    return rows


def page(kept: Path = KEPT, recorded: Path = RECORDED) -> str:
    """The whole page, from the results that are kept."""
    lives, days = (json.loads(each.read_text("utf-8")) for each in (kept, recorded))
    parts = [100 * row["p95"] / row["count"] for row in lives["rows"] if row["count"]]
    count, held = (sum(row[at] for row in days["forecasts"]) for at in ("count", "p95"))
    return PAGE.format(
        part=100 * held / count,
        lives=lives["lives"],
        windows=days["windows"],
        rows=_table(lives["rows"]),
        recorded=_table(days["forecasts"]),
        late=math.ceil(100 - min(parts)),
    )


def _table(rows: Rows) -> str:
    spans = [*_spans(rows), "all"]
    rows = [row for row in rows if row["count"]]
    rows.append({at: sum(row[at] for row in rows) for at in ("count", "p50", "p95")})
    lines = (
        f"| {span} | {row['count']:,} | {100 * row['p50'] / row['count']:.1f}"
        f" | {100 * row['p95'] / row['count']:.1f} |"
        for span, row in zip(spans, rows, strict=True)
    )
    head = (
        "| p50 of the forecast | forecasts | before the p50 (%) | before the p95 (%) |",
        "|---|---:|---:|---:|",
    )
    return "\n".join((*head, *lines))


def _spans(rows: Rows) -> list[str]:
    """Name the times of rows that have forecasts."""
    ends_s = [row["from_s"] for row in rows[1:]]
    unit_s, unit = (60, "min") if rows[1]["from_s"] >= 60 else (1, "s")
    spans = [
        f"{row['from_s'] // unit_s} to {end_s // unit_s} {unit}"
        for row, end_s in zip(rows, ends_s, strict=False)
    ]
    spans.append(f"{rows[-1]['from_s'] // unit_s} {unit} or more")
    return [span for span, row in zip(spans, rows, strict=True) if row["count"]]


def draw(lives: Rows, days: Rows) -> None:
    """Draw which part of the offers came before the p50 and the p95, by how far ahead it was."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from laboratory.reports.plots import COLOURS, SETTINGS

    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(7.4, 3), layout="constrained")
        both = figure.subplots(1, 2, sharey=True)
        for axes, title, rows in zip(
            both, ("simulations", "recorded days"), (lives, days), strict=True
        ):
            some = [row for row in rows if row["count"]]
            for name, colour in zip(("p50", "p95"), COLOURS, strict=False):
                parts = [100 * row[name] / row["count"] for row in some]
                axes.plot(range(len(some)), parts, "o-", color=colour, markersize=4, label=name)
                axes.axhline(float(name[1:]), linestyle="--", color=colour, linewidth=0.8)
            names = [span.replace(" or more", " +") for span in _spans(rows)]
            axes.set_xticks(range(len(some)), names, rotation=30, ha="right")
            axes.set(title=title, xlabel="p50 of the forecast", ylim=(-3, 103))
        both[0].set_ylabel("offers before it (%)")
        both[0].legend(title="dashed: exact", frameon=False, fontsize=8, loc="lower right")
        save(figure, PICTURE)


def save(figure: "Figure", path: Path) -> None:
    """Write an SVG whose lines have no spaces at their ends."""
    figure.savefig(path, metadata={"Date": None})
    lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n", "utf-8")


if __name__ == "__main__":
    rows_of = (json.loads(each.read_text("utf-8")) for each in (KEPT, RECORDED))
    draw(next(rows_of)["rows"], next(rows_of)["forecasts"])
