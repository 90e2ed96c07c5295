"""The families of metrics about how far shares are from fair."""

import time
from collections.abc import Iterator

import numpy as np
from prometheus_client.core import GaugeMetricFamily, Metric

from allocator.core import Floats
from allocator.server.engine.fairness import Fairness, FairnessWatch, RoleFairness
from allocator.server.metrics.collecting import Part
from allocator.server.metrics.metric_building import (
    OTHER,
    counted_by,
    counter,
    gauge,
    label,
    labelled,
    largest,
)


class FairnessCollector:
    """Says what came of the latest look, without waiting for the core."""

    def __init__(self, watch: FairnessWatch, roles_max: int) -> None:
        """Read this watch; so many roles at most have series of their own."""
        self._watch = watch
        self._roles_max = roles_max

    def parts(self) -> list[Part]:
        """Say what there is."""
        return [Part("fairness", self._collect)]

    def _collect(self) -> Iterator[Metric]:
        """Give all families; those of the shares only where they were worked out."""
        counts, latest = self._watch.counts, self._watch.latest
        text = "Times that fair shares were worked out for metrics, by what came of it."
        results = {"done": counts.done, "failed": counts.failed}
        yield counted_by("fair_shares", text, "result", results, ())
        text = "Time that working fair shares out for metrics took in all, in seconds."
        yield counter("fair_shares_work_seconds", text, counts.total_s)
        text = "Time that working fair shares out for metrics took the last time, in seconds."
        yield gauge("fair_shares_last_seconds", text, counts.last_s)
        text = "How long the copy that they were worked out on held the core up, in seconds."
        yield gauge("fair_shares_copy_seconds", text, counts.held_s)
        if latest is None:
            return
        text = "How old the fair shares of the metrics are, in seconds."
        yield gauge("fair_shares_age_seconds", text, time.monotonic() - latest.taken_s)
        yield from _in_one_number(latest)
        yield from _roles(latest.roles, self._roles_max)


def _in_one_number(latest: Fairness) -> Iterator[Metric]:
    errors = {"frameworks": np.abs(latest.client_error), "roles": np.abs(latest.roles.error)}
    rows = [([among], float(error.max(initial=0.0))) for among, error in errors.items()]
    text = "Largest difference of a dominant share from the fair one, either way, 0 to 1."
    yield labelled(GaugeMetricFamily, "fairness_error_max", text, ["among"], rows)
    rows = [([among], _mean(error)) for among, error in errors.items()]
    text = "Mean of these differences, over all that hold something or should, 0 to 1."
    yield labelled(GaugeMetricFamily, "fairness_error_mean", text, ["among"], rows)


def _mean(error: Floats) -> float:
    return float(error.mean()) if len(error) else 0.0


def _roles(roles: RoleFairness, limit: int) -> Iterator[Metric]:
    """Give the roles that hold most or should; an error of others together says nothing."""
    named = np.flatnonzero([path != OTHER for path in roles.path])
    top, _ = largest(np.maximum(roles.share, roles.fair), named, limit)
    values = [[label(roles.path[row])] for row in top.tolist()]
    for name, text, numbers in (
        (
            "role_fair_share",
            "What the policy would give the role and those below it, were all given out anew.",
            roles.fair,
        ),
        (
            "role_fairness_error",
            "Dominant share of the role less the fair one: above 0 where it holds more.",
            roles.error,
        ),
        (
            "role_shortfall",
            "What it lacks of its fair share, where a framework in it lacks some and refuses none.",
            roles.shortfall,
        ),
    ):
        pairs = zip(values, numbers[top].tolist(), strict=True)
        yield labelled(GaugeMetricFamily, name, text, ["role"], pairs)
