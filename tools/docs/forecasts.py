"""How good forecasts are: the page is written from what `tests.explain.lives` kept."""

import json
import math
from pathlib import Path

KEPT = Path(__file__).resolve().parent / "data" / "forecasts.json"

PAGE = """\
# How good forecasts are

<!-- `make docs` writes this file. -->

`mesos-allocator explain framework NAME` forecasts the [next
offer](modes.md#when-is-it-my-turn) of a framework as a range, from p50 to p95. If the forecasts
were exact, half of all offers would come before the p50, and 95 % before the p95. This page
compares them with what happened in {lives} random simulations (`python -m tests.explain.lives`).

In each there are 3 to 7 agents, and 2 to 5 frameworks in two roles. All of them always want more.
Their tasks have 1 to 3 CPUs, and each framework's last 5 to 40 s on average: half of them for half
the average, the others exponentially distributed. A cycle takes 1 s, and the policy is DRF in
characterised mode. After 100 s, every framework that waits gets a forecast every 10 s; one counts
until its offer comes or is late.

| p50 of the forecast | forecasts | before the p50 (%) | before the p95 (%) |
|---|---:|---:|---:|
{rows}

- The p95 is a safe bound: at most {late} % of the offers came later.
- The p50 is pessimistic, and more so the further ahead it is. One cause is that forecasts assume
  that tasks that begin meanwhile do not end. If the p50 is more than a few seconds ahead, read the
  range as an upper bound.

The metric `mesos_allocator_offer_forecasts_total`
[measures this](../how-to/scale.md#how-good-forecasts-are) in your own cluster.
"""


def page(kept: Path = KEPT) -> str:
    """The whole page, from the results that are kept."""
    found = json.loads(kept.read_text("utf-8"))
    rows = [row for row in found["rows"] if row["count"]]
    ends = [f"{row['from_s']} s" for row in rows[1:]]
    spans = [f"{row['from_s']} to {end}" for row, end in zip(rows, ends, strict=False)]
    spans.append(f"{rows[-1]['from_s']} s or more")
    count = sum(row["count"] for row in rows)
    rows.append({"count": count, **{at: sum(row[at] for row in rows) for at in ("p50", "p95")}})
    lines = (
        f"| {span} | {row['count']:,} | {100 * row['p50'] / row['count']:.1f}"
        f" | {100 * row['p95'] / row['count']:.1f} |"
        for span, row in zip([*spans, "all"], rows, strict=True)
    )
    late = max(math.ceil(100 * (1 - row["p95"] / row["count"])) for row in rows)
    return PAGE.format(lives=found["lives"], rows="\n".join(lines), late=late)
