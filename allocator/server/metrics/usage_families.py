"""Metrics of usage over time."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from allocator.server.following.usage import Totals, UsageKeeper
from allocator.server.metrics.family import OTHER, Families, Part, Series, counter, unit_of
from allocator.usage.buckets import Part as Where
from allocator.usage.report import SECOND


class UsageSeries:
    """Chooses roles with series; a role that has one keeps it, so that counters only grow."""

    def __init__(self, keeper: UsageKeeper, roles_max: int) -> None:
        """Show this account; `roles_max`: maximum number of roles with series."""
        self._keeper = keeper
        self._roles_max = roles_max
        self._named: dict[str, None] = {}

    def parts(self) -> list[Part[Any]]:
        return [
            Part("usage", CLUSTER, lambda: self._keeper.totals),
            Part("usage", ROLES, lambda: list(self._series(self._keeper.totals))),
        ]

    def _series(self, totals: Totals) -> Iterator[Series]:
        room = self._roles_max - len(self._named)
        new = {role for role, *_ in totals.roles if role not in self._named and role != OTHER}
        self._named.update(dict.fromkeys(sorted(filter(str.strip, new))[:room]))
        sums = Counter[tuple[str, str, Where]]()
        for (role, resource, where), amount in totals.roles.items():
            sums[role if role in self._named else OTHER, resource, where] += amount
        for (role, resource, where), amount in sorted(sums.items()):
            yield _row((role,), resource, where, amount)


def _row(values: tuple[str, ...], resource: str, where: Where, amount: int) -> Series:
    unit, factor = unit_of(resource)
    return (*values, resource, unit, where.name.lower()), amount / SECOND * factor


CLUSTER: Families[Totals] = (
    counter(
        "usage_cluster_resource_seconds{resource,unit,state}",
        "Resources times seconds, by state: used, offered, idle, or unknown (no master had a"
        " session). The sum over the states is the capacity times the time.",
        lambda totals: [
            _row((), resource, where, amount)
            for (resource, where), amount in sorted(totals.parts.items())
        ],
    ),
)

ROLES: Families[list[Series]] = (
    counter(
        "usage_resource_seconds{role,resource,unit,state}",
        "Resources times seconds that the role's own frameworks used, or that were on offer"
        " to them.",
        lambda series: series,
    ),
)

GROUPS: dict[str, Families[Any]] = {"Usage": (*CLUSTER, *ROLES)}
