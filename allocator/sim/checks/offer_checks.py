"""What must be true of offers, whoever decided on them: looked at without the help of the gates."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from allocator.core import MILLI, Kind
from allocator.sim.frameworks.base import Offer
from allocator.sim.master.ledger import Ledger

SORTS: Mapping[str, Callable[[Kind], bool]] = {
    "reserved": lambda kind: len(kind.reservation) == 1,
    "refined": lambda kind: len(kind.reservation) > 1,
    "revocable": lambda kind: kind.revocable,
    "volume": lambda kind: "persistence=" in kind.disk,
    "shared": lambda kind: kind.shared,
    "mount": lambda kind: kind.disk.startswith("mount:"),
    "provided": lambda kind: bool(kind.provider),
    "ports": lambda kind: not kind.scalar,
}
"""Sorts of kinds that are offered by rules of their own."""


class Inspector:
    """Looks at the offers of each batch of decisions, and writes down what is wrong.

    Attributes
    ----------
    wrong : list of str
    seen : Counter of str
        How many offers had something of each of the `SORTS`.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.wrong: list[str] = []
        self.seen: Counter[str] = Counter()

    def __call__(self, offers: Sequence[Offer]) -> None:
        """Look at the offers of one batch; the books have them already."""
        for offer in offers:
            for kind, amount in self._parts(offer):
                self.wrong += self._wrong(offer, kind, amount)
                self.seen.update(name for name, belongs in SORTS.items() if belongs(kind))
        self.wrong += self._shared_twice(offers)
        self.wrong += self._beyond_limits(offers)

    def _parts(self, offer: Offer) -> Iterator[tuple[Kind, int]]:
        for handle, amount in enumerate(offer.amount):
            if amount:
                yield self.ledger.table[handle], amount

    def _wrong(self, offer: Offer, kind: Kind, amount: int) -> Iterator[str]:
        """Say what is wrong with one resource of an offer."""
        path = self.ledger.path[offer.role] + "/"
        row = self.ledger.agents[offer.agent]
        handle = self.ledger.table.handle(kind)
        has = self.ledger.frameworks[offer.framework].capabilities
        what = f"{amount} of {kind} to role {path[:-1]}"
        if kind.reservation and not path.startswith(kind.reserved_role + "/"):
            yield f"{what}: it is reserved to others"
        if kind.revocable and "REVOCABLE_RESOURCES" not in has:
            yield f"{what}: the framework takes nothing revocable"
        if kind.shared and "SHARED_RESOURCES" not in has:
            yield f"{what}: the framework shares nothing"
        if len(kind.reservation) > 1 and "RESERVATION_REFINEMENT" not in has:
            yield f"{what}: the framework knows no refined reservation"
        if (kind.atomic or kind.shared) and amount != row.capacity[handle]:
            yield f"{what}: it is one piece of {row.capacity[handle]}"
        if not kind.scalar and amount % MILLI:
            yield f"{what}: only whole ones can be offered"
        if not kind.shared and row.held[handle] > row.capacity[handle]:
            yield f"{what}: {row.held[handle]} of {row.capacity[handle]} are held"

    def _shared_twice(self, offers: Sequence[Offer]) -> Iterator[str]:
        copies = Counter(
            (offer.agent, kind) for offer in offers for kind, _ in self._parts(offer) if kind.shared
        )
        for (agent, kind), count in copies.items():
            if count > 1:
                yield f"{count} copies of {kind} on agent {agent} in one cycle"

    def _beyond_limits(self, offers: Sequence[Offer]) -> Iterator[str]:
        """Add up what the subtree of each role with a limit has, where it was given more now."""
        for role, quota in self.ledger.quotas.items():
            given = {
                kind.name
                for offer in offers
                if self._below(offer.role, role)
                for kind, _ in self._parts(offer)
                if kind.scalar and not kind.reservation and not kind.revocable
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
        for handle, kind in enumerate(self.ledger.table.kinds):
            if kind.name != name or not kind.scalar:
                continue
            if kind.reservation:
                if (kind.reserved_role + "/").startswith(role + "/"):
                    total += sum(self.ledger.total[handle : handle + 1])
            elif not kind.revocable:
                total += sum(
                    sum(holding.both()[handle : handle + 1])
                    for _, held_as, _, holding in self.ledger.rows()
                    if self._below(held_as, role)
                )
        return total
