"""Kinds of resources on the wire and in the core."""

from allocator.core import Kind
from allocator.v1 import types_pb2 as pb
from allocator.wire.codec import validation
from allocator.wire.codec.errors import refuse

_FORMS = {
    pb.DISK_FORM_UNSPECIFIED: "",
    pb.DISK_FORM_PATH: "path",
    pb.DISK_FORM_MOUNT: "mount",
    pb.DISK_FORM_BLOCK: "block",
    pb.DISK_FORM_RAW: "raw",
    pb.DISK_FORM_VOLUME: "volume",
}
_NUMBERS = {form: number for number, form in _FORMS.items()}
_VALUE_TYPES = (pb.VALUE_TYPE_SCALAR, pb.VALUE_TYPE_RANGES, pb.VALUE_TYPE_SET)
DEPTH_MAX = 2**16
"""No stack of reservations is deeper: each refines the one below it by a level of the role."""


def read_kind(message: pb.Kind) -> Kind:
    """Read a kind, without its handle."""
    if message.type not in _VALUE_TYPES:
        refuse("type", f"is {message.type}; it must be one of {list(_VALUE_TYPES)}")
    if message.form not in _FORMS:
        refuse("form", f"is {message.form}; it must be one of {list(_FORMS)}")
    depth = validation.integer(message.reservation_depth, 0, DEPTH_MAX, "reservation_depth")
    role = validation.text(message.reserved_role, "reserved_role")
    if bool(depth) != bool(role):
        refuse(
            "reservation_depth",
            f"is {depth} where reserved_role is {role!r}; give both, or neither",
        )
    kind = Kind(
        name=validation.text(message.name, "name", empty=False),
        scalar=message.type == pb.VALUE_TYPE_SCALAR,
        reserved_role=role,
        depth=depth,
        revocable=message.revocable,
        shared=message.shared,
        form=_FORMS[message.form],
        indivisible=message.indivisible,
        rest=message.rest,
    )
    if kind.rest and kind != Kind(kind.name, scalar=kind.scalar, rest=True):
        refuse("rest", "is set beside what tells kinds apart; leave that out of the rest")
    return kind


def write_kind(handle: int, kind: Kind) -> pb.Kind:
    """Write a kind as a module does; what is no scalar becomes ranges."""
    return pb.Kind(
        kind=handle,
        name=kind.name,
        type=pb.VALUE_TYPE_SCALAR if kind.scalar else pb.VALUE_TYPE_RANGES,
        reserved_role=kind.reserved_role,
        reservation_depth=kind.depth,
        revocable=kind.revocable,
        shared=kind.shared,
        form=_NUMBERS[kind.form],
        indivisible=kind.indivisible,
        rest=kind.rest,
    )
