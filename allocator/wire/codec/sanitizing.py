"""Repairs invalid values that no decision depends on, so that they never end a session.

An invalid value that a decision or the books depend on is an error: a new session is better than a
guess. Values that are only shown, or not used yet, and a framework's own texts, which the master
cannot correct, are replaced by the nearest valid value. Readers stay strict: an event that a reader
or the core rejects is repaired and read again; a snapshot is repaired before it is read.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from allocator.core import LABELS_MAX, ROW_TEXT_MAX, ROWS_MAX, Allocator, Aside, harmless, quoted
from allocator.v1 import session_pb2 as pb
from allocator.v1 import types_pb2 as types
from allocator.wire.codec.proto_types import (
    AGENT_CAPABILITIES,
    FRAMEWORK_CAPABILITIES,
    read_quantities,
)
from allocator.wire.codec.validation import TEXT_LENGTH_MAX, TIME_MAX_MS, WireError

Told: TypeAlias = tuple[str, str, Aside]


def set_aside_of(allocator: Allocator, name: str, message: Any) -> Told | None:  # noqa: ANN401
    """Return the set-aside input of the event's framework or agent, if any."""
    state = allocator.state
    if not (state.frameworks.aside or state.agents.aside):
        return None
    if name in {"add_framework", "update_framework", "request"}:
        rows = state.frameworks.aside.get(message.framework)
        info = state.frameworks.info[message.framework] if rows else None
        return ("framework", info.framework_id, rows) if info and rows else None
    if name in {"add_agent", "update_agent"} and not isinstance(message, list):
        aside = state.agents.aside.get(message.agent)
        agent = state.agents.info[message.agent] if aside else None
        return ("agent", agent.agent_id, aside) if agent and aside else None
    return None


class Mark(NamedTuple):
    """A repair; `text`: what was wrong with the value, and what replaces it."""

    field: str
    text: str
    reason: "types.SetAsideReason.ValueType" = types.SET_ASIDE_REASON_UNREADABLE


Marks: TypeAlias = list[Mark]

FIELDS = (
    "hello.mesos_version",
    "hello.master_id",
    "hello.module_version",
    "kind.reserved_role",
    "role.path",
    "agent.agent_id",
    "agent.hostname",
    "agent.domain",
    "agent.attributes.name",
    "agent.attributes.type",
    "agent.attributes.value",
    "agent.capabilities",
    "agent.unavailability.start_ms",
    "agent.unavailability.duration_ms",
    "framework.framework_id",
    "framework.name",
    "framework.user",
    "framework.principal",
    "framework.capabilities",
    "framework.labels",
    "framework.minimum",
    "request.agent_id",
    "request.requests",
    "inverse_offer.status",
    "inverse_offer.refuse_ms",
)

_OURS = "allocator."

_TOLD_AS = {"minimum": "offer_filters", "requests": "request"}
"""Mesos's names of fields that have other names here."""

_SHOWN = 80


def mend_hello(message: pb.Hello) -> Marks:
    marks: Marks = []
    for name in ("mesos_version", "master_id", "module_version"):
        _cut(message, name, "hello", marks)
    return marks


def mend_snapshot(message: pb.SnapshotChunk, role_depth: int) -> Marks:
    """Repair the kinds, roles, frameworks and agents of a chunk, in place.

    `role_depth`: maximum number of levels of a role.
    """
    marks: Marks = []
    _mend_bindings(message, role_depth, marks)
    for framework in message.frameworks:
        _mend_words(framework, _mend_framework, marks)
    for agent in message.agents:
        _mend_words(agent, _mend_agent, marks)
    return marks


def mend_event(name: str, message: Any, role_depth: int) -> Marks:  # noqa: ANN401
    """Repair one event in place; `name`: its field; `role_depth`: as for a snapshot."""
    marks: Marks = []
    if name == "define":
        _mend_bindings(message, role_depth, marks)
    if name in _OF_STRANGERS:
        _mend_words(message, _OF_STRANGERS[name], marks)
    elif name in _MENDERS:
        _MENDERS[name](message, marks)
    return marks


def bare(name: str, message: Any, error: Exception) -> bool:  # noqa: ANN401
    """Remove the sender's own statements from an event, in place; return whether it had any.

    `error`: why the event was rejected with them.
    """
    dropped = [field for field in _WORDS.get(name, ()) if _is_set(message, field)]
    for field in dropped:
        message.ClearField(field)
    reason, why = types.SET_ASIDE_REASON_FAILED, f"failed ({type(error).__name__})"
    if isinstance(error, WireError):
        reason, why = types.SET_ASIDE_REASON_UNREADABLE, f"is refused: {error}"
    for field in dropped:
        text = harmless(f"reading this {why}; it is ignored", ROW_TEXT_MAX)
        told = _TOLD_AS.get(field, field)
        message.set_aside.insert(0, types.SetAside(field=told, reason=reason, text=text))
    return bool(dropped)


def _is_set(message: Any, field: str) -> bool:  # noqa: ANN401
    return any(each.name == field for each, _ in message.ListFields())


def _mend_words(message: Any, mend: "_Mender", marks: Marks) -> None:  # noqa: ANN401
    """Repair a framework's or agent's input, and record the repairs in the message."""
    mine: Marks = []
    mend(message, mine)
    for mark in mine[:ROWS_MAX]:
        field, text = mark.field.partition(".")[2], harmless(mark.text, ROW_TEXT_MAX)
        message.set_aside.add(field=_TOLD_AS.get(field, field), reason=mark.reason, text=text)
    marks += mine


def _mend_bindings(
    message: pb.SnapshotChunk | pb.DefineHandles, role_depth: int, marks: Marks
) -> None:
    for kind in message.kinds:
        _cut(kind, "reserved_role", "kind", marks)
    for role in message.roles:
        _mend_role(role, role_depth, marks)


def _mend_role(message: types.Role, depth_max: int, marks: Marks) -> None:
    """Replace the path of a role that is too deep or too long.

    The new path is directly below the deepest ancestor for which it is valid. The role keeps its
    handle. Any framework may subscribe to any role, so such paths must be expected.
    """
    path, depth = message.path, message.path.count("/") + 1
    if depth <= depth_max and len(path) <= TEXT_LENGTH_MAX:
        return
    # Mesos's role names contain no blanks, so this name is unique.
    name = f"role {message.role}"
    ancestors = path.split("/", depth_max)[: depth_max - 1]
    while ancestors and len("/".join(ancestors)) + 1 + len(name) > TEXT_LENGTH_MAX:
        ancestors.pop()
    message.path = "/".join([*ancestors, name])
    shown = message.path if len(message.path) <= _SHOWN else f"...{message.path[-_SHOWN:]}"
    bounds = f"{depth_max} levels and {TEXT_LENGTH_MAX} characters"
    text = f"has {depth} levels and {len(path)} characters, over {bounds}; {shown!r} is taken"
    marks.append(Mark("role.path", text, types.SET_ASIDE_REASON_TOO_DEEP))


def _mend_agent(message: types.Agent, marks: Marks) -> None:
    if not message.agent_id:
        message.agent_id = f"agent {message.agent}"
        marks.append(Mark("agent.agent_id", f"is empty; {message.agent_id!r} is used"))
    _cut(message, "agent_id", "agent", marks)
    _mend_place(message, marks)
    _mend_attributes(message.attributes, marks)
    _keep_known(message.capabilities, AGENT_CAPABILITIES, "agent.capabilities", marks)
    if message.HasField("unavailability"):
        _mend_window(message.unavailability, marks)


def _mend_place(message: types.Agent | pb.UpdateAgent, marks: Marks) -> None:
    _cut(message, "hostname", "agent", marks)
    domain = message.domain
    if max(len(domain.region), len(domain.zone)) > TEXT_LENGTH_MAX:
        text = f"has a name of more than {TEXT_LENGTH_MAX} characters; it is left out"
        marks.append(Mark("agent.domain", text, types.SET_ASIDE_REASON_TOO_LONG))
        message.ClearField("domain")


def _mend_update_agent(message: pb.UpdateAgent, marks: Marks) -> None:
    _mend_place(message, marks)
    _mend_attributes(message.attributes, marks)
    _keep_known(message.capabilities, AGENT_CAPABILITIES, "agent.capabilities", marks)


def _mend_attributes(messages: Any, marks: Marks) -> None:  # noqa: ANN401
    """Drop attributes without a name, which no rule can refer to; repair unknown types."""
    # Start at the end, so that removals do not shift entries that are still to be checked.
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if not message.name:
            marks.append(Mark("agent.attributes.name", "is empty; the attribute is left out"))
            del messages[index]
            continue
        longest = max(len(message.name), len(message.value))
        if longest > TEXT_LENGTH_MAX:
            text = f"has {longest} characters, over {TEXT_LENGTH_MAX}; the attribute is left out"
            field = "agent.attributes.value"
            marks.append(Mark(field, text, types.SET_ASIDE_REASON_TOO_LONG))
            del messages[index]
            continue
        if not types.VALUE_TYPE_SCALAR <= message.type <= types.VALUE_TYPE_TEXT:
            marks.append(Mark("agent.attributes.type", f"is {message.type}; TEXT is used"))
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
        text = f"is empty; {message.framework_id!r} is used"
        marks.append(Mark("framework.framework_id", text))
    for name in ("framework_id", "name", "user", "principal"):
        _cut(message, name, "framework", marks)
    _keep_known(message.capabilities, FRAMEWORK_CAPABILITIES, "framework.capabilities", marks)
    _mend_labels(message, marks)
    for minimum in message.minimum:
        _keep_readable(minimum.any_of, "framework.minimum", marks)


def _mend_labels(message: types.Framework, marks: Marks) -> None:
    """Drop labels that are too long (a cut one might mean something else) or too many.

    The allocator's own labels are kept first, then others in alphabetical order.
    """
    for key, value in list(message.labels.items()):
        length = max(len(key), len(value))
        if length > TEXT_LENGTH_MAX:
            del message.labels[key]
            text = f"{quoted(key)} has {length} characters, over {TEXT_LENGTH_MAX}; it is left out"
            marks.append(Mark("framework.labels", text, types.SET_ASIDE_REASON_TOO_LONG))
    if (count := len(message.labels)) > LABELS_MAX:
        order = sorted(message.labels, key=lambda key: (not key.startswith(_OURS), key))
        for key in order[LABELS_MAX:]:
            del message.labels[key]
        text = f"has {count} entries; {LABELS_MAX} of them are kept"
        marks.append(Mark("framework.labels", text, types.SET_ASIDE_REASON_TOO_MANY))


def _mend_request(message: pb.ResourceRequest, marks: Marks) -> None:
    _keep_readable(message.requests, "request.requests", marks)
    agents = message.agent_id
    if agents and (len(agents) != len(message.requests) or max(map(len, agents)) > TEXT_LENGTH_MAX):
        text = f"has {len(agents)} rows that do not belong to requests; any agent is taken"
        if len(agents) == len(message.requests):
            text = f"has more than {TEXT_LENGTH_MAX} characters in a row; any agent is taken"
        del agents[:]
        marks.append(Mark("request.agent_id", text))


def _keep_readable(messages: Any, field: str, marks: Marks) -> None:  # noqa: ANN401
    kept, wrong = [], ""
    for message in messages:
        try:
            read_quantities(message)
            kept.append(message)
        except WireError as error:
            wrong = wrong or str(error)
    if wrong:
        text = f"{len(messages) - len(kept)} entries are left out: {wrong}"
        del messages[:]
        messages.extend(kept)
        marks.append(Mark(field, text))


def _mend_inverse_offer(message: pb.InverseOfferUpdate, marks: Marks) -> None:
    status = message.status
    if not pb.InverseOfferUpdate.STATUS_UNKNOWN <= status <= pb.InverseOfferUpdate.STATUS_DECLINE:
        marks.append(Mark("inverse_offer.status", f"is {status}; UNKNOWN is used"))
        message.status = pb.InverseOfferUpdate.STATUS_UNKNOWN
    _clamp(message, "refuse_ms", -1, "inverse_offer", marks)


_Mender: TypeAlias = Callable[[Any, Marks], None]

_OF_STRANGERS: Mapping[str, _Mender] = MappingProxyType(
    {
        "add_agent": _mend_agent,
        "update_agent": _mend_update_agent,
        "add_framework": _mend_framework,
        "update_framework": _mend_framework,
        "request": _mend_request,
    }
)

_WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "add_agent": ("attributes", "domain"),
        "update_agent": ("attributes", "domain"),
        "add_framework": ("labels", "minimum"),
        "update_framework": ("labels", "minimum"),
        "request": ("requests",),
    }
)
"""Fields of an event that are its sender's own statements, not facts for the books."""

_MENDERS: Mapping[str, _Mender] = MappingProxyType(
    {
        "unavailability": _mend_unavailability,
        "inverse_offer": _mend_inverse_offer,
    }
)


def _cut(message: Any, name: str, place: str, marks: Marks) -> None:  # noqa: ANN401
    value = getattr(message, name)
    if (length := len(value)) > TEXT_LENGTH_MAX:
        setattr(message, name, value[:TEXT_LENGTH_MAX])
        text = f"has {length} characters; the first {TEXT_LENGTH_MAX} are kept"
        marks.append(Mark(f"{place}.{name}", text, types.SET_ASIDE_REASON_TOO_LONG))


def _clamp(message: Any, name: str, least: int, place: str, marks: Marks) -> None:  # noqa: ANN401
    value = getattr(message, name)
    if not least <= value <= TIME_MAX_MS:
        taken = min(max(value, least), TIME_MAX_MS)
        setattr(message, name, taken)
        marks.append(Mark(f"{place}.{name}", f"is {value}; {taken} is used"))


def _keep_known(
    values: Any,  # noqa: ANN401
    names: Mapping[int, str],
    field: str,
    marks: Marks,
) -> None:
    """Drop values that this sidecar does not know, so that no decision can depend on them."""
    if not names.keys() >= set(values):
        known = [value for value in values if value in names]
        unknown = sorted(set(values) - set(known))
        del values[:]
        values.extend(known)
        text = f"has {unknown}, unknown to this sidecar; they are left out"
        marks.append(Mark(field, text, types.SET_ASIDE_REASON_UNKNOWN))
