"""Resources as Mesos has them: reserved, revocable, persistent, shared, a provider's.

These are the objects of a master, with all that tells them apart there. What of it decisions need
is said by `allocator.lab.master.kinds`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from allocator.core import MILLI

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
    """The resource without its last reservation."""
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
