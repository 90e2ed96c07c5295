"""Reads the protocol's types: amounts, agents, frameworks, quotas, columns; writes some of them.

Readers raise a `WireError` whose field is relative to the given message.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from google.protobuf.message import Message

from allocator.core import (
    HOUR_MS,
    LABELS_MAX,
    REASONS,
    AgentInfo,
    Aside,
    BudgetRow,
    FrameworkInfo,
    Holdings,
    Kind,
    SetAside,
    SetQuota,
    bounded,
)
from allocator.v1 import types_pb2 as pb
from allocator.v1.explain_pb2 import BudgetUse
from allocator.wire.codec import validation
from allocator.wire.codec.validation import WireError, reject

_FORMS = {
    pb.DISK_FORM_UNSPECIFIED: "",
    pb.DISK_FORM_PATH: "path",
    pb.DISK_FORM_MOUNT: "mount",
    pb.DISK_FORM_BLOCK: "block",
    pb.DISK_FORM_RAW: "raw",
    pb.DISK_FORM_VOLUME: "volume",
}
_VALUE_TYPES = (pb.VALUE_TYPE_SCALAR, pb.VALUE_TYPE_RANGES, pb.VALUE_TYPE_SET)
DEPTH_MAX = 2**16
"""Maximum number of stacked reservations; each refines the role of the one below it."""


def read_kind(message: pb.Kind) -> Kind:
    if message.type not in _VALUE_TYPES:
        reject("type", f"is {message.type}; it must be one of {list(_VALUE_TYPES)}")
    if message.form not in _FORMS:
        reject("form", f"is {message.form}; it must be one of {list(_FORMS)}")
    depth = validation.integer(message.reservation_depth, 0, DEPTH_MAX, "reservation_depth")
    role = validation.text(message.reserved_role, "reserved_role")
    if bool(depth) != bool(role):
        reject(
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
        reject("rest", "is set together with fields that distinguish kinds; leave those out")
    return kind


_Message = TypeVar("_Message")
_Written = TypeVar("_Written", bound=Message)
_Read = TypeVar("_Read")


def _names(enum: Any, prefix: str) -> dict[int, str]:  # noqa: ANN401
    """Names of an enum's values without their prefix, except "unspecified"."""
    return {value: name.removeprefix(prefix) for name, value in enum.items() if value}


AGENT_CAPABILITIES = _names(pb.AgentCapability, "AGENT_CAPABILITY_")
FRAMEWORK_CAPABILITIES = _names(pb.FrameworkCapability, "FRAMEWORK_CAPABILITY_")


def each(
    messages: Iterable[_Message], read: Callable[[_Message], _Read], field: str
) -> Iterator[_Read]:
    """Read all messages of a list; errors name the index."""
    for index, message in enumerate(messages):
        try:
            yield read(message)
        except WireError as error:
            raise error.below(f"{field}[{index}]") from None


def part(message: _Message, read: Callable[[_Message], _Read], field: str) -> _Read:
    """Read a part of a message; errors name the part."""
    try:
        return read(message)
    except WireError as error:
        raise error.below(field) from None


# Amounts.


def read_amounts(message: pb.Amounts) -> dict[int, int]:
    kinds, amounts = message.kind[:], message.amount[:]
    validation.same_length(len(amounts), len(kinds), "amount", "kind")
    validation.distinct(kinds, "kind")
    validation.amount_list(amounts, "amount")
    return dict(zip(kinds, amounts, strict=True))


def read_quantities(message: pb.Quantities) -> dict[str, int]:
    validation.same_length(len(message.amount), len(message.name), "amount", "name")
    validation.texts(message.name, "name")
    validation.distinct(message.name, "name")
    amounts = validation.amount_list(message.amount[:], "amount")
    return dict(zip(message.name, amounts, strict=True))


def write_quantities(quantities: Mapping[str, int]) -> pb.Quantities:
    return pb.Quantities(name=list(quantities), amount=list(quantities.values()))


def write_fields(value: object, kind: type[_Written]) -> _Written:
    """Convert an object to a message with the same field names; mappings become `Quantities`."""
    given: dict[str, object] = {}
    for field in kind.DESCRIPTOR.fields:
        found: Any = getattr(value, field.name)
        by_name = field.message_type is pb.Quantities.DESCRIPTOR
        given[field.name] = write_quantities(found) if by_name else found
    return kind(**given)


def read_holdings(message: pb.Holdings, *, least_framework: int = 1) -> Holdings:
    """Read holdings; framework 0 is accepted only if `least_framework` is 0."""
    rows, kinds = len(message.framework), len(message.kind)
    validation.same_length(len(message.role), rows, "role", "framework")
    validation.same_length(len(message.agent), rows, "agent", "framework")
    if len(message.amount) != rows * kinds:
        wanted = f"it must have {rows} rows of {kinds} kinds, {rows * kinds} in all"
        reject("amount", f"has {len(message.amount)} entries; {wanted}")
    validation.distinct(message.kind, "kind")
    return Holdings(
        framework=validation.handles(message.framework, "framework", least=least_framework),
        role=validation.handles(message.role, "role"),
        agent=validation.handles(message.agent, "agent"),
        kind=np.array(message.kind, np.int64),
        amount=validation.amounts(message.amount, "amount").reshape(rows, kinds),
    )


def write_holdings(holdings: Holdings) -> pb.Holdings:
    return pb.Holdings(
        framework=holdings.framework.tolist(),
        role=holdings.role.tolist(),
        agent=holdings.agent.tolist(),
        kind=holdings.kind.tolist(),
        amount=holdings.amount.ravel().tolist(),
    )


_REASONS = {
    int(number): name.removeprefix("SET_ASIDE_REASON_").lower()
    for name, number in pb.SetAsideReason.items()
}


def read_set_aside(messages: Iterable[pb.SetAside]) -> Aside:
    """Read the ignored input of a framework or agent; never fails, because it is only shown."""
    return bounded(SetAside(each.field, _reason(each.reason), each.text) for each in messages)


def _reason(number: int) -> str:
    name = _REASONS.get(number, "")
    return name if name in REASONS else REASONS[0]


# Agents.


@lru_cache(maxsize=256)
def _read_framework_capabilities(values: tuple[int, ...]) -> frozenset[str]:
    return _read_capabilities(values, FRAMEWORK_CAPABILITIES, "capabilities")


def _read_capabilities(
    values: Sequence[int], names: Mapping[int, str], field: str
) -> frozenset[str]:
    for index, value in enumerate(values):
        if value not in names:
            known = ", ".join(f"{number} ({name})" for number, name in names.items())
            reject(f"{field}[{index}]", f"is {value}; it must be one of {known}")
    return frozenset(names[value] for value in values)


@lru_cache(maxsize=256)
def _read_agent_capabilities(values: tuple[int, ...]) -> frozenset[str]:
    return _read_capabilities(values, AGENT_CAPABILITIES, "capabilities")


def read_agent_capabilities(values: Sequence[int]) -> frozenset[str]:
    """Mesos's names of an agent's capabilities; cached, because most agents have the same."""
    return _read_agent_capabilities(tuple(values[:]))


def read_attributes(messages: Iterable[pb.Attribute]) -> dict[str, str]:
    """Read attributes; of several with one name the first counts, as in offer constraints."""
    attributes: dict[str, str] = {}
    for index, message in enumerate(messages):
        name = validation.text(message.name, f"attributes[{index}].name", empty=False)
        attributes.setdefault(name, validation.text(message.value, f"attributes[{index}].value"))
        validation.integer(message.type, 1, 4, f"attributes[{index}].type")
    return attributes


def read_agent_info(message: pb.Agent) -> AgentInfo:
    region = zone = ""
    if message.HasField("domain"):
        region = validation.text(message.domain.region, "domain.region")
        zone = validation.text(message.domain.zone, "domain.zone")
    return AgentInfo(
        agent_id=validation.text(message.agent_id, "agent_id", empty=False),
        hostname=validation.text(message.hostname, "hostname"),
        attributes=read_attributes(message.attributes) if message.attributes else {},
        region=region,
        zone=zone,
        capabilities=read_agent_capabilities(message.capabilities),
        set_aside=read_set_aside(message.set_aside) if message.set_aside else (),
    )


# Frameworks.


def _read_minimum(
    message: pb.MinimumResources,
) -> tuple[int, tuple[Mapping[str, int], ...]]:
    role = validation.handle(message.role, "role")
    return role, tuple(each(message.any_of, read_quantities, "any_of"))


def read_framework_info(message: pb.Framework) -> FrameworkInfo:
    validation.distinct([minimum.role for minimum in message.minimum], "minimum.role")
    if len(message.labels) > LABELS_MAX:
        reject("labels", f"has {len(message.labels)} entries; at most {LABELS_MAX} are taken")
    return FrameworkInfo(
        framework_id=validation.text(message.framework_id, "framework_id", empty=False),
        name=validation.text(message.name, "name"),
        user=validation.text(message.user, "user"),
        principal=validation.text(message.principal, "principal"),
        labels=validation.text_map(message.labels, "labels") if message.labels else {},
        capabilities=_read_framework_capabilities(tuple(message.capabilities[:])),
        minimum=dict(each(message.minimum, _read_minimum, "minimum")),
        set_aside=read_set_aside(message.set_aside) if message.set_aside else (),
    )


# Roles.


def read_roles(column: Sequence[int], field: str) -> tuple[int, ...]:
    validation.distinct(column, field)
    return tuple(validation.handle_list(list(column), field))


def read_weights(messages: Iterable[pb.Weight]) -> dict[str, float]:
    """Read weights of roles; the last one of a role counts."""

    def read(message: pb.Weight) -> tuple[str, float]:
        role = validation.text(message.role, "role", empty=False)
        return role, validation.number(message.weight, "weight")

    return dict(each(messages, read, "weights"))


def read_quota(message: pb.Quota) -> SetQuota:
    return SetQuota(
        role=validation.text(message.role, "role", empty=False),
        guarantees=part(message.guarantees, read_quantities, "guarantees"),
        limits=part(message.limits, read_quantities, "limits"),
    )


def write_budget_use(row: BudgetRow, now_ms: int) -> BudgetUse:
    """`now_ms` is on the session's clock."""
    rule, spent = row.rule, row.spent
    granted, over = spent.granted(rule), bool(spent.used_up(rule))
    used = {name: spent.used.get(name, 0) for name in granted}
    runs_out_ms = now_ms + row.runs_out_ms
    return BudgetUse(
        role=rule.role,
        per=rule.per,
        begin_ms=spent.begin_ms,
        end_ms=spent.end_ms,
        used=_hours(used),
        budget=_hours(granted),
        left=_hours({name: max(amount - used[name], 0) for name, amount in granted.items()}),
        runs_out_ms=runs_out_ms if now_ms < runs_out_ms < spent.end_ms else 0,
        over=over,
        hard=rule.hard,
    )


def _hours(amounts: dict[str, int]) -> pb.Quantities:
    return write_quantities({name: amount // HOUR_MS for name, amount in amounts.items()})
