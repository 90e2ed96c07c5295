"""Conversion of a module's events to protobuf, and of the answer to decisions.

The inverse of `allocator.wire.codec.decode`: decoding a written event gives an equal event.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from allocator.core import (
    ActivateAgent,
    ActivateFramework,
    AddAgent,
    AddFilters,
    AddFramework,
    Aside,
    Decisions,
    Define,
    Event,
    Exclude,
    Hold,
    Holdings,
    InverseOffer,
    Kind,
    Outcomes,
    Reclaims,
    Release,
    RemoveAgent,
    RemoveFramework,
    Request,
    Revive,
    SetPaused,
    SetQuota,
    SetUnavailability,
    SetWeights,
    SetWhitelist,
    Suppress,
    Transition,
    UpdateAgent,
    UpdateAllocation,
    UpdateFramework,
)
from allocator.v1 import session_pb2 as pb
from allocator.v1 import types_pb2 as types
from allocator.wire.codec import proto_types
from allocator.wire.codec.proto_types import write_fields, write_holdings, write_quantities
from allocator.wire.codec.validation import reject


def write_event(event: Event) -> pb.Event:
    """Write an event of a module.

    Raises KeyError for an event that modules do not send.
    """
    field, write = _WRITERS[type(event)]
    return pb.Event(**{field: write(event)})


def write_kind(handle: int, kind: Kind) -> types.Kind:
    """Write a kind as a module does; a kind that is not scalar is written as ranges."""
    return types.Kind(
        kind=handle,
        name=kind.name,
        type=types.VALUE_TYPE_SCALAR if kind.scalar else types.VALUE_TYPE_RANGES,
        reserved_role=kind.reserved_role,
        reservation_depth=kind.depth,
        revocable=kind.revocable,
        shared=kind.shared,
        form=types.DiskForm.Value(f"DISK_FORM_{kind.form.upper() or 'UNSPECIFIED'}"),
        indivisible=kind.indivisible,
        rest=kind.rest,
    )


def _write_amounts(amounts: Mapping[int, int]) -> types.Amounts:
    return types.Amounts(kind=list(amounts), amount=list(amounts.values()))


def _write_set_aside(rows: Aside) -> list[types.SetAside]:
    return [
        types.SetAside(
            field=row.field,
            reason=types.SetAsideReason.Value(f"SET_ASIDE_REASON_{row.reason.upper()}"),
            text=row.text,
        )
        for row in rows
    ]


def _write_capabilities(names: Iterable[str]) -> list["types.AgentCapability.ValueType"]:
    return [types.AgentCapability.Value(f"AGENT_CAPABILITY_{name}") for name in sorted(names)]


def _write_attributes(attributes: Mapping[str, str]) -> list[types.Attribute]:
    return [
        types.Attribute(name=name, value=value, type=types.VALUE_TYPE_TEXT)
        for name, value in attributes.items()
    ]


def write_weights(weights: Mapping[str, float]) -> list[types.Weight]:
    return [types.Weight(role=role, weight=weight) for role, weight in weights.items()]


def write_quota(quota: SetQuota) -> types.Quota:
    return write_fields(quota, types.Quota)


def _write_define(event: Define) -> pb.DefineHandles:
    return pb.DefineHandles(
        kinds=[write_kind(handle, kind) for handle, kind in event.kinds.items()],
        roles=[types.Role(role=role, path=path) for role, path in event.roles.items()],
    )


def write_agent(event: AddAgent) -> types.Agent:
    info = event.info
    message = types.Agent(
        agent=event.agent,
        agent_id=info.agent_id,
        hostname=info.hostname,
        attributes=_write_attributes(info.attributes),
        domain=types.Domain(region=info.region, zone=info.zone),
        capabilities=_write_capabilities(info.capabilities),
        capacity=_write_amounts(event.capacity),
        deactivated=not event.active,
        set_aside=_write_set_aside(info.set_aside),
    )
    if event.unavailable_from_ms >= 0:
        message.unavailability.start_ms = event.unavailable_from_ms
        message.unavailability.duration_ms = event.unavailable_for_ms
    return message


def _write_update_agent(event: UpdateAgent) -> pb.UpdateAgent:
    aside = _write_set_aside(event.set_aside)
    message = pb.UpdateAgent(agent=event.agent, set_aside=aside)
    if event.hostname is not None or event.attributes is not None:
        message.replaces_info = True
        message.hostname = event.hostname or ""
        message.attributes.extend(_write_attributes(event.attributes or {}))
        message.domain.region = event.region
        message.domain.zone = event.zone
    if event.capabilities is not None:
        message.replaces_capabilities = True
        message.capabilities.extend(_write_capabilities(event.capabilities))
    if event.capacity is not None:
        message.capacity.CopyFrom(_write_amounts(event.capacity))
    return message


def write_framework(event: AddFramework) -> types.Framework:
    message = _write_update_framework(event)
    message.inactive = not event.active
    return message


def _write_update_framework(event: AddFramework | UpdateFramework) -> types.Framework:
    info = event.info
    return types.Framework(
        framework=event.framework,
        framework_id=info.framework_id,
        name=info.name,
        user=info.user,
        principal=info.principal,
        roles=event.roles,
        suppressed_roles=event.suppressed_roles,
        capabilities=[
            types.FrameworkCapability.Value(f"FRAMEWORK_CAPABILITY_{name}")
            for name in sorted(info.capabilities)
        ],
        labels=info.labels,
        minimum=[
            types.MinimumResources(role=role, any_of=map(write_quantities, any_of))
            for role, any_of in info.minimum.items()
        ],
        set_aside=_write_set_aside(info.set_aside),
    )


def _write_release(event: Release) -> pb.Release:
    return pb.Release(
        released=write_holdings(event.released),
        refuse_ms=event.refuse_ms.tolist(),
        allocated=event.allocated.tolist(),
    )


def _write_update_allocation(event: UpdateAllocation) -> pb.UpdateAllocation:
    return pb.UpdateAllocation(
        framework=event.framework,
        role=event.role,
        agent=event.agent,
        consumed=_write_amounts(event.consumed),
        converted=_write_amounts(event.converted),
    )


def _suppress(event: Suppress | Revive) -> pb.SuppressOffers:
    return pb.SuppressOffers(framework=event.framework, roles=event.roles)


def write_exclusions(event: Exclude) -> pb.Exclusions:
    return pb.Exclusions(
        framework=event.framework.tolist(),
        role=event.role.tolist(),
        agent=event.agent.tolist(),
        excluded=event.excluded.tolist(),
    )


def write_filters(event: AddFilters) -> pb.OfferFilters:
    return pb.OfferFilters(
        refused=write_holdings(event.refused), expires_ms=event.expires_ms.tolist()
    )


def write_whitelist(event: SetWhitelist) -> pb.Whitelist:
    """Write the whitelist, or that there is none."""
    hostnames = event.hostnames
    return pb.Whitelist(restricted=hostnames is not None, hostnames=sorted(hostnames or ()))


def _write_request(event: Request) -> pb.ResourceRequest:
    return pb.ResourceRequest(
        framework=event.framework,
        requests=map(write_quantities, event.requests),
        set_aside=_write_set_aside(event.set_aside),
        agent_id=event.agents,
    )


def _write_unavailability(event: SetUnavailability) -> pb.UnavailabilityUpdate:
    message = pb.UnavailabilityUpdate(agent=event.agent)
    if event.start_ms >= 0:
        message.unavailability.start_ms = event.start_ms
        message.unavailability.duration_ms = event.duration_ms
    return message


def _write_inverse_offer(event: InverseOffer) -> pb.InverseOfferUpdate:
    return pb.InverseOfferUpdate(
        framework=event.framework,
        agent=event.agent,
        status=pb.InverseOfferUpdate.Status.Value(f"STATUS_{event.status}"),
        refuse_ms=event.refuse_ms,
    )


def _write_outcomes(event: Outcomes) -> pb.Outcomes:
    return pb.Outcomes(
        first_decision=event.first_decision,
        reason=event.reason.tolist(),
        kind=event.kind.tolist(),
        amount=event.amount.ravel().tolist(),
    )


_WRITERS: dict[type, tuple[str, Callable[[Any], Any]]] = {
    Define: ("define", _write_define),
    AddAgent: ("add_agent", write_agent),
    UpdateAgent: ("update_agent", _write_update_agent),
    RemoveAgent: ("remove_agent", lambda event: pb.RemoveAgent(agent=event.agent)),
    ActivateAgent: (
        "activate_agent",
        lambda event: pb.ActivateAgent(agent=event.agent, active=event.active),
    ),
    AddFramework: ("add_framework", write_framework),
    UpdateFramework: ("update_framework", _write_update_framework),
    RemoveFramework: (
        "remove_framework",
        lambda event: pb.RemoveFramework(framework=event.framework),
    ),
    ActivateFramework: (
        "activate_framework",
        lambda event: pb.ActivateFramework(framework=event.framework, active=event.active),
    ),
    Hold: ("hold", lambda event: write_holdings(event.holdings)),
    Release: ("release", _write_release),
    Transition: ("transition", lambda event: write_holdings(event.used)),
    UpdateAllocation: ("update_allocation", _write_update_allocation),
    Suppress: ("suppress", _suppress),
    Revive: ("revive", _suppress),
    Exclude: ("exclusions", write_exclusions),
    SetWhitelist: ("whitelist", write_whitelist),
    SetWeights: (
        "weights",
        lambda event: pb.WeightsUpdate(weights=write_weights(event.weights)),
    ),
    SetQuota: ("quota", write_quota),
    Request: ("request", _write_request),
    SetUnavailability: ("unavailability", _write_unavailability),
    InverseOffer: ("inverse_offer", _write_inverse_offer),
    SetPaused: ("pause", lambda event: pb.PauseUpdate(paused=event.paused)),
    Outcomes: ("outcomes", _write_outcomes),
}
"""The field and the writer of each event."""


# The answer.


def _read_group(message: types.Holdings) -> Holdings:
    # A group without kinds is accepted: it has rows, and the gates report them as malformed.
    if not message.framework:
        reject("framework", "is empty; leave out a group without decisions")
    return proto_types.read_holdings(message)


def read_decisions(message: pb.DecisionBatch) -> Decisions:
    """Read the answer to a batch, or a part of it, as a module does.

    Does not check that handles are bound: the module's gates do.
    Raises WireError if columns differ in length, or an amount is out of range.
    """
    groups = tuple(proto_types.each(message.grants, _read_group, "grants"))
    asked = message.reclaims
    if len(asked.framework) != len(asked.agent):
        reject("reclaims.agent", f"has {len(asked.agent)} rows, framework {len(asked.framework)}")
    reclaims = Reclaims(np.array(asked.framework, np.int64), np.array(asked.agent, np.int64))
    decisions = Decisions(
        message.cycle, message.first_decision, groups, reclaims, message.holds_back
    )
    return replace(decisions, gangs=_read_gangs(message.gangs, len(decisions)))


def _read_gangs(message: pb.Gangs, decisions: int) -> tuple[tuple[int, int], ...]:
    if len(message.first) != len(message.count):
        reject("gangs.count", f"has {len(message.count)} rows, first {len(message.first)}")
    gangs, end = tuple(zip(message.first, message.count, strict=True)), 0
    for row, (first, count) in enumerate(gangs):
        if first < end or count < 1 or first + count > decisions:
            reject(f"gangs.first[{row}]", f"is {first}, of {count}; gangs are ascending and apart")
        end = first + count
    return gangs
