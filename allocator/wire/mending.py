"""What only informs is mended and marked; it never ends a session.

Where a decision or the books depend on a value, a wrong one is an error: to guess would be worse
than to begin again. A value that is only shown, or kept for nobody yet, and a framework's own text,
which the master cannot mend, is replaced by the nearest one that can be taken. `DESIGN.md` tells
which field is which. The readers themselves stay strict: an event that they refuse, or the core
does, is mended and read again, and a snapshot is mended before it is read.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from allocator.v1 import session_pb2 as pb
from allocator.v1 import types_pb2 as types
from allocator.wire.errors import TEXT_LENGTH_MAX
from allocator.wire.proto_types import AGENT_CAPABILITIES, FRAMEWORK_CAPABILITIES
from allocator.wire.validation import TIME_MAX_MS


class Mark(NamedTuple):
    """What was mended.

    Attributes
    ----------
    field : str
        One of `FIELDS`.
    text : str
        What was wrong with the value, and what is taken instead.
    """

    field: str
    text: str


Marks: TypeAlias = list[Mark]

FIELDS = (
    "hello.mesos_version",
    "hello.master_id",
    "hello.module_version",
    "kind.reserved_role",
    "role.path",
    "agent.agent_id",
    "agent.attributes.name",
    "agent.attributes.type",
    "agent.capabilities",
    "agent.unavailability.start_ms",
    "agent.unavailability.duration_ms",
    "framework.framework_id",
    "framework.name",
    "framework.user",
    "framework.principal",
    "framework.capabilities",
    "framework.labels",
    "inverse_offer.status",
    "inverse_offer.refuse_ms",
)
"""Every field that may be mended."""

_SHOWN = 80
"""Of a long path so many characters are told."""


def mend_hello(message: pb.Hello) -> Marks:
    """Mend who calls, in place."""
    marks: Marks = []
    for name in ("mesos_version", "master_id", "module_version"):
        _cut(message, name, "hello", marks)
    return marks


def mend_snapshot(message: pb.SnapshotChunk, role_depth: int) -> Marks:
    """Mend the kinds, roles, frameworks and agents of a chunk, in place.

    Parameters
    ----------
    message : SnapshotChunk
    role_depth : int
        How many levels a role may have.
    """
    marks: Marks = []
    _mend_bindings(message, role_depth, marks)
    for framework in message.frameworks:
        _mend_framework(framework, marks)
    for agent in message.agents:
        _mend_agent(agent, marks)
    return marks


def mend_event(name: str, message: Any, role_depth: int) -> Marks:  # noqa: ANN401
    """Mend one event, given by the name of its field, in place; roles as in a snapshot."""
    marks: Marks = []
    if name == "define":
        _mend_bindings(message, role_depth, marks)
    mend = _MENDERS.get(name)
    if mend is not None:
        mend(message, marks)
    return marks


def _mend_bindings(
    message: pb.SnapshotChunk | pb.DefineHandles, role_depth: int, marks: Marks
) -> None:
    for kind in message.kinds:
        _cut(kind, "reserved_role", "kind", marks)
    for role in message.roles:
        _mend_role(role, role_depth, marks)


def _mend_role(message: types.Role, depth_max: int, marks: Marks) -> None:
    """Let a role that is too deep, or too long, stand below the last of its ancestors that is not.

    Any framework may subscribe to such a role. Its handle says which it is; all that is different
    here is who its siblings are.
    """
    path, depth = message.path, message.path.count("/") + 1
    if depth <= depth_max and len(path) <= TEXT_LENGTH_MAX:
        return
    # No role of Mesos has a blank in it, so no other has this name.
    name = f"role {message.role}"
    ancestors = path.split("/", depth_max)[: depth_max - 1]
    while ancestors and len("/".join(ancestors)) + 1 + len(name) > TEXT_LENGTH_MAX:
        ancestors.pop()
    message.path = "/".join([*ancestors, name])
    shown = message.path if len(message.path) <= _SHOWN else f"...{message.path[-_SHOWN:]}"
    bounds = f"{depth_max} levels and {TEXT_LENGTH_MAX} characters"
    text = f"has {depth} levels and {len(path)} characters, over {bounds}; {shown!r} is taken"
    marks.append(Mark("role.path", text))


def _mend_agent(message: types.Agent, marks: Marks) -> None:
    if not message.agent_id:
        message.agent_id = f"agent {message.agent}"
        marks.append(Mark("agent.agent_id", f"is empty; {message.agent_id!r} is taken"))
    _cut(message, "agent_id", "agent", marks)
    _mend_attributes(message.attributes, marks)
    _keep_known(message.capabilities, AGENT_CAPABILITIES, "agent.capabilities", marks)
    if message.HasField("unavailability"):
        _mend_window(message.unavailability, marks)


def _mend_update_agent(message: pb.UpdateAgent, marks: Marks) -> None:
    _mend_attributes(message.attributes, marks)
    _keep_known(message.capabilities, AGENT_CAPABILITIES, "agent.capabilities", marks)


def _mend_attributes(messages: Any, marks: Marks) -> None:  # noqa: ANN401
    """Leave out attributes without a name, for no rule can ask for them; mend unknown types.

    No decision depends on the type.
    """
    # From the end, so that a removal does not move what is still to come.
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if not message.name:
            marks.append(Mark("agent.attributes.name", "is empty; the attribute is left out"))
            del messages[index]
            continue
        if not types.VALUE_TYPE_SCALAR <= message.type <= types.VALUE_TYPE_TEXT:
            marks.append(Mark("agent.attributes.type", f"is {message.type}; TEXT is taken"))
            message.type = types.VALUE_TYPE_TEXT


def _mend_unavailability(message: pb.UnavailabilityUpdate, marks: Marks) -> None:
    if message.HasField("unavailability"):
        _mend_window(message.unavailability, marks)


def _mend_window(message: types.Unavailability, marks: Marks) -> None:
    for name in ("start_ms", "duration_ms"):
        _clamp(message, name, 0, "agent.unavailability", marks)


def _mend_framework(message: types.Framework, marks: Marks) -> None:
    if not message.framework_id:
        message.framework_id = f"framework {message.framework}"
        text = f"is empty; {message.framework_id!r} is taken"
        marks.append(Mark("framework.framework_id", text))
    for name in ("framework_id", "name", "user", "principal"):
        _cut(message, name, "framework", marks)
    _keep_known(message.capabilities, FRAMEWORK_CAPABILITIES, "framework.capabilities", marks)
    # A label cut in the middle could mean something else, so a long one is left out.
    for key, value in list(message.labels.items()):
        length = max(len(key), len(value))
        if length > TEXT_LENGTH_MAX:
            del message.labels[key]
            text = f"{key[:80]!r} has {length} characters, over {TEXT_LENGTH_MAX}; it is left out"
            marks.append(Mark("framework.labels", text))


def _mend_inverse_offer(message: pb.InverseOfferUpdate, marks: Marks) -> None:
    status = message.status
    if not pb.InverseOfferUpdate.STATUS_UNKNOWN <= status <= pb.InverseOfferUpdate.STATUS_DECLINE:
        marks.append(Mark("inverse_offer.status", f"is {status}; UNKNOWN is taken"))
        message.status = pb.InverseOfferUpdate.STATUS_UNKNOWN
    _clamp(message, "refuse_ms", -1, "inverse_offer", marks)


_MENDERS: Mapping[str, Callable[[Any, Marks], None]] = MappingProxyType(
    {
        "add_agent": _mend_agent,
        "update_agent": _mend_update_agent,
        "add_framework": _mend_framework,
        "update_framework": _mend_framework,
        "unavailability": _mend_unavailability,
        "inverse_offer": _mend_inverse_offer,
    }
)


def _cut(message: Any, name: str, place: str, marks: Marks) -> None:  # noqa: ANN401
    """Cut a text that is too long."""
    value = getattr(message, name)
    if (length := len(value)) > TEXT_LENGTH_MAX:
        setattr(message, name, value[:TEXT_LENGTH_MAX])
        text = f"has {length} characters; the first {TEXT_LENGTH_MAX} are taken"
        marks.append(Mark(f"{place}.{name}", text))


def _clamp(message: Any, name: str, least: int, place: str, marks: Marks) -> None:  # noqa: ANN401
    """Replace a time that is out of range by the nearest that is in it."""
    value = getattr(message, name)
    if not least <= value <= TIME_MAX_MS:
        taken = min(max(value, least), TIME_MAX_MS)
        setattr(message, name, taken)
        marks.append(Mark(f"{place}.{name}", f"is {value}; {taken} is taken"))


def _keep_known(
    values: Any,  # noqa: ANN401
    names: Mapping[int, str],
    field: str,
    marks: Marks,
) -> None:
    """Leave out what this sidecar has no name for, so that no decision can depend on it."""
    if not names.keys() >= set(values):
        known = [value for value in values if value in names]
        unknown = sorted(set(values) - set(known))
        del values[:]
        values.extend(known)
        marks.append(Mark(field, f"has {unknown}, unknown to this sidecar; they are left out"))
