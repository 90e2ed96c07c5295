"""Quotas and weights of a recorded day: those never reached, and those that cause waits.

The cluster counts as one pool here. Free resources that are scattered over agents allow less than
this analysis says.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from allocator.core import Bools, Floats
from laboratory.advise.measuring import (
    TaskTable,
    amounts_at,
    capacity_at,
    count_at,
    moments,
    table_of,
)
from laboratory.master.ledger import Quota
from laboratory.workloads.recorded_day import Day

NEAR = 0.95
"""A role that uses this fraction of an amount has reached it."""

OFTEN = 0.1
"""Waits caused for a smaller fraction of the time are not reported."""

ALWAYS = 0.9

ROOM = 1.1
"""An advised amount is the maximum use times this factor."""


class Sort(StrEnum):
    """The kind of a bound."""

    GUARANTEE = "guarantee"
    LIMIT = "limit"
    WEIGHT = "weight"


class Finding(StrEnum):
    """The finding about a bound."""

    NEVER = "never reached"
    SOMETIMES = "sometimes in the way"
    ALWAYS = "always in the way"
    NO_MATTER = "never matters"
    USEFUL = "of use"


@dataclass(frozen=True, slots=True)
class Bound:
    """An amount of a quota, or a weight, and the finding about it.

    resource: empty for a weight.
    amount: thousandths; a weight as it is.
    peak: thousandths; the maximum that the role used.
    in_way: fraction of the waiting time during which it prevented allocations: to the role itself
        (limit), or to others (guarantee). For a weight: fraction of the recorded time during which
        the role and others waited.
    better: thousandths; a sufficient amount; None: no change.
    """

    sort: Sort
    role: str
    resource: str
    amount: float
    peak: float
    in_way: float
    finding: Finding
    better: int | None = None

    @property
    def blocks(self) -> bool:
        """Whether it causes waits."""
        return self.finding in {Finding.SOMETIMES, Finding.ALWAYS}


@dataclass(frozen=True, slots=True)
class _Looked:
    """A day, sampled at the moments `at_ms` (S,).

    table: its tasks.
    total, free (S, R): amounts of the cluster at each moment.
    """

    day: Day
    table: TaskTable
    at_ms: Floats
    total: Floats
    free: Floats

    def inside(self, role: str) -> Bools:
        """Which tasks belong to a role or its descendants."""
        mine = [path == role or path.startswith(role + "/") for path in self.table.roles]
        return np.array(mine, bool)[self.table.role]

    def used(self, mask: Bools) -> Floats:
        """Amounts that the selected tasks use at each moment, (S, R)."""
        table = self.table
        return amounts_at(table.need[mask], table.start[mask], table.end[mask], self.at_ms)

    def waiting(self, mask: Bools) -> tuple[Bools, Floats]:
        """Whether any selected task waits at each moment, (S,), and the waiting ones' mean need."""
        t = self.table
        begin, end = t.wanted[mask], t.start[mask]
        count = count_at(begin, end, self.at_ms)
        need = amounts_at(t.need[mask], begin, end, self.at_ms)
        return count > 0, need / np.maximum(count, 1)[:, None]


def bounds_of(days: Sequence[Day]) -> list[Bound]:
    """Examine all quotas and weights in force at the end of each day."""
    found: dict[tuple[Sort, str, str], list[Bound]] = {}
    for day in days:
        for bound in _of_day(_look(day)):
            found.setdefault((bound.sort, bound.role, bound.resource), []).append(bound)
    return [_together(each) for each in found.values()]


def quotas_of(day: Day) -> dict[str, Quota]:
    """The quotas at the end of a day, by role."""
    last = {role: quota for _, role, quota in day.quotas}
    return {role: quota for role, quota in last.items() if quota}


def cut_down(day: Day, bounds: Sequence[Bound]) -> dict[str, Quota]:
    """The quotas of a day that change if guarantees that cause waits are reduced.

    Unused guarantees that cause no waits are kept, because a worse day may need them.
    """
    better = {
        (bound.role, bound.resource): bound.better
        for bound in bounds
        if bound.sort is Sort.GUARANTEE and bound.blocks and bound.better is not None
    }
    changed = {}
    for role, quota in quotas_of(day).items():
        guarantees = {
            name: better.get((role, name), amount) for name, amount in quota.guarantees.items()
        }
        if guarantees != quota.guarantees:
            kept = {name: amount for name, amount in guarantees.items() if amount}
            changed[role] = Quota(kept, quota.limits)
    return changed


def _look(day: Day) -> _Looked:
    table = table_of(day.ran, day.kinds, day.begin_ms)
    at_ms = moments(max(day.end_ms - day.begin_ms, 1))
    total = capacity_at(day, at_ms)
    used = amounts_at(table.need, table.start, table.end, at_ms)
    return _Looked(day, table, at_ms, total, np.maximum(total - used, 0.0))


def _of_day(look: _Looked) -> Iterator[Bound]:
    quotas = quotas_of(look.day)
    for role, quota in quotas.items():
        yield from _guarantees(look, role, quota.guarantees)
    # Quotas have limits, and so have operators' settings; the lower one applies.
    settings = look.day.settings
    limits: defaultdict[str, dict[str, int]] = defaultdict(dict)
    both = [(role, quota.limits) for role, quota in quotas.items()]
    for role, amounts in [*both, *(settings.limits if settings else {}).items()]:
        for name, amount in amounts.items():
            limits[role][name] = min(amount, limits[role].get(name, amount))
    for role, amounts in limits.items():
        yield from _limits(look, role, amounts)
    weights: dict[str, float] = {}
    for _, change in look.day.weights:
        weights |= change
    for role, weight in weights.items():
        if weight != 1:
            yield _weight(look, role, weight)


def _guarantees(look: _Looked, role: str, amounts: Mapping[str, int]) -> Iterator[Bound]:
    """Check whether a role uses its guarantees, and whether others wait because of them."""
    mine = look.inside(role)
    used, (others_wait, need) = look.used(mine), look.waiting(~mine)
    for name, amount in amounts.items():
        if name not in look.day.kinds or not amount:
            continue
        column = look.day.kinds.index(name)
        peak, own = _peak(look, mine, column), used[:, column]
        kept = np.maximum(amount - own, 0.0)
        wanted = others_wait & (need[:, column] > 0)
        # A task would fit into what is free, but not if the unused guarantee is kept free.
        free, one = look.free[:, column], need[:, column]
        in_way = _part(wanted & (free >= one) & (free - kept < one), wanted)
        finding, better = Finding.USEFUL, None
        if peak < NEAR * amount:
            finding = Finding.NEVER if in_way < OFTEN else _often(in_way)
            better = _rounded(peak) if _rounded(peak) < amount else None
        yield Bound(Sort.GUARANTEE, role, name, amount, peak, in_way, finding, better)


def _limits(look: _Looked, role: str, amounts: Mapping[str, int]) -> Iterator[Bound]:
    """Check whether a limit is ever reached, and whether it withholds free resources."""
    mine = look.inside(role)
    used, (waits, need) = look.used(mine), look.waiting(mine)
    for name, amount in amounts.items():
        if name not in look.day.kinds:
            continue
        column = look.day.kinds.index(name)
        peak, one = _peak(look, mine, column), need[:, column]
        wanted = waits & (one > 0)
        stopped = (used[:, column] + one > amount) & (look.free[:, column] >= one)
        in_way = _part(wanted & stopped, wanted)
        finding = Finding.USEFUL
        if in_way >= OFTEN:
            finding = _often(in_way)
        elif peak < NEAR * amount and not (wanted & stopped).any():
            finding = Finding.NEVER
        yield Bound(Sort.LIMIT, role, name, amount, peak, in_way, finding)


def _weight(look: _Looked, role: str, weight: float) -> Bound:
    """Check a weight, which only matters while its role and others want more than they have."""
    mine = look.inside(role)
    (waits, _), (others, _) = look.waiting(mine), look.waiting(~mine)
    both = float((waits & others).mean())
    finding = Finding.USEFUL if both else Finding.NO_MATTER
    return Bound(Sort.WEIGHT, role, "", weight, 0.0, both, finding)


def _peak(look: _Looked, mask: Bools, column: int) -> float:
    """The maximum of a resource that the selected tasks used at the same time."""
    table = look.table
    times = np.unique(table.start[mask])
    times = times[np.isfinite(times)]
    if not len(times):
        return 0.0
    need = table.need[mask][:, column : column + 1]
    return float(amounts_at(need, table.start[mask], table.end[mask], times).max())


def _rounded(peak: float) -> int:
    """Slightly more than was used, in whole units."""
    return int(np.ceil(peak * ROOM / 1000)) * 1000


def _often(part: float) -> Finding:
    return Finding.ALWAYS if part >= ALWAYS else Finding.SOMETIMES


def _part(some: Bools, of: Bools) -> float:
    return float(some.sum() / of.sum()) if of.any() else 0.0


def _together(days: Sequence[Bound]) -> Bound:
    """Merge the findings about a bound over several days."""
    last = days[-1]
    peak, in_way = max(each.peak for each in days), float(np.mean([each.in_way for each in days]))
    finding = last.finding
    if len({each.finding for each in days}) > 1:
        # On days with different findings it is needed on some, or sometimes causes waits.
        finding = _often(in_way) if in_way >= OFTEN else Finding.USEFUL
    better = last.better
    if better is not None:
        used = any(each.finding is Finding.USEFUL for each in days)
        better = None if used else _rounded(peak)
    return Bound(last.sort, last.role, last.resource, last.amount, peak, in_way, finding, better)
