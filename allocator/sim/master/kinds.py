"""Kinds of resources as Mesos has them: reserved, revocable, persistent, shared, a provider's.

The texts of reservations and disks are those of `allocator.wire.kinds`, so that a kind is the same
on both sides of the wire.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote, unquote, urlencode

from allocator.core import MILLI, Kind

SHARED = "SHARED_RESOURCES"
REVOCABLE = "REVOCABLE_RESOURCES"
REFINEMENT = "RESERVATION_REFINEMENT"

_PERSISTENCE = "persistence="


class KindTable:
    """Kinds by handle, in the order in which they were met.

    Parameters
    ----------
    names : sequence of str
        Of the plain kinds that everybody knows; they have the first handles.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.kinds = [Kind(name) for name in names]
        self._handle = {kind: handle for handle, kind in enumerate(self.kinds)}

    def __len__(self) -> int:
        return len(self.kinds)

    def __getitem__(self, handle: int) -> Kind:
        return self.kinds[handle]

    def handle(self, kind: Kind) -> int:
        """Handle of a kind, the next one where it was not met before."""
        if kind not in self._handle:
            self._handle[kind] = len(self.kinds)
            self.kinds.append(kind)
        return self._handle[kind]


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
    kind: Kind, role: str, *, static: bool = False, details: Mapping[str, str] | None = None
) -> Kind:
    """The kind with one more reservation.

    Parameters
    ----------
    kind : Kind
    role : str
        Whose it is to be; where the kind is reserved already, one below the role it is reserved to.
    static : bool
        Made by the agent's flags; only as the first.
    details : mapping of str to str
        ``principal``, and labels as ``label.purpose``.
    """
    query = urlencode(details or {})
    word = "static" if static else "dynamic"
    text = f"{word}:{quote(role, safe='/*')}" + (f"?{query}" if query else "")
    return replace(kind, reservation=(*kind.reservation, text), reserved_role=role)


def unreserved(kind: Kind) -> Kind:
    """The kind without its last reservation."""
    stack = kind.reservation[:-1]
    role = unquote(stack[-1].partition(":")[2].partition("?")[0]) if stack else ""
    return replace(kind, reservation=stack, reserved_role=role)


def disk(source: str, path: str = "", *, persistence: str = "") -> Kind:
    """A disk: ``root``, or ``path``, ``mount``, ``block``, ``raw`` with the source's identity."""
    details = {"source": path, "persistence": persistence}
    query = urlencode({key: text for key, text in details.items() if text})
    return Kind(
        "disk",
        disk=f"{source}:" + (f"?{query}" if query else ""),
        atomic=bool(persistence) or source in {"mount", "block", "raw"},
    )


def volume(kind: Kind, persistence: str, *, shared: bool = False) -> Kind:
    """A persistent volume on a disk without one."""
    source, _, path = kind.disk.partition(":?source=")
    made = disk(source or "root", unquote(path), persistence=persistence)
    return replace(kind, disk=made.disk, atomic=True, shared=shared)


def persistent(kind: Kind) -> bool:
    """Whether it is a volume."""
    return _PERSISTENCE in kind.disk


def without_volume(kind: Kind) -> Kind:
    """The disk that is left when its volume is destroyed."""
    text = kind.disk.partition(_PERSISTENCE)[0].rstrip("?&")
    plain = text == "root:"
    return replace(kind, disk="" if plain else text, atomic=not plain, shared=False)


def allocatable(kind: Kind, role: str) -> bool:
    """Whether a framework of the role may have it: nobody's, the role's, or an ancestor's."""
    return not kind.reservation or kind.reserved_role in lineage(role)


def understood(kind: Kind, capabilities: Iterable[str]) -> bool:
    """Whether a framework with these capabilities may see it."""
    needed = {
        SHARED: kind.shared,
        REVOCABLE: kind.revocable,
        REFINEMENT: len(kind.reservation) > 1,
    }
    return all(name in capabilities for name, applies in needed.items() if applies)


def in_quota(kind: Kind) -> bool:
    """Whether it counts as what a role was given: a scalar, unreserved, not revocable."""
    return kind.scalar and not kind.reservation and not kind.revocable


def take(kind: Kind, there: int, wanted: int) -> int:
    """How much of what is there can be taken where at most `wanted` is.

    A disk that is one piece, and the copy of a shared volume, are whole or nothing; elements of
    ranges and sets are.

    Examples
    --------
    >>> take(Kind("ports", scalar=False), 9000, 2500)
    2000
    """
    if there <= wanted:
        return there
    if kind.atomic or kind.shared:
        return 0
    return wanted if kind.scalar else wanted - wanted % MILLI
