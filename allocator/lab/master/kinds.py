"""The kinds of a master's resources, as the sidecar is told of them, and back.

A kind says what decisions need to know. However many objects a master has, they are of few kinds;
where they are of more kinds than the sidecar keeps apart, what is met beyond is the rest of its
name. Amounts by kind become objects again only from what an agent really has.
"""

from collections.abc import Sequence

from allocator.core import Kind
from allocator.lab.master.ledger_rows import Amount
from allocator.lab.master.resources import Resource, ResourceTable, take

KINDS_USUAL = 512
"""So many are told where the sidecar does not say how many it keeps apart."""

SPARE = 8
"""One of so many handles is kept for names that are met late: plain kinds and rests have it."""


def kind_of(resource: Resource) -> Kind:
    """What decisions need to know of a resource."""
    return Kind(
        name=resource.name,
        scalar=resource.scalar,
        reserved_role=resource.role,
        depth=len(resource.reservations),
        revocable=resource.revocable,
        shared=resource.shared,
        form="volume" if resource.persistence else resource.source,
        indivisible=resource.indivisible,
    )


class KindTable:
    """Kinds by handle, as one session has bound them.

    Parameters
    ----------
    table : ResourceTable
        The master's resources.
    names : int
        The first so many of them, which are plain, get the first handles.

    Attributes
    ----------
    kinds : list of Kind
    usual : int
        The first so many of them are the plain ones of the first resources.
    """

    def __init__(self, table: ResourceTable, names: int) -> None:
        self._table = table
        self._names = names
        self.begin(KINDS_USUAL)

    def begin(self, kinds_max: int) -> None:
        """Begin anew, for a sidecar that keeps so many kinds apart (0: it does not say)."""
        self._most = kinds_max or KINDS_USUAL
        self.kinds: list[Kind] = []
        self._handle: dict[Kind, int] = {}
        self._without_rest: set[str] = set()
        self._of_row: dict[int, int] = {}
        as_rows = all(self._find(row) == row for row in range(self._names))
        self.usual = self._names if as_rows else 0

    def __len__(self) -> int:
        return len(self.kinds)

    def handle(self, resource: Resource) -> int:
        """Handle of a resource's kind, bound where it was not; -1 where there is no room for it.

        Room is kept for a rest kind of each name that was met, so only resources of more names
        than the sidecar keeps kinds have none: those it is not told of.
        """
        return self._find(self._table.row(resource))

    def _find(self, row: int) -> int:
        """Handle of the kind of a row; found once, then remembered."""
        if row not in self._of_row:
            self._of_row[row] = self._bind(self._table[row])
        return self._of_row[row]

    def _bind(self, resource: Resource) -> int:
        """Find or bind the kind of a resource, or the rest kind of its name."""
        kind = kind_of(resource)
        rest = Kind(kind.name, scalar=kind.scalar, rest=True)
        if kind in self._handle:
            return self._handle[kind]
        # For each name that was met without a rest kind, one place is kept free for it. Some more
        # places are kept for plain kinds and rests.
        without_rest = self._without_rest | ({kind.name} if rest not in self._handle else set())
        room = self._most if kind.plain else self._most - self._most // SPARE
        if len(self.kinds) + len(without_rest) < room:
            self._without_rest = without_rest
            return self._append(kind)
        # No room for a kind of its own: it is part of the rest, which is bound if it is not yet.
        if rest in self._handle:
            return self._handle[rest]
        if len(self.kinds) + len(without_rest) > self._most:
            return -1
        self._without_rest.discard(kind.name)
        return self._append(rest)

    def _append(self, kind: Kind) -> int:
        self._handle[kind] = len(self.kinds)
        self.kinds.append(kind)
        return len(self.kinds) - 1

    def by_kind(self, amount: Sequence[int]) -> Amount:
        """Add a row of resources up by kind."""
        # Only plain resources: their rows are their handles.
        if len(amount) <= self.usual:
            return tuple(amount)
        found = [(self._find(row), value) for row, value in enumerate(amount) if value]
        kinds = [0] * len(self.kinds)
        for handle, value in found:
            if handle >= 0:
                kinds[handle] += value
        return tuple(kinds)

    def chop(self, free: Sequence[int], wanted: Sequence[int]) -> Amount:
        """Take amounts by kind from a row of objects that may be given.

        Whole objects first, then parts of those that can be divided; what is of a rest kind is
        given in whole objects.
        """
        left = list(wanted)
        taken = [0] * len(free)
        larger = []
        # Objects that fit are taken whole; larger ones wait until these are taken.
        for row, amount in enumerate(free):
            kind = self._of_row.get(row, -1) if amount else -1
            if not 0 <= kind < len(wanted) or not wanted[kind]:
                continue
            if amount <= left[kind]:
                taken[row] = amount
                left[kind] -= amount
            elif not self.kinds[kind].rest:
                larger.append((row, kind))
        for row, kind in larger:
            taken[row] = take(self._table[row], free[row], left[kind])
            left[kind] -= taken[row]
        return tuple(taken)
