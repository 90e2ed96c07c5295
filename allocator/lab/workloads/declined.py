"""What a framework declined last, of each size."""

from collections.abc import Mapping

KEPT_MAX = 32


class Declined:
    """The latest offers that a framework gave back, without those that say nothing more.

    An offer that was declined later, and was larger in everything, says more than one before it.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._offers: list[tuple[int, Mapping[str, int]]] = []

    def add(self, now_ms: int, amounts: Mapping[str, int]) -> None:
        """An offer was declined."""
        kept = [offer for offer in self._offers if not _holds(amounts, offer[1])]
        self._offers = [*kept[1 - KEPT_MAX :], (now_ms, dict(amounts))]

    def copy(self) -> "Declined":
        """What is known now."""
        twin = Declined()
        twin._offers = self._offers  # a list that is never changed, only replaced
        return twin

    def last_ms(self, need: Mapping[str, int]) -> int:
        """When an offer that holds a need was declined last; -1: never.

        >>> declined = Declined()
        >>> declined.add(10, {"cpus": 4000})
        >>> declined.add(20, {"cpus": 1000})
        >>> declined.last_ms({"cpus": 2000}), declined.last_ms({"cpus": 500})
        (10, 20)
        >>> declined.last_ms({"cpus": 8000})
        -1
        """
        return max((when for when, offer in self._offers if _holds(offer, need)), default=-1)


def _holds(amounts: Mapping[str, int], need: Mapping[str, int]) -> bool:
    return all(amounts.get(name, 0) >= amount for name, amount in need.items())
