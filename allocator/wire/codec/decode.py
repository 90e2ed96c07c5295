"""Converts protobuf messages to the core's events.

Every invalid value raises a `WireError` that names the field, the value and what would be valid.
Lengths of columns, ranges and duplicates are checked only here. Only the core can check whether a
handle is bound, and whether the books stay consistent.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from allocator.core import (
    ActivateAgent,
    ActivateFramework,
    AddAgent,
    AddAgents,
    AddFilters,
    AddFramework,
    Define,
    Exclude,
    Hold,
    InverseOffer,
    Outcomes,
    Reason,
    Release,
    RemoveAgent,
    RemoveFramework,
    Request,
    Revive,
    SetPaused,
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
from allocator.wire.codec import proto_types, validation
from allocator.wire.codec.proto_types import each, part, read_kind
from allocator.wire.codec.validation import reject

NUMBER_MAX = 2**53
"""Maximum number of a decision or a batch."""


def read_bindings(message: pb.SnapshotChunk | pb.DefineHandles) -> Define:
    """Read handle bindings; all kinds and roles of one message become one event."""
    validation.distinct([kind.kind for kind in message.kinds], "kinds.kind")
    validation.distinct([role.role for role in message.roles], "roles.role")
    return Define(
        kinds=dict(each(message.kinds, lambda kind: (kind.kind, read_kind(kind)), "kinds")),
        roles=dict(each(message.roles, _read_role, "roles")),
    )


def _read_role(message: types.Role) -> tuple[int, str]:
    role = validation.handle(message.role, "role")
    return role, validation.text(message.path, "path", empty=False)


# Readers of events, by field name.


def _fields(
    event: Callable[..., Any], **readers: Callable[[Any, str], Any]
) -> Callable[[Any], Any]:
    """Make a reader of events with the message's field names; `readers` take value and name."""

    def read(message: Any) -> Any:  # noqa: ANN401
        return event(**{name: of(getattr(message, name), name) for name, of in readers.items()})

    return read


def _as_it_is(value: bool, _: str) -> bool:
    return value


def _read_add_agent(message: types.Agent) -> AddAgent:
    start, duration = -1, 0
    if message.HasField("unavailability"):
        start, duration = part(message.unavailability, _read_window, "unavailability")
    return AddAgent(
        agent=validation.handle(message.agent, "agent"),
        info=proto_types.read_agent_info(message),
        capacity=part(message.capacity, proto_types.read_amounts, "capacity"),
        active=not message.deactivated,
        unavailable_from_ms=start,
        unavailable_for_ms=duration,
    )


def _read_add_agents(messages: Sequence[types.Agent]) -> AddAgents:
    """Read several agents, whose amounts must have the same kinds."""
    kinds = messages[0].capacity.kind[:]
    validation.distinct(kinds, "capacity.kind")
    amounts: list[int] = []
    for message in messages:
        amounts += message.capacity.amount[:]
    windows = [
        _read_window(message.unavailability) if message.HasField("unavailability") else (-1, 0)
        for message in messages
    ]
    window = np.array(windows, np.int64)
    return AddAgents(
        agent=validation.handles([message.agent for message in messages], "agent"),
        info=tuple(map(proto_types.read_agent_info, messages)),
        kind=np.array(kinds, np.int64),
        capacity=validation.amounts(amounts, "capacity.amount").reshape(len(messages), len(kinds)),
        active=np.array([not message.deactivated for message in messages], np.bool_),
        unavailable_from_ms=window[:, 0],
        unavailable_for_ms=window[:, 1],
    )


def _read_window(message: types.Unavailability) -> tuple[int, int]:
    start = validation.time_ms(message.start_ms, "start_ms")
    return start, validation.time_ms(message.duration_ms, "duration_ms")


def _read_update_agent(message: pb.UpdateAgent) -> UpdateAgent:
    info, domain = message.replaces_info, message.domain
    return UpdateAgent(
        agent=validation.handle(message.agent, "agent"),
        hostname=validation.text(message.hostname, "hostname") if info else None,
        attributes=proto_types.read_attributes(message.attributes) if info else None,
        region=validation.text(domain.region, "domain.region") if info else "",
        zone=validation.text(domain.zone, "domain.zone") if info else "",
        capabilities=(
            proto_types.read_agent_capabilities(message.capabilities)
            if message.replaces_capabilities
            else None
        ),
        capacity=(
            part(message.capacity, proto_types.read_amounts, "capacity")
            if message.HasField("capacity")
            else None
        ),
        set_aside=proto_types.read_set_aside(message.set_aside),
    )


def _read_add_framework(message: types.Framework) -> AddFramework:
    return AddFramework(
        framework=validation.handle(message.framework, "framework"),
        info=proto_types.read_framework_info(message),
        roles=proto_types.read_roles(message.roles, "roles"),
        suppressed_roles=proto_types.read_roles(message.suppressed_roles, "suppressed_roles"),
        active=not message.inactive,
    )


def _read_update_framework(message: types.Framework) -> UpdateFramework:
    return UpdateFramework(
        framework=validation.handle(message.framework, "framework"),
        info=proto_types.read_framework_info(message),
        roles=proto_types.read_roles(message.roles, "roles"),
        suppressed_roles=proto_types.read_roles(message.suppressed_roles, "suppressed_roles"),
    )


def _read_release(message: pb.Release) -> Release:
    released = part(message.released, proto_types.read_holdings, "released")
    rows = len(released.framework)
    validation.same_length(len(message.refuse_ms), rows, "refuse_ms", "released.framework")
    validation.same_length(len(message.allocated), rows, "allocated", "released.framework")
    refuse_ms = validation.times_ms(message.refuse_ms, "refuse_ms", least=-1)
    return Release(released, refuse_ms, validation.flags(message.allocated))


def _read_update_allocation(message: pb.UpdateAllocation) -> UpdateAllocation:
    framework = message.framework
    return UpdateAllocation(
        framework=framework,
        role=validation.handle(message.role, "role") if framework else message.role,
        agent=validation.handle(message.agent, "agent"),
        consumed=part(message.consumed, proto_types.read_amounts, "consumed"),
        converted=part(message.converted, proto_types.read_amounts, "converted"),
    )


def _read_exclusions(message: pb.Exclusions) -> Exclude:
    rows = len(message.framework)
    validation.same_length(len(message.role), rows, "role", "framework")
    validation.same_length(len(message.agent), rows, "agent", "framework")
    validation.same_length(len(message.excluded), rows, "excluded", "framework")
    return Exclude(
        framework=validation.handles(message.framework, "framework"),
        role=validation.handles(message.role, "role"),
        agent=validation.handles(message.agent, "agent"),
        excluded=validation.flags(message.excluded),
    )


def read_filters(message: pb.OfferFilters) -> AddFilters:
    refused = part(message.refused, proto_types.read_holdings, "refused")
    rows = len(refused.framework)
    validation.same_length(len(message.expires_ms), rows, "expires_ms", "refused.framework")
    return AddFilters(refused, validation.times_ms(message.expires_ms, "expires_ms"))


def _read_whitelist(message: pb.Whitelist) -> SetWhitelist:
    # Hostnames come from agents and may be empty.
    hostnames = frozenset(
        validation.text(each, f"hostnames[{index}]") for index, each in enumerate(message.hostnames)
    )
    if hostnames and not message.restricted:
        reject("restricted", "is false though hostnames are given; set it, or give none")
    return SetWhitelist(hostnames if message.restricted else None)


def _read_request(message: pb.ResourceRequest) -> Request:
    framework = validation.handle(message.framework, "framework")
    requests = tuple(each(message.requests, proto_types.read_quantities, "requests"))
    agents = tuple(validation.text(agent, "agent_id") for agent in message.agent_id)
    if agents and len(agents) != len(requests):
        validation.reject("agent_id", f"has {len(agents)} rows, requests {len(requests)}")
    return Request(framework, requests, proto_types.read_set_aside(message.set_aside), agents)


def _read_unavailability(message: pb.UnavailabilityUpdate) -> SetUnavailability:
    agent = validation.handle(message.agent, "agent")
    if not message.HasField("unavailability"):
        return SetUnavailability(agent, -1, 0)
    start, duration = part(message.unavailability, _read_window, "unavailability")
    return SetUnavailability(agent, start, duration)


def _read_inverse_offer(message: pb.InverseOfferUpdate) -> InverseOffer:
    validation.integer(message.status, 1, 3, "status")
    status = pb.InverseOfferUpdate.Status.Name(message.status)
    return InverseOffer(
        framework=validation.handle(message.framework, "framework"),
        agent=validation.handle(message.agent, "agent"),
        status=status.removeprefix("STATUS_"),
        refuse_ms=validation.time_ms(message.refuse_ms, "refuse_ms", least=-1),
    )


def read_outcomes(message: pb.Outcomes) -> Outcomes:
    reason = validation.integers(message.reason, 1, len(Reason), "reason")
    validation.integer(message.first_decision, 1, NUMBER_MAX, "first_decision")
    validation.distinct(message.kind, "kind")
    rows = int((reason == Reason.PARTIAL).sum())
    kinds = len(message.kind)
    if len(message.amount) != rows * kinds:
        wanted = f"it must have {rows} partial decisions times {kinds} kinds"
        reject("amount", f"has {len(message.amount)} entries; {wanted}")
    return Outcomes(
        first_decision=message.first_decision,
        reason=reason,
        kind=np.array(message.kind, np.int64),
        amount=validation.amounts(message.amount, "amount").reshape(rows, kinds),
    )


READERS: dict[str, Callable[[Any], Any]] = {
    "define": read_bindings,
    "add_agent": _read_add_agent,
    "update_agent": _read_update_agent,
    "remove_agent": _fields(RemoveAgent, agent=validation.handle),
    "activate_agent": _fields(ActivateAgent, agent=validation.handle, active=_as_it_is),
    "add_framework": _read_add_framework,
    "update_framework": _read_update_framework,
    "remove_framework": _fields(RemoveFramework, framework=validation.handle),
    "activate_framework": _fields(ActivateFramework, framework=validation.handle, active=_as_it_is),
    "hold": lambda message: Hold(proto_types.read_holdings(message)),
    "release": _read_release,
    "transition": lambda message: Transition(proto_types.read_holdings(message, least_framework=0)),
    "update_allocation": _read_update_allocation,
    "suppress": _fields(Suppress, framework=validation.handle, roles=proto_types.read_roles),
    "revive": _fields(Revive, framework=validation.handle, roles=proto_types.read_roles),
    "exclusions": _read_exclusions,
    "whitelist": _read_whitelist,
    "weights": lambda message: SetWeights(proto_types.read_weights(message.weights)),
    "quota": proto_types.read_quota,
    "request": _read_request,
    "unavailability": _read_unavailability,
    "inverse_offer": _read_inverse_offer,
    "pause": _fields(SetPaused, paused=_as_it_is),
    "outcomes": read_outcomes,
}

LIST_READERS: dict[str, Callable[[Any], Any]] = {"add_agent": _read_add_agents}
"""Readers of several events of one kind at once, where that is cheaper than one by one."""
