"""The families of metrics about how far shares are from fair."""

import time

import numpy as np

from allocator.core import Floats
from allocator.server.engine.fairness import FairnessWatch
from allocator.server.metrics.collecting import Part
from allocator.server.metrics.family import OTHER, Numbers, Series, counter, gauge, label, largest

LOOKS = (
    counter(
        "fair_shares{result}",
        "Times that fair shares were worked out for metrics, by what came of it.",
    ),
    counter(
        "fair_shares_work_seconds",
        "Time that working fair shares out for metrics took in all, in seconds.",
    ),
    gauge(
        "fair_shares_last_seconds",
        "Time that working fair shares out for metrics took the last time, in seconds.",
    ),
    gauge(
        "fair_shares_copy_seconds",
        "How long the copy that they were worked out on held the core up, in seconds.",
    ),
)

FAIRNESS = (
    gauge("fair_shares_age_seconds", "How old the fair shares of the metrics are, in seconds."),
    gauge(
        "fairness_error_max{among}",
        "Largest difference of a dominant share from the fair one, either way, 0 to 1.",
    ),
    gauge(
        "fairness_error_mean{among}",
        "Mean of these differences, over all that hold something or should, 0 to 1.",
    ),
    gauge(
        "role_fair_share{role}",
        "What the policy would give the role and those below it, were all given out anew.",
    ),
    gauge(
        "role_fairness_error{role}",
        "Dominant share of the role less the fair one: above 0 where it holds more.",
    ),
    gauge(
        "role_shortfall{role}",
        "What it lacks of its fair share, where a framework in it lacks some and refuses none.",
    ),
)


def fairness_parts(watch: FairnessWatch, roles_max: int) -> list[Part]:
    """Say what came of the latest look, without waiting for the core.

    `roles_max`: so many roles at most have series of their own: those that hold most or should. An
        error of the others together would say nothing.
    """
    return [
        Part("fairness", LOOKS, lambda: _looks(watch)),
        Part("fairness", FAIRNESS, lambda: _fairness(watch, roles_max)),
    ]


def _looks(watch: FairnessWatch) -> Numbers:
    counts = watch.counts
    return {
        "fair_shares": {"done": counts.done, "failed": counts.failed},
        "fair_shares_work_seconds": counts.total_s,
        "fair_shares_last_seconds": counts.last_s,
        "fair_shares_copy_seconds": counts.held_s,
    }


def _fairness(watch: FairnessWatch, roles_max: int) -> Numbers | None:
    latest = watch.latest
    if latest is None:
        return None
    roles = latest.roles
    named = np.flatnonzero([path != OTHER for path in roles.path])
    top, _ = largest(np.maximum(roles.share, roles.fair), named, roles_max)

    def each(numbers: Floats) -> list[Series]:
        return [([label(roles.path[row])], float(numbers[row])) for row in top.tolist()]

    errors = {"frameworks": np.abs(latest.client_error), "roles": np.abs(roles.error)}
    return {
        "fair_shares_age_seconds": time.monotonic() - latest.taken_s,
        "fairness_error_max": {among: error.max(initial=0.0) for among, error in errors.items()},
        "fairness_error_mean": {
            among: error.mean() if len(error) else 0.0 for among, error in errors.items()
        },
        "role_fair_share": each(roles.fair),
        "role_fairness_error": each(roles.error),
        "role_shortfall": each(roles.shortfall),
    }
