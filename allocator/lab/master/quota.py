"""Quotas over the decisions of one batch: limits, and headroom for guarantees.

They are the module's rules. What a role consumes is what is reserved for its subtree, held or not,
and what its subtree holds of unreserved scalars that are not revocable. A role may have, of what is
free, its own unsatisfied guarantee and what the unsatisfied guarantees of all roles leave over;
and where no other role's is unsatisfied, all.
Guarantees are of top-level roles; limits may be of any.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from allocator.lab.master.ledger import Ledger
from allocator.lab.master.ledger_rows import Amount
from allocator.lab.master.resources import in_quota, lineage, take


@dataclass(frozen=True, slots=True)
class Bounded:
    """What is left of an amount.

    by_limit, by_headroom: whether a limit, or another role's guarantee, leaves less than the
        amount.
    """

    amount: Amount
    by_limit: bool = False
    by_headroom: bool = False


class QuotaBook:
    """What the roles consume, counted once and then charged with each offer."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._quotas = ledger.quotas
        self.consumed: dict[str, Counter[str]] = {path: Counter() for path in self._quotas}
        self._free: Counter[str] = Counter()
        if self._quotas:
            self._count()

    def _count(self) -> None:
        """Count what is reserved and what is held, and how much is free of what counts."""
        resources = self._ledger.table.resources
        for each, amount in zip(resources, self._ledger.total, strict=False):
            if in_quota(each):
                self._free[each.name] += amount
            elif each.scalar and each.reservations:
                for role in self._above(each.role):
                    self.consumed[role][each.name] += amount
        for _, handle, _, holding in self._ledger.rows():
            self.charge(self._ledger.path[handle], holding.both())

    def charge(self, path: str, amount: Amount) -> None:
        """Count what a role is given."""
        roles = list(self._above(path))
        for row, value in enumerate(amount):
            if value and in_quota(self._ledger.table[row]):
                name = self._ledger.table[row].name
                self._free[name] -= value
                for role in roles:
                    self.consumed[role][name] += value

    def bounded(self, path: str, amount: Amount) -> Bounded:
        """Take an amount down to what the role may have."""
        if not self._quotas:
            return Bounded(amount)
        table = self._ledger.table
        counted = [row for row, value in enumerate(amount) if value and in_quota(table[row])]
        wanted: Counter[str] = Counter()
        for row in counted:
            wanted[table[row].name] += amount[row]
        # How much the role may still have of each name, by limits and by headroom.
        limit = {name: self._limit(path, name) for name in wanted}
        headroom = {name: self._headroom(path, name) for name in wanted}
        most = {name: min(limit[name], headroom[name]) for name in wanted}
        # Take that much from the objects, one after the other. What is indivisible is left out
        # when it is too large, and the next one may fit.
        left = list(amount)
        for row in counted:
            name = table[row].name
            left[row] = take(table[row], amount[row], int(min(most[name], amount[row])))
            most[name] -= left[row]
        return Bounded(
            tuple(left),
            any(limit[name] < some for name, some in wanted.items()),
            any(headroom[name] < some for name, some in wanted.items()),
        )

    def _limit(self, path: str, name: str) -> float:
        """What all limits from the top down to the role leave."""
        rooms = [
            max(0, self._quotas[role].limits[name] - self.consumed[role][name])
            for role in self._above(path)
            if name in self._quotas[role].limits
        ]
        return min(rooms, default=float("inf"))

    def _headroom(self, path: str, name: str) -> float:
        """What guarantees leave; without bound where none but the role's own is unsatisfied."""
        required = sum(self._unsatisfied(role, name) for role in self._quotas)
        own = self._unsatisfied(lineage(path)[0], name)
        if required <= own:
            return float("inf")
        return own + max(0, self._free[name] - required)

    def _unsatisfied(self, role: str, name: str) -> int:
        """How much a role at the top still lacks of its guarantee."""
        if role not in self._quotas or "/" in role:
            return 0
        return max(0, self._quotas[role].guarantees.get(name, 0) - self.consumed[role][name])

    def _above(self, path: str) -> Iterator[str]:
        """The roles with a quota among the role and those above it."""
        return (role for role in lineage(path) if role in self._quotas)
