"""How good forecasts are: the page is written from results that are kept.

`tests.explain.lives` keeps those of simulations; `gang_days.py` and `mapreduce_day.py` keep those
of recorded days.
`python tools/docs/forecasts.py` draws the picture.
"""

import json
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
KEPT = HERE / "data" / "forecasts.json"
RECORDED = HERE / "data" / "which-policy" / "gang_days.json"
MAPREDUCE = HERE / "data" / "mapreduce_day.json"
PICTURE = HERE.parents[1] / "docs" / "pictures" / "forecasts.svg"

Rows = list[dict[str, float]]

COUNTS = ("p50", "p95", "corrected_p50", "corrected_p95")

PAGE = """\
# How good forecasts are

<!-- `make docs` writes this file. -->

`mesos-allocator explain framework NAME` forecasts the [next
offer](modes.md#when-is-it-my-turn) of a framework as a range, from p50 to p95. If forecasts were
exact, half of all offers would come before the p50, and 95 % before the p95; an offer exactly at
the p50 counts half. This page compares them with what happened in simulations and on recorded days:
*computed* as they are computed from learnt durations, and *shown* as `explain` shows them,
corrected by earlier forecasts.

{summary}

The last two columns are the median of the p95 divided by the actual wait: how wide ranges are.

## The correction

The observer makes forecasts for a sample of the frameworks that wait, and remembers for each
principal the last {window} outcomes of each size: the time until the offer came, divided by the p50
that was computed. The median and the 95th percentile of these ratios, times the p50 of a new
forecast, are its shown p50 and p95 ([conformal
prediction](https://doi.org/10.1080/01621459.2017.1307116)). So errors that recur are corrected:
frameworks that arrive later and come first, or tasks that begin and end meanwhile.

- Sizes are powers of two of the allocation interval. A forecast is corrected by those of the most
  similar sizes, as few as {enough} ended waits need.
- A framework can influence what comes of its forecasts, for example by another demand. Therefore
  forecasts of a principal are corrected by its own alone, once {enough} of its waits have ended.
  Before, the latest {of_each} outcomes of each principal count, once {waits} waits have ended;
  until then forecasts are shown as computed. All frameworks without a principal count as one.
- Frameworks that still wait count as waiting longer than now, by the Kaplan-Meier estimate.
  Otherwise, few long waits would be known while many are under way.
- The p95 takes the number of waits into account, because several forecasts during one wait show no
  more than one. With fewer than {enough} waits, it is the largest ratio known.
- The computed p95 is not scaled: tasks that have run longer than all known ones make it arbitrarily
  late.
- No range begins before the next allocation interval has passed, because nothing is decided
  earlier.
- A restarted observer begins without outcomes. The text of a forecast says how many earlier ones
  its correction rests on.

The ranges hold as often as they say if the future resembles what is remembered. After a change of
the workload, it takes about {window} outcomes until they do again.

## In simulations

These are {lives} random simulations (`python -m tests.explain.lives`). In each there are 3 to 7
agents, and 2 to 5 frameworks in two roles. All of them always want more. Their tasks have 1 to 3
CPUs, and each framework's last 5 to 40 s on average: half of them for half the average, the others
exponentially distributed. A cycle takes 1 s, and the policy is DRF in characterised mode. After
100 s, and until 400 s, every framework that waits gets a forecast every 10 s; then the simulation
continues until all these offers have come. Each simulation begins without outcomes of forecasts.

{rows}

## On recorded days

The same comparison for {windows} windows of two days of the openb trace, which are [played with
stated gangs and backfill](which-policy.md#two-days-of-a-gpu-cluster). Decisions are made every two
minutes. Durations of tasks are those of the trace, and nothing is learnt when a window begins; only
outcomes of forecasts are remembered from one window to the next. Every ten minutes, every framework
that waits gets a forecast, if enough is learnt. Jobs arrive and leave meanwhile, which the
computation does not foresee.

{recorded}

In the {others} other windows little ever waits. Their forecasts are corrected by outcomes of these
windows alone. The constants of the correction were chosen by the simulations and the {windows}
windows.

{rest}

## On a day of MapReduce

The same comparison for a day of jobs at Facebook, a [SWIM
sample](https://github.com/SWIMProjectUCB/SWIM/wiki/Workloads-repository). Of its jobs, {fb_jobs:,}
have at most {fb_maps_max} maps (one for each 64 MB of input) and are played, with {fb_maps:,} maps.
The sample names neither durations nor users. Here a map has one CPU and 1.5 GiB for 25 s on average
(log-normal, with a coefficient of variation of 0.5), and jobs belong to ten users in turn, who are
roles and principals. There are {fb_agents} agents, of 4 and 8 CPUs. Decisions are made every
{fb_interval_s} s; every {fb_look_s} s, at most {fb_looked_at} frameworks that wait get a forecast.
Nothing is known at the beginning. The constants of the correction were chosen without this day.

{mapreduce}

![Parts of the offers that came before the p50 and the p95](../pictures/forecasts.svg)

The metric `mesos_allocator_offer_forecasts_total`
[measures this](../how-to/scale.md#how-good-forecasts-are) in your own cluster.
"""


class Judged(NamedTuple):
    """A forecast, and when the offer came, in ms after it.

    `latest_ms`: -1: its p95 is not known, so it is later than anything.
    `corrected`: its p50 and p95 as they were shown, corrected by earlier forecasts.
    """

    expected_ms: int
    latest_ms: int
    corrected: tuple[int, int]
    came_ms: int

    def limits_ms(self) -> tuple[float, ...]:
        """Its p50 and p95, then the corrected ones."""
        latest_ms = math.inf if self.latest_ms < 0 else self.latest_ms
        return self.expected_ms, latest_ms, *self.corrected


def binned(offered: Sequence[Judged], edges_s: Sequence[int]) -> Rows:
    """Count offers before the p50 and until the p95, by how far ahead the p50 was.

    Decisions are made at certain times only, so an offer at the p50 counts half.
    """
    rows: Rows = []
    for first_s, end_s in pairwise(edges_s):
        some = [each for each in offered if first_s <= each.expected_ms / 1000 < end_s]
        row: dict[str, float] = {"from_s": first_s, "count": len(some), **dict.fromkeys(COUNTS, 0)}
        for each in some:
            for name, limit_ms in zip(COUNTS, each.limits_ms(), strict=True):
                at_p50 = name.endswith("p50") and each.came_ms == limit_ms
                row[name] += 0.5 if at_p50 else each.came_ms <= limit_ms
        rows.append(row)
    return rows


def width(offered: Sequence[Judged]) -> dict[str, float]:
    """Medians of the p95 in relation to the wait, before and after the correction."""
    rows = [(*each.limits_ms(), each.came_ms) for each in offered if each.came_ms > 0]
    return {
        "computed": round(median(latest / came for _, latest, _, _, came in rows), 1),
        "corrected": round(median(latest / came for _, _, _, latest, came in rows), 1),
    }


def page(kept: Path = KEPT, recorded: Path = RECORDED, mapreduce: Path = MAPREDUCE) -> str:
    """The whole page, from the results that are kept."""
    from allocator.explain import calibration

    lives, days, fb = (json.loads(each.read_text("utf-8")) for each in (kept, recorded, mapreduce))
    others = days["others"]
    return PAGE.format(
        summary=_summary(
            {
                f"{lives['lives']} simulations": (lives["rows"], lives["width"]),
                f"{days['windows']} windows of recorded days": (days["forecasts"], days["width"]),
                f"{others['windows']} windows with little waiting": (
                    others["rows"],
                    others["width"],
                ),
                "a day of MapReduce": (fb["rows"], fb["width"]),
            }
        ),
        window=calibration.WINDOW,
        waits=calibration.WAITS_MIN,
        enough=calibration.WAITS_ENOUGH,
        of_each=calibration.OF_EACH_MAX,
        lives=lives["lives"],
        windows=days["windows"],
        others=others["windows"],
        rows=_table(lives["rows"]),
        recorded=_table(days["forecasts"]),
        rest=_table(others["rows"]),
        mapreduce=_table(fb["rows"]),
        **{f"fb_{name}": value for name, value in fb.items()},
    )


COLUMNS = "before the p50 (%) | shown | before the p95 (%) | shown"


def _summary(parts: Mapping[str, tuple[Rows, Mapping[str, float]]]) -> str:
    """One line for each group of forecasts."""
    lines = [
        f"| {_cells(name, _sum(rows))} | {width['computed']:g} | {width['corrected']:g} |"
        for name, (rows, width) in parts.items()
    ]
    head = f"| | forecasts | {COLUMNS} | p95 / wait | shown |", "|---|" + "---:|" * 7
    return "\n".join((*head, *lines))


def _table(rows: Rows) -> str:
    spans = [*_spans(rows), "all"]
    rows = [*(row for row in rows if row["count"]), _sum(rows)]
    lines = (f"| {_cells(span, row)} |" for span, row in zip(spans, rows, strict=True))
    head = f"| computed p50 | forecasts | {COLUMNS} |", "|---|" + "---:|" * 5
    return "\n".join((*head, *lines))


def _sum(rows: Rows) -> dict[str, float]:
    return {name: sum(row[name] for row in rows) for name in ("count", *COUNTS)}


def _cells(name: str, row: Mapping[str, float]) -> str:
    order = "p50", "corrected_p50", "p95", "corrected_p95"
    parts = (f"{100 * row[each] / row['count']:.1f}" for each in order)
    return " | ".join((name, f"{row['count']:,.0f}", *parts))


def _spans(rows: Rows) -> list[str]:
    """Name the times of rows that have forecasts."""
    ends_s = [row["from_s"] for row in rows[1:]]
    unit_s, unit = (60, "min") if rows[1]["from_s"] >= 60 else (1, "s")
    spans = [
        f"{row['from_s'] // unit_s:g} to {end_s // unit_s:g} {unit}"
        for row, end_s in zip(rows, ends_s, strict=False)
    ]
    spans.append(f"{rows[-1]['from_s'] // unit_s:g} {unit} or more")
    return [span for span, row in zip(spans, rows, strict=True) if row["count"]]


def draw(lives: Rows, days: Rows, mapreduce: Rows) -> None:
    """Draw which part of the offers came before the p50 and the p95, by how far ahead it was."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from laboratory.reports.plots import COLOURS, SETTINGS

    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(9.6, 3), layout="constrained")
        every = figure.subplots(1, 3, sharey=True)
        titles = "simulations", "days of a GPU cluster", "a day of MapReduce"
        for axes, title, rows in zip(every, titles, (lives, days, mapreduce), strict=True):
            some = [row for row in rows if row["count"]]
            for name, colour in zip(("p50", "p95"), COLOURS, strict=False):
                for column, line, text in (
                    (name, "o:", "computed"),
                    (f"corrected_{name}", "o-", "shown"),
                ):
                    parts = [100 * row[column] / row["count"] for row in some]
                    label = f"{name}, {text}"
                    axes.plot(
                        range(len(some)), parts, line, color=colour, markersize=4, label=label
                    )
                axes.axhline(float(name[1:]), linestyle="--", color=colour, linewidth=0.8)
            names = [span.replace(" or more", " +") for span in _spans(rows)]
            axes.set_xticks(range(len(some)), names, rotation=30, ha="right")
            axes.set(title=title, xlabel="computed p50", ylim=(-3, 103))
        every[0].set_ylabel("offers before it (%)")
        every[0].legend(title="dashed: exact", frameon=False, fontsize=8, loc="lower right")
        save(figure, PICTURE)


def save(figure: "Figure", path: Path) -> None:
    """Write an SVG whose lines have no spaces at their ends."""
    figure.savefig(path, metadata={"Date": None})
    lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n", "utf-8")


if __name__ == "__main__":
    lives, days, mapreduce = (
        json.loads(each.read_text("utf-8")) for each in (KEPT, RECORDED, MAPREDUCE)
    )
    draw(lives["rows"], days["forecasts"], mapreduce["rows"])
