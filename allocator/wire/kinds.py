"""Kinds of resources on the wire and in the core.

The core never looks into a reservation or a disk, it only asks whether two are equal. There they
are texts, written so that different ones differ and that they can be read back: a word, then what
belongs to it as the query of a URL.

    dynamic:eng/ads?principal=ops&label.purpose=batch
    mount:?source=%2Fmnt%2F1&persistence=db
"""

from collections.abc import Iterable, Iterator
from urllib.parse import parse_qsl, quote, unquote, urlencode

from allocator.core import Kind
from allocator.v1 import types_pb2 as pb
from allocator.wire import validation
from allocator.wire.errors import WireError, refuse

_TYPES = {
    pb.Reservation.TYPE_STATIC: "static",
    pb.Reservation.TYPE_DYNAMIC: "dynamic",
}
_SOURCES = {
    pb.Disk.SOURCE_UNSPECIFIED: "root",
    pb.Disk.SOURCE_PATH: "path",
    pb.Disk.SOURCE_MOUNT: "mount",
    pb.Disk.SOURCE_BLOCK: "block",
    pb.Disk.SOURCE_RAW: "raw",
}
_VALUE_TYPES = (pb.VALUE_TYPE_SCALAR, pb.VALUE_TYPE_RANGES, pb.VALUE_TYPE_SET)
_LABEL = "label."


def read_kind(message: pb.Kind) -> Kind:
    """Read a kind, without its handle."""
    if message.type not in _VALUE_TYPES:
        refuse("type", f"is {message.type}; it must be one of {list(_VALUE_TYPES)}")
    reservations = message.reservations
    disk = message.disk if message.HasField("disk") else None
    return Kind(
        name=validation.text(message.name, "name", empty=False),
        scalar=message.type == pb.VALUE_TYPE_SCALAR,
        reservation=tuple(_read_each(reservations)),
        reserved_role=reservations[-1].role if reservations else "",
        revocable=message.revocable,
        shared=message.shared,
        provider=validation.text(message.provider_id, "provider_id"),
        disk=_disk_text(disk) if disk else "",
        atomic=bool(disk and disk.atomic),
    )


def _read_each(reservations: Iterable[pb.Reservation]) -> Iterator[str]:
    for index, reservation in enumerate(reservations):
        try:
            yield _reservation_text(reservation)
        except WireError as error:
            raise error.below(f"reservations[{index}]") from None


def _reservation_text(message: pb.Reservation) -> str:
    if message.type not in _TYPES:
        refuse("type", f"is {message.type}; it must be one of {list(_TYPES)}")
    validation.text(message.role, "role", empty=False)
    details = {}
    if message.principal:
        details["principal"] = validation.text(message.principal, "principal")
    labels = validation.text_map(message.labels, "labels")
    details.update((_LABEL + key, value) for key, value in labels.items())
    return _join(_TYPES[message.type], message.role, details)


def _disk_text(message: pb.Disk) -> str:
    if message.source not in _SOURCES:
        refuse("disk.source", f"is {message.source}; it must be one of {list(_SOURCES)}")
    details = {
        "source": validation.text(message.source_id, "disk.source_id"),
        "persistence": validation.text(message.persistence_id, "disk.persistence_id"),
        "profile": validation.text(message.profile, "disk.profile"),
    }
    given = {key: value for key, value in details.items() if value}
    return _join(_SOURCES[message.source], "", given)


def _join(word: str, name: str, details: dict[str, str]) -> str:
    query = urlencode(details)
    return f"{word}:{quote(name, safe='/*')}" + (f"?{query}" if query else "")


def _split(text: str) -> tuple[str, str, dict[str, str]]:
    head, _, query = text.partition("?")
    word, _, name = head.partition(":")
    return word, unquote(name), dict(parse_qsl(query, keep_blank_values=True))


def write_kind(handle: int, kind: Kind) -> pb.Kind:
    """Write a kind as a module does; what is no scalar becomes ranges."""
    message = pb.Kind(
        kind=handle,
        name=kind.name,
        type=pb.VALUE_TYPE_SCALAR if kind.scalar else pb.VALUE_TYPE_RANGES,
        reservations=[_write_reservation(text) for text in kind.reservation],
        revocable=kind.revocable,
        shared=kind.shared,
        provider_id=kind.provider,
    )
    if kind.disk:
        word, _, details = _split(kind.disk)
        message.disk.source = next(value for value, name in _SOURCES.items() if name == word)
        message.disk.source_id = details.get("source", "")
        message.disk.persistence_id = details.get("persistence", "")
        message.disk.profile = details.get("profile", "")
        message.disk.atomic = kind.atomic
    return message


def _write_reservation(text: str) -> pb.Reservation:
    word, role, details = _split(text)
    return pb.Reservation(
        type=next(value for value, name in _TYPES.items() if name == word),
        role=role,
        principal=details.get("principal", ""),
        labels={
            key.removeprefix(_LABEL): value
            for key, value in details.items()
            if key.startswith(_LABEL)
        },
    )
