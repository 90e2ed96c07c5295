"""What Spark reads in an offer, and what it takes of it."""

from collections.abc import Iterable

from allocator.core import MILLI
from allocator.lab.frameworks.base import Master, Offer
from allocator.lab.frameworks.spark_settings import SparkSettings
from allocator.lab.master.ledger_rows import Amount
from allocator.lab.master.resources import Resource


def split(
    master: Master, settings: SparkSettings, offers: Iterable[Offer]
) -> tuple[list[Offer], list[Offer]]:
    """Split offers into those whose agents meet the constraints, and those that do not."""
    matched: list[Offer] = []
    unmatched: list[Offer] = []
    for offer in offers:
        fits = settings.accepts(master.attributes(offer.agent))
        (matched if fits else unmatched).append(offer)
    return matched, unmatched


class OpenOffer:
    """What is left of an offer while executors are placed on it.

    Amounts of one name add up, whatever role they are reserved to, as Spark adds them.
    """

    def __init__(self, master: Master, offer: Offer) -> None:
        self.offer = offer
        self._master = master
        self._left: dict[Resource, int] = master.resources_of(offer.amount)
        self.taken: list[Amount] = []

    def amount(self, name: str) -> int:
        """What is left of a resource, in thousandths."""
        return sum(amount for each, amount in self._left.items() if each.name == name)

    def whole(self, name: str) -> int:
        """What is left of a resource in whole units."""
        return self.amount(name) // MILLI

    def take(self, **wanted: int) -> None:
        """Take amounts by name, in thousandths, from the first resources that have some."""
        taken: dict[Resource, int] = {}
        for name, amount in wanted.items():
            missing = amount
            for each in [each for each in self._left if each.name == name]:
                part = min(missing, self._left[each])
                if part:
                    taken[each] = part
                    self._left[each] -= part
                    missing -= part
            assert not missing, f"{amount} of {name} is more than is left"
        self.taken.append(self._master.row(taken))
