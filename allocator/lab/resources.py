"""Resources as Mesos has them, reserved, revocable, shared and more; their amounts and kinds.

These are the objects of a master, with all that tells them apart there. Kinds say what of it
decisions need.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from allocator.core import MILLI, AgentInfo, Kind

Amount = tuple[int, ...]
"""Thousandths by resource. A row may be shorter than there are resources: the others are 0."""

AGENT_CAPABILITIES = frozenset({"MULTI_ROLE", "HIERARCHICAL_ROLE", "RESERVATION_REFINEMENT"})

NAMES = {"cpus": "CPU", "mem": "memory", "gpus": "GPU"}
"""Resources as tables and axes name them."""

SHARED = "SHARED_RESOURCES"
REVOCABLE = "REVOCABLE_RESOURCES"
REFINEMENT = "RESERVATION_REFINEMENT"


@dataclass(frozen=True, slots=True)
class Reservation:
    """One of a stack of reservations.

    static: made by the agent's flags.
    principal: who reserved it; empty where nobody says so.
    """

    role: str
    static: bool = False
    principal: str = ""
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Resource:
    """All that must be equal for two amounts to be one object of a master.

    scalar: false: ranges and sets, kept as counts.
    reservations: the effective one last; empty where unreserved.
    provider: id of the resource provider; empty where it is the agent's.
    source: ``path``, ``mount``, ``block``, ``raw``; empty where it is no disk, or space on the
        root's.
    source_id: which path, or which disk.
    persistence: id of the persistent volume; empty where it is none.
    """

    name: str
    scalar: bool = True
    reservations: tuple[Reservation, ...] = ()
    revocable: bool = False
    shared: bool = False
    provider: str = ""
    source: str = ""
    source_id: str = ""
    persistence: str = ""

    @property
    def role(self) -> str:
        """Whom it is reserved to; empty where it is nobody's."""
        return self.reservations[-1].role if self.reservations else ""

    @property
    def indivisible(self) -> bool:
        """Whether nobody can have a part of it; a raw disk without an id is space."""
        one_disk = self.source in {"block", "raw"} and bool(self.source_id)
        return bool(self.persistence) or self.source == "mount" or one_disk


class ResourceTable:
    """Resources by row, in the order in which they were met.

    names: of the plain resources that everybody knows; they have the first rows.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.resources = [Resource(name) for name in names]
        self._row = {resource: row for row, resource in enumerate(self.resources)}

    def __len__(self) -> int:
        return len(self.resources)

    def __getitem__(self, row: int) -> Resource:
        return self.resources[row]

    def row(self, resource: Resource) -> int:
        """Row of a resource, the next one where it was not met before."""
        if resource not in self._row:
            self._row[resource] = len(self.resources)
            self.resources.append(resource)
        return self._row[resource]


def lineage(role: str) -> list[str]:
    """The role and those above it, outermost first.

    Examples
    --------
    >>> lineage("eng/ads")
    ['eng', 'eng/ads']
    """
    parts = role.split("/")
    return ["/".join(parts[: depth + 1]) for depth in range(len(parts))]


def reserved(
    resource: Resource,
    role: str,
    *,
    static: bool = False,
    principal: str = "",
    labels: tuple[tuple[str, str], ...] = (),
) -> Resource:
    """The resource with one more reservation.

    Where it is reserved already, the role must be one below the role it is reserved to.
    """
    more = Reservation(role, static, principal, labels)
    return replace(resource, reservations=(*resource.reservations, more))


def unreserved(resource: Resource) -> Resource:
    return replace(resource, reservations=resource.reservations[:-1])


def disk(source: str, source_id: str = "") -> Resource:
    """A disk: ``path``, ``mount``, ``block`` or ``raw``, with what identifies the source."""
    return Resource("disk", source=source, source_id=source_id)


def volume(resource: Resource, persistence: str, *, shared: bool = False) -> Resource:
    """A persistent volume on a disk without one."""
    return replace(resource, persistence=persistence, shared=shared)


def without_volume(resource: Resource) -> Resource:
    """The disk that is left when its volume is destroyed."""
    return replace(resource, persistence="", shared=False)


def allocatable(resource: Resource, role: str) -> bool:
    """Whether a framework of the role may have it: nobody's, the role's, or an ancestor's."""
    return not resource.reservations or resource.role in lineage(role)


def understood(resource: Resource, capabilities: Iterable[str]) -> bool:
    """Whether a framework with these capabilities may see it."""
    # Asked for each resource of each offer: nothing is made for the usual ones.
    return (
        (not resource.shared or SHARED in capabilities)
        and (not resource.revocable or REVOCABLE in capabilities)
        and (len(resource.reservations) < 2 or REFINEMENT in capabilities)
    )


def in_quota(resource: Resource) -> bool:
    """Whether it counts as what a role was given: a scalar, unreserved, not revocable."""
    return resource.scalar and not resource.reservations and not resource.revocable


def take(resource: Resource, there: int, wanted: int) -> int:
    """How much of what is there can be taken where at most `wanted` is.

    A disk that is one piece, and the copy of a shared volume, are whole or nothing; elements of
    ranges and sets are.

    Examples
    --------
    >>> take(Resource("ports", scalar=False), 9000, 2500)
    2000
    """
    if there <= wanted:
        return there
    if resource.indivisible or resource.shared:
        return 0
    return wanted if resource.scalar else wanted - wanted % MILLI


# Amounts by resource, as rows.


def reaches(amount: Sequence[int], least: Sequence[int]) -> bool:
    """Whether every entry of `amount` is at least the other's; neither has negative ones."""
    # A loop: this is asked several times for each offer, and a generator takes twice as long.
    for has, needs in zip(amount, least, strict=False):
        if has < needs:
            return False
    return len(least) <= len(amount) or not any(least[len(amount) :])


def add(row: list[int], amount: Sequence[int], sign: int = 1) -> None:
    """Add an amount to a row, or take it away (sign -1), in place."""
    if len(amount) > len(row):
        row.extend([0] * (len(amount) - len(row)))
    for kind, value in enumerate(amount):
        row[kind] += sign * value


def plus(one: Sequence[int], other: Sequence[int]) -> Amount:
    return tuple(a + b for a, b in zip_longest(one, other, fillvalue=0))


def minus(one: Sequence[int], other: Sequence[int]) -> Amount:
    """Take one row from another, entry by entry."""
    return tuple(a - b for a, b in zip_longest(one, other, fillvalue=0))


def least(one: Sequence[int], other: Sequence[int]) -> Amount:
    """The smaller entries of two rows."""
    return tuple(map(min, zip_longest(one, other, fillvalue=0)))


def padded(row: Sequence[int], width: int) -> Amount:
    return (*row, *[0] * (width - len(row)))


def same(one: Sequence[int], other: Sequence[int]) -> bool:
    return not any(minus(one, other))


# The kinds of a master's resources, as the sidecar is told of them, and back.
#
# A kind says what decisions need to know. However many objects a master has, they are of few kinds;
# where they are of more kinds than the sidecar keeps apart, what is met beyond is the rest of its
# name. Nobody takes the room from all others: whoever tells of resources has a share of it. Amounts
# by kind become objects again only from what an agent really has.

KINDS_USUAL = 512
"""So many are told where the sidecar does not say how many it keeps apart."""

SPARE = 8
"""One of so many handles is kept for names that are met late: plain kinds and rests have it."""

NAMED_EIGHTHS, RESERVED_EIGHTHS = 2, 5
"""Parts of the whole: for names that are not Mesos's own, and for what is reserved."""

FREE_OF_OWN = 2
"""Nobody has more than one for so many as are still free of a part."""

OTHERS = Kind("(other resources)", rest=True)
"""All names that are beyond their share."""


@dataclass(slots=True)
class _Share:
    """A part of the room, and how much of it each teller took."""

    room: int
    told: Counter[str] = field(default_factory=Counter)

    def has_room(self, teller: str, count: int) -> bool:
        free = self.room - self.told.total()
        return count <= free and FREE_OF_OWN * self.told[teller] < free


def _mesos_own(kind: Kind) -> bool:
    """Whether it has a name that agents have if nobody says anything else."""
    return kind.name == "ports" if not kind.scalar else kind.name in {"cpus", "mem", "disk", "gpus"}


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


def _counted_for(resource: Resource, teller: str) -> str:
    """Whose share a resource is of: who reserved it, who told of it, or else its role."""
    last = resource.reservations[-1] if resource.reservations else None
    if last is not None and last.principal:
        return f"principal {last.principal}"
    return teller or f"role {resource.role.partition('/')[0]}"


class KindTable:
    """Kinds by handle, as one session has bound them.

    names: the first so many of the table's resources, which are plain, get the first handles.
    usual: the first so many kinds are the plain ones of the first resources.
    """

    def __init__(self, table: ResourceTable, names: int) -> None:
        self._table = table
        self._names = names
        self._teller: dict[int, str] = {}
        self.begin(KINDS_USUAL)

    def begin(self, kinds_max: int) -> None:
        """Begin anew, for a sidecar that keeps so many kinds apart (0: it does not say)."""
        self._most = kinds_max or KINDS_USUAL
        self.kinds: list[Kind] = []
        self._handle: dict[Kind, int] = {}
        self._without_rest: set[str] = set()
        self._of_row: dict[int, int] = {}
        self._named = _Share(self._most * NAMED_EIGHTHS // 8)
        self._reserved = _Share(self._most * RESERVED_EIGHTHS // 8)
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

    def tell(self, amount: Sequence[int], teller: str) -> None:
        """Note who was the first to tell of resources; in a row of them, those above 0."""
        for row in range(self._names, len(amount)):
            if amount[row]:
                self._teller.setdefault(row, teller)

    def _find(self, row: int) -> int:
        """Handle of the kind of a row; found once, then remembered."""
        if row not in self._of_row:
            self._of_row[row] = self._bind(self._table[row], self._teller.get(row, ""))
        return self._of_row[row]

    def _bind(self, resource: Resource, teller: str) -> int:
        """Find or bind the kind of a resource, or the rest kind of its name."""
        kind = kind_of(resource)
        rest = Kind(kind.name, scalar=kind.scalar, rest=True)
        if kind in self._handle:
            return self._handle[kind]
        # With a name that is not Mesos's own comes the rest of its name.
        own = _mesos_own(kind)
        new = not own and rest not in self._handle and kind.name not in self._without_rest
        share = self._reserved if own else self._named
        who = _counted_for(resource, teller)
        has_share = (own and not kind.depth) or share.has_room(who, 1 + new)
        if new and not has_share:
            rest = OTHERS
        # For each name that was met without a rest kind, one place is kept free for it. Some more
        # places are kept for plain kinds and rests.
        without_rest = self._without_rest | ({rest.name} if rest not in self._handle else set())
        room = self._most if kind.plain else self._most - self._most // SPARE
        if has_share and len(self.kinds) + len(without_rest) < room:
            self._without_rest = without_rest
            if not own or kind.depth:
                share.told[who] += 1 + new
            return self._append(kind)
        # No room for a kind of its own: it is part of the rest, which is bound if it is not yet.
        if rest in self._handle:
            return self._handle[rest]
        if len(self.kinds) + len(without_rest) > self._most:
            return -1
        self._without_rest.discard(rest.name)
        return self._append(rest)

    def _append(self, kind: Kind) -> int:
        self._handle[kind] = len(self.kinds)
        self.kinds.append(kind)
        return len(self.kinds) - 1

    def by_kind(self, amount: Sequence[int]) -> Amount:
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


# Agents as they are described before they register.


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent to be.

    capacity: thousandths; of what is nobody's in particular, by name.
    special: thousandths; everything else: ports, reservations, disks, revocable resources.
    region, zone: its fault domain; empty where it has none.
    """

    hostname: str
    capacity: Mapping[str, int]
    attributes: Mapping[str, str] = field(default_factory=dict)
    special: Mapping[Resource, int] = field(default_factory=dict)
    region: str = ""
    zone: str = ""
    capabilities: frozenset[str] = AGENT_CAPABILITIES

    def info(self, agent_id: str) -> AgentInfo:
        """What it is called and like, beside its resources."""
        where = self.region, self.zone
        return AgentInfo(agent_id, self.hostname, dict(self.attributes), *where, self.capabilities)
