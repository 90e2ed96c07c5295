"""Agents that are added together, read in one pass.

A master that has just been elected adds its agents by the thousand, and hardly one of them is
unusual. So each field is looked at once here, and nothing is mended: where a value must be mended,
or refused by its name, the caller reads the same agents with the readers that do so.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from allocator.core import AMOUNT_MAX, AddAgents, AgentInfo
from allocator.v1 import types_pb2 as types
from allocator.wire.errors import TEXT_LENGTH_MAX
from allocator.wire.proto_types import AGENT_CAPABILITIES
from allocator.wire.validation import TIME_MAX_MS

_NEVER = -1, 0  # when, and for how long, an agent is maintained that is not


def read_sound_agents(messages: Sequence[types.Agent]) -> AddAgents | None:
    """Read agents that have amounts of the same kinds; None where one of them is not sound."""
    kinds = messages[0].capacity.kind[:]
    handles: list[int] = []
    infos: list[AgentInfo] = []
    amounts: list[int] = []
    windows: list[tuple[int, int]] = []
    for message in messages:
        info = _info(message)
        window = _window(message.unavailability) if message.HasField("unavailability") else _NEVER
        if info is None or window is None:
            return None
        handles.append(message.agent)
        infos.append(info)
        amounts += message.capacity.amount[:]
        windows.append(window)
    if min(handles) < 1 or len(set(kinds)) < len(kinds):
        return None
    if amounts and (min(amounts) < 0 or max(amounts) > AMOUNT_MAX):
        return None
    window_of = np.array(windows, np.int64)
    return AddAgents(
        agent=np.array(handles, np.int64),
        info=tuple(infos),
        kind=np.array(kinds, np.int64),
        capacity=np.array(amounts, np.int64).reshape(len(messages), len(kinds)),
        active=np.array([not message.deactivated for message in messages], np.bool_),
        unavailable_from_ms=window_of[:, 0],
        unavailable_for_ms=window_of[:, 1],
    )


def _info(message: types.Agent) -> AgentInfo | None:
    agent_id, hostname = message.agent_id, message.hostname
    capabilities = _capabilities(tuple(message.capabilities[:]))
    attributes: dict[str, str] | None = {}
    if message.attributes:
        attributes = _attributes(message)
    region = zone = ""
    if message.HasField("domain"):
        region, zone = message.domain.region, message.domain.zone
    length = max(len(agent_id), len(hostname), len(region), len(zone))
    if not agent_id or length > TEXT_LENGTH_MAX or attributes is None or capabilities is None:
        return None
    return AgentInfo(agent_id, hostname, attributes, region, zone, capabilities)


def _attributes(message: types.Agent) -> dict[str, str] | None:
    """Of several attributes with one name the first counts."""
    attributes: dict[str, str] = {}
    for attribute in message.attributes:
        name, value = attribute.name, attribute.value
        if not name or len(name) > TEXT_LENGTH_MAX or len(value) > TEXT_LENGTH_MAX:
            return None
        if not types.VALUE_TYPE_SCALAR <= attribute.type <= types.VALUE_TYPE_TEXT:
            return None
        attributes.setdefault(name, value)
    return attributes


def _window(message: types.Unavailability) -> tuple[int, int] | None:
    start_ms, duration_ms = message.start_ms, message.duration_ms
    if 0 <= start_ms <= TIME_MAX_MS and 0 <= duration_ms <= TIME_MAX_MS:
        return start_ms, duration_ms
    return None


@lru_cache(maxsize=256)
def _capabilities(values: tuple[int, ...]) -> frozenset[str] | None:
    """Name what agents can do; thousands of them can do the same."""
    if AGENT_CAPABILITIES.keys() >= set(values):
        return frozenset(AGENT_CAPABILITIES[value] for value in values)
    return None
