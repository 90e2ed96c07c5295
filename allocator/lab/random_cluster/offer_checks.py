"""What must be true of offers, whoever decided on them: looked at without the help of the gates."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from allocator.core import MILLI
from allocator.lab.frameworks.base import Offer
from allocator.lab.master.ledger import Ledger
from allocator.lab.master.resources import Resource

SORTS: Mapping[str, Callable[[Resource], bool]] = {
    "reserved": lambda each: len(each.reservations) == 1,
    "refined": lambda each: len(each.reservations) > 1,
    "revocable": lambda each: each.revocable,
    "volume": lambda each: bool(each.persistence),
    "shared": lambda each: each.shared,
    "mount": lambda each: each.source == "mount",
    "path": lambda each: each.source == "path",
    "piece": lambda each: each.source in {"block", "raw"} and each.indivisible,
    "provided": lambda each: bool(each.provider),
    "ports": lambda each: not each.scalar,
}
"""Sorts of resources that are offered by rules of their own."""


class Inspector:
    """Looks at the offers of each batch of decisions, and writes down what is wrong.

    seen: how many offers had something of each of the `SORTS`.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.wrong: list[str] = []
        self.seen: Counter[str] = Counter()

    def __call__(self, offers: Sequence[Offer]) -> None:
        """Look at the offers of one batch; the books have them already."""
        for offer in offers:
            for each, amount in self._parts(offer):
                self.wrong += self._wrong(offer, each, amount)
                self.seen.update(name for name, belongs in SORTS.items() if belongs(each))
        self.wrong += self._shared_twice(offers)
        self.wrong += self._beyond_limits(offers)

    def _parts(self, offer: Offer) -> Iterator[tuple[Resource, int]]:
        for row, amount in enumerate(offer.amount):
            if amount:
                yield self.ledger.table[row], amount

    def _wrong(self, offer: Offer, each: Resource, amount: int) -> Iterator[str]:
        """Say what is wrong with one resource of an offer."""
        path = self.ledger.path[offer.role] + "/"
        agent = self.ledger.agents[offer.agent]
        row = self.ledger.table.row(each)
        capacity, held = agent.capacity[row], agent.held[row]
        has = self.ledger.frameworks[offer.framework].capabilities
        what = f"{amount} of {each} to role {path[:-1]}"
        if each.reservations and not path.startswith(each.role + "/"):
            yield f"{what}: it is reserved to others"
        if each.revocable and "REVOCABLE_RESOURCES" not in has:
            yield f"{what}: the framework takes nothing revocable"
        if each.shared and "SHARED_RESOURCES" not in has:
            yield f"{what}: the framework shares nothing"
        if len(each.reservations) > 1 and "RESERVATION_REFINEMENT" not in has:
            yield f"{what}: the framework knows no refined reservation"
        if (each.indivisible or each.shared) and amount != capacity:
            yield f"{what}: it is one piece of {capacity}"
        if not each.scalar and amount % MILLI:
            yield f"{what}: only whole ones can be offered"
        if not each.shared and held > capacity:
            yield f"{what}: {held} of {capacity} are held"

    def _shared_twice(self, offers: Sequence[Offer]) -> Iterator[str]:
        copies = Counter(
            (offer.agent, each) for offer in offers for each, _ in self._parts(offer) if each.shared
        )
        for (agent, each), count in copies.items():
            if count > 1:
                yield f"{count} copies of {each} on agent {agent} in one cycle"

    def _beyond_limits(self, offers: Sequence[Offer]) -> Iterator[str]:
        """Add up what the subtree of each role with a limit has, where this batch gave it more."""
        for role, quota in self.ledger.quotas.items():
            given = {
                each.name
                for offer in offers
                if self._below(offer.role, role)
                for each, _ in self._parts(offer)
                if each.scalar and not each.reservations and not each.revocable
            }
            for name in given & quota.limits.keys():
                consumed = self._consumed(role, name)
                if consumed > quota.limits[name]:
                    yield f"role {role} has {consumed} of {name}, more than {quota.limits[name]}"

    def _below(self, handle: int, role: str) -> bool:
        return (self.ledger.path[handle] + "/").startswith(role + "/")

    def _consumed(self, role: str, name: str) -> int:
        """What is reserved for the subtree of a role, and what it holds of all else."""
        total = 0
        for row, each in enumerate(self.ledger.table.resources):
            if each.name != name or not each.scalar:
                continue
            if each.reservations:
                if (each.role + "/").startswith(role + "/"):
                    total += sum(self.ledger.total[row : row + 1])
            elif not each.revocable:
                total += sum(
                    sum(holding.both()[row : row + 1])
                    for _, held_as, _, holding in self.ledger.rows()
                    if self._below(held_as, role)
                )
        return total
