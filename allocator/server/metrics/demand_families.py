"""Metrics of unmet demand, and of the accuracy of forecasts of next offers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from allocator.core import MILLI
from allocator.explain import ForecastResults, Unmet
from allocator.server.following.demand_watch import DemandWatch
from allocator.server.metrics.family import (
    OTHER,
    Families,
    Part,
    Series,
    amounts,
    counter,
    gauge,
    largest,
    unit_of,
)
from allocator.server.reports.report import COMMON_MAX

FORECASTS: Families[ForecastResults] = (
    counter(
        "offer_forecasts{result}",
        "Forecasts of next offers, of a sample of waiting clients. early: the offer was decided"
        " before the p50; held: from p50 to p95; late: later or never; withdrawn: the client left"
        " or no longer wanted offers.",
        lambda results: {
            result: getattr(results, result) for result in ("early", "held", "late", "withdrawn")
        },
    ),
)

UNMET: Families["_Shown"] = (
    amounts(
        "unmet{role}",
        "Lower bound of the amount that the role's own frameworks want and no agent has room for",
        lambda shown: shown.series(),
    ),
    gauge(
        "agents_missing{shape}",
        "Minimum number of additional agents for the unmet demand, by the amounts of an agent.",
        lambda shown: shown.unmet.agents,
    ),
)


@dataclass(frozen=True)
class _Shown:
    """Unmet demand, with series for some roles."""

    unmet: Unmet
    roles_max: int

    def series(self) -> list[Series]:
        names = self.unmet.resources
        columns = [at for at, counts in enumerate(self.unmet.common) if counts][:COMMON_MAX]
        paths = sorted(self.unmet.amounts)
        table = np.array([self.unmet.amounts[path] for path in paths], np.int64)
        table = table.reshape(-1, len(names))
        share = (table / np.maximum(table.sum(axis=0), 1)).max(axis=1, initial=0.0)
        named = np.flatnonzero([path != OTHER for path in paths])
        top, _ = largest(share, named, self.roles_max)
        rest = np.setdiff1d(np.arange(len(paths)), top)
        rows = [(paths[row], table[row]) for row in top.tolist()]
        rows.append((OTHER, table[rest].sum(axis=0)))
        found = list[Series]()
        for path, amount in rows:
            for column in columns:
                unit, factor = unit_of(names[column])
                number = int(amount[column]) * factor / MILLI
                found.append(([path, names[column], unit], number))
        return found


def demand_parts(watch: DemandWatch, roles_max: int) -> list[Part[Any]]:
    """Return the parts for the latest computation.

    `roles_max`: maximum number of roles with series, those with the most unmet demand.
    """
    return [
        Part("demand", FORECASTS, lambda: watch.calibration.results),
        Part("demand", UNMET, lambda: watch.latest and _Shown(watch.latest, roles_max)),
    ]


GROUPS: dict[str, Families[Any]] = {"Unmet demand and forecasts": (*FORECASTS, *UNMET)}
