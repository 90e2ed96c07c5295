"""Resources as a Mesos master has them: reserved, revocable, shared and more.

A `Resource` carries everything that distinguishes it in a master; its `Kind` carries only what
decisions need.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from allocator.core import MILLI, AgentInfo, Kind

Amount = tuple[int, ...]
"""Thousandths by resource row; entries missing at the end are 0."""

AGENT_CAPABILITIES = frozenset({"MULTI_ROLE", "HIERARCHICAL_ROLE", "RESERVATION_REFINEMENT"})

NAMES = {"cpus": "CPU", "mem": "memory", "gpus": "GPU"}
"""Display names in tables and on axes."""

SHARED = "SHARED_RESOURCES"
REVOCABLE = "REVOCABLE_RESOURCES"
REFINEMENT = "RESERVATION_REFINEMENT"


@dataclass(frozen=True, slots=True)
class Reservation:
    """One of a stack of reservations.

    static: made by the agent's flags.
    principal: the one that reserved it; empty if unknown.
    """

    role: str
    static: bool = False
    principal: str = ""
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Resource:
    """The identity of a resource: amounts of equal resources are added up.

    scalar: False for ranges and sets, which are kept as counts.
    reservations: the effective one last; empty if unreserved.
    provider: id of the resource provider; empty for the agent's own.
    source: ``path``, ``mount``, ``block`` or ``raw``; empty for the root disk and anything that is
        not a disk.
    source_id: path or id of the disk.
    persistence: id of the persistent volume; empty if it is none.
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
        """The role it is reserved to; empty if unreserved."""
        return self.reservations[-1].role if self.reservations else ""

    @property
    def indivisible(self) -> bool:
        """Whether it is offered whole or not at all; a raw disk without an id can be divided."""
        one_disk = self.source in {"block", "raw"} and bool(self.source_id)
        return bool(self.persistence) or self.source == "mount" or one_disk


class ResourceTable:
    """Resources by row, in the order of their first appearance.

    names: plain resources, which get the first rows.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.resources = [Resource(name) for name in names]
        self._row = {resource: row for row, resource in enumerate(self.resources)}

    def __len__(self) -> int:
        return len(self.resources)

    def __getitem__(self, row: int) -> Resource:
        return self.resources[row]

    def row(self, resource: Resource) -> int:
        """Row of a resource; a new resource gets the next row."""
        if resource not in self._row:
            self._row[resource] = len(self.resources)
            self.resources.append(resource)
        return self._row[resource]


def lineage(role: str) -> list[str]:
    """The role and its ancestors, outermost first.

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

    If it is reserved already, the new role must be a descendant of the current one.
    """
    more = Reservation(role, static, principal, labels)
    return replace(resource, reservations=(*resource.reservations, more))


def unreserved(resource: Resource) -> Resource:
    return replace(resource, reservations=resource.reservations[:-1])


def disk(source: str, source_id: str = "") -> Resource:
    """A disk of a source: ``path``, ``mount``, ``block`` or ``raw``."""
    return Resource("disk", source=source, source_id=source_id)


def volume(resource: Resource, persistence: str, *, shared: bool = False) -> Resource:
    """A persistent volume on a disk that has none."""
    return replace(resource, persistence=persistence, shared=shared)


def without_volume(resource: Resource) -> Resource:
    """The disk that remains when its volume is destroyed."""
    return replace(resource, persistence="", shared=False)


def allocatable(resource: Resource, role: str) -> bool:
    """Whether a framework of the role may use it: unreserved, or reserved to it or an ancestor."""
    return not resource.reservations or resource.role in lineage(role)


def understood(resource: Resource, capabilities: Iterable[str]) -> bool:
    """Whether a framework with these capabilities may be offered it."""
    # Called for each resource of each offer: it allocates nothing in the usual case.
    return (
        (not resource.shared or SHARED in capabilities)
        and (not resource.revocable or REVOCABLE in capabilities)
        and (len(resource.reservations) < 2 or REFINEMENT in capabilities)
    )


def in_quota(resource: Resource) -> bool:
    """Whether it counts towards a role's quota: scalar, unreserved and not revocable."""
    return resource.scalar and not resource.reservations and not resource.revocable


def take(resource: Resource, there: int, wanted: int) -> int:
    """How much of the amount `there` can be taken without exceeding `wanted`.

    Indivisible disks and shared volumes are taken whole or not at all; ranges and sets in whole
    elements.

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
    """Whether every entry of `amount` is at least that of `least`; entries are not negative."""
    # A loop, called several times for each offer: a generator takes twice as long.
    for has, needs in zip(amount, least, strict=False):
        if has < needs:
            return False
    return len(least) <= len(amount) or not any(least[len(amount) :])


def add(row: list[int], amount: Sequence[int], sign: int = 1) -> None:
    """Add an amount to a row in place; a sign of -1 subtracts it."""
    if len(amount) > len(row):
        row.extend([0] * (len(amount) - len(row)))
    for kind, value in enumerate(amount):
        row[kind] += sign * value


def plus(one: Sequence[int], other: Sequence[int]) -> Amount:
    return tuple(a + b for a, b in zip_longest(one, other, fillvalue=0))


def minus(one: Sequence[int], other: Sequence[int]) -> Amount:
    """Subtract one row from another, entry by entry."""
    return tuple(a - b for a, b in zip_longest(one, other, fillvalue=0))


def least(one: Sequence[int], other: Sequence[int]) -> Amount:
    """The entry-wise minimum of two rows."""
    return tuple(map(min, zip_longest(one, other, fillvalue=0)))


def padded(row: Sequence[int], width: int) -> Amount:
    return (*row, *[0] * (width - len(row)))


def same(one: Sequence[int], other: Sequence[int]) -> bool:
    return not any(minus(one, other))


# Mapping between a master's resources and the kinds that the sidecar knows.
#
# A master has many resources but few kinds of them. Beyond the number of kinds that the sidecar
# distinguishes, further kinds of a name are merged into the rest kind of that name. Each source of
# resources (framework, agent or principal) has a share of the handles, so no source can exhaust
# them. To turn amounts by kind back into resources, `chop` chooses from those that the agent has.

KINDS_USUAL = 512
"""Limit on kinds if the sidecar does not state one."""

SPARE = 8
"""One in this many handles is kept for plain and rest kinds, whose names may appear late."""

NAMED_EIGHTHS, RESERVED_EIGHTHS = 2, 5
"""Shares of all handles: for names that Mesos does not define, and for reserved resources."""

FREE_OF_OWN = 2
"""A source with n kinds may bind another while its share has over n times this many free."""

OTHERS = Kind("(other resources)", rest=True)
"""All names beyond their share."""


@dataclass(slots=True)
class _Share:
    """Handles that several sources share, and the number that each source has bound."""

    room: int
    told: Counter[str] = field(default_factory=Counter)

    def has_room(self, teller: str, count: int) -> bool:
        free = self.room - self.told.total()
        return count <= free and FREE_OF_OWN * self.told[teller] < free


def _mesos_own(kind: Kind) -> bool:
    """Whether its name is one of the default resources of a Mesos agent."""
    return kind.name == "ports" if not kind.scalar else kind.name in {"cpus", "mem", "disk", "gpus"}


def kind_of(resource: Resource) -> Kind:
    """The properties of a resource that decisions need."""
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
    """Name the source whose share a resource counts against.

    The principal of its last reservation, else the source that reported it, else its top-level
    role.
    """
    last = resource.reservations[-1] if resource.reservations else None
    if last is not None and last.principal:
        return f"principal {last.principal}"
    return teller or f"role {resource.role.partition('/')[0]}"


class KindTable:
    """Kinds by handle, as bound in one session.

    names: number of plain resources at the start of the table; they get the first handles.
    usual: how many leading rows equal their handles: `names`, or 0 if the order differs.
    """

    def __init__(self, table: ResourceTable, names: int) -> None:
        self._table = table
        self._names = names
        self._teller: dict[int, str] = {}
        self.begin(KINDS_USUAL)

    def begin(self, kinds_max: int) -> None:
        """Start again for a sidecar that distinguishes `kinds_max` kinds (0: not stated)."""
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
        """Handle of a resource's kind, bound on first use; -1 if there is no room.

        Room is kept for a rest kind of each name seen, so there is none only if there are more
        names than kinds. The sidecar does not learn of resources without a kind.
        """
        return self._find(self._table.row(resource))

    def tell(self, amount: Sequence[int], teller: str) -> None:
        """Remember `teller` as the source of the resources in `amount` that have none yet."""
        for row in range(self._names, len(amount)):
            if amount[row]:
                self._teller.setdefault(row, teller)

    def _find(self, row: int) -> int:
        """Handle of the kind of a row; cached."""
        if row not in self._of_row:
            self._of_row[row] = self._bind(self._table[row], self._teller.get(row, ""))
        return self._of_row[row]

    def _bind(self, resource: Resource, teller: str) -> int:
        """Find or bind the kind of a resource, or the rest kind of its name."""
        kind = kind_of(resource)
        rest = Kind(kind.name, scalar=kind.scalar, rest=True)
        if kind in self._handle:
            return self._handle[kind]
        # A name that Mesos does not define needs room for a rest kind, too.
        own = _mesos_own(kind)
        new = not own and rest not in self._handle and kind.name not in self._without_rest
        share = self._reserved if own else self._named
        who = _counted_for(resource, teller)
        has_share = (own and not kind.depth) or share.has_room(who, 1 + new)
        if new and not has_share:
            rest = OTHERS
        # Keep one handle free for each name without a rest kind, and spare ones for plain kinds
        # and rests.
        without_rest = self._without_rest | ({rest.name} if rest not in self._handle else set())
        room = self._most if kind.plain else self._most - self._most // SPARE
        if has_share and len(self.kinds) + len(without_rest) < room:
            self._without_rest = without_rest
            if not own or kind.depth:
                share.told[who] += 1 + new
            return self._append(kind)
        # No room for a kind of its own: merge it into the rest kind, bound on first use.
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
        # Only plain resources: rows equal handles.
        if len(amount) <= self.usual:
            return tuple(amount)
        found = [(self._find(row), value) for row, value in enumerate(amount) if value]
        kinds = [0] * len(self.kinds)
        for handle, value in found:
            if handle >= 0:
                kinds[handle] += value
        return tuple(kinds)

    def chop(self, free: Sequence[int], wanted: Sequence[int]) -> Amount:
        """Choose resources from a row of free ones to make up amounts by kind.

        Takes whole resources first, then parts of those that can be divided. Resources of a rest
        kind are taken whole only.
        """
        left = list(wanted)
        taken = [0] * len(free)
        larger = []
        # Take what fits whole first; larger ones come after.
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


# Agents before they register.


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent that is going to register.

    capacity: thousandths of plain resources, by name.
    special: thousandths of the others: ports, reservations, disks, revocable resources.
    region, zone: its fault domain; empty if it has none.
    """

    hostname: str
    capacity: Mapping[str, int]
    attributes: Mapping[str, str] = field(default_factory=dict)
    special: Mapping[Resource, int] = field(default_factory=dict)
    region: str = ""
    zone: str = ""
    capabilities: frozenset[str] = AGENT_CAPABILITIES

    def info(self, agent_id: str) -> AgentInfo:
        """Its description, without resources."""
        where = self.region, self.zone
        return AgentInfo(agent_id, self.hostname, dict(self.attributes), *where, self.capabilities)
