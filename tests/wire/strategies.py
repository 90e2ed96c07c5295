"""Hypothesis strategies for everything that can be sent over the wire."""

from dataclasses import fields, is_dataclass

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from allocator.core import (
    AMOUNT_MAX,
    ActivateAgent,
    ActivateFramework,
    AddAgent,
    AddFilters,
    AddFramework,
    AgentInfo,
    Decisions,
    Define,
    Exclude,
    FrameworkInfo,
    Hold,
    Holdings,
    InverseOffer,
    Kind,
    Options,
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
from allocator.core.resources import FORMS
from allocator.wire import Greeting
from allocator.wire.codec.proto_types import AGENT_CAPABILITIES, DEPTH_MAX, FRAMEWORK_CAPABILITIES
from allocator.wire.codec.validation import TIME_MAX_MS, UINT32_MAX

texts = st.text(max_size=8)
names = st.text(min_size=1, max_size=8)
handles = st.integers(1, UINT32_MAX)
times = st.integers(0, TIME_MAX_MS)
amounts = st.integers(0, AMOUNT_MAX)
quantities = st.dictionaries(names, amounts, max_size=3)
sparse = st.dictionaries(st.integers(0, UINT32_MAX), amounts, max_size=4)
roles = st.lists(handles, max_size=3, unique=True).map(tuple)
labels = st.dictionaries(texts, texts, max_size=3)
agent_capabilities = st.frozensets(st.sampled_from(sorted(AGENT_CAPABILITIES.values())))
framework_capabilities = st.frozensets(st.sampled_from(sorted(FRAMEWORK_CAPABILITIES.values())))


def column(rows: int, least: int = 1, most: int = UINT32_MAX):
    return hnp.arrays(np.int64, rows, elements=st.integers(least, most))


def flags(rows: int):
    return hnp.arrays(np.bool_, rows)


@st.composite
def kinds(draw) -> Kind:
    if draw(st.booleans()) and draw(st.booleans()):
        return Kind(draw(names), scalar=draw(st.booleans()), rest=True)
    role = draw(texts)
    return Kind(
        name=draw(names),
        scalar=draw(st.booleans()),
        reserved_role=role,
        depth=draw(st.integers(1, DEPTH_MAX)) if role else 0,
        revocable=draw(st.booleans()),
        shared=draw(st.booleans()),
        form=draw(st.sampled_from(FORMS)),
        indivisible=draw(st.booleans()),
    )


@st.composite
def holdings(draw, least_framework: int = 1, rows: int | None = None) -> Holdings:
    count = draw(st.integers(0, 40)) if rows is None else rows
    kind = draw(st.lists(st.integers(0, UINT32_MAX), max_size=3, unique=True))
    shape = (count, len(kind))
    return Holdings(
        framework=draw(column(count, least_framework)),
        role=draw(column(count)),
        agent=draw(column(count)),
        kind=np.array(kind, np.int64),
        amount=draw(hnp.arrays(np.int64, shape, elements=amounts)),
    )


agent_infos = st.builds(
    AgentInfo,
    agent_id=names,
    hostname=texts,
    attributes=st.dictionaries(names, texts, max_size=3),
    region=texts,
    zone=texts,
    capabilities=agent_capabilities,
)
framework_infos = st.builds(
    FrameworkInfo,
    framework_id=names,
    name=texts,
    user=texts,
    principal=texts,
    labels=labels,
    capabilities=framework_capabilities,
    minimum=st.dictionaries(handles, st.lists(quantities, max_size=2).map(tuple), max_size=2),
)
defines = st.builds(
    Define,
    kinds=st.dictionaries(st.integers(0, UINT32_MAX), kinds(), max_size=3),
    roles=st.dictionaries(handles, names, max_size=3),
)


@st.composite
def add_agents(draw) -> AddAgent:
    start = draw(st.one_of(st.just(-1), times))
    duration = draw(times) if start >= 0 else 0
    info, capacity = draw(agent_infos), draw(sparse)
    return AddAgent(draw(handles), info, capacity, draw(st.booleans()), start, duration)


@st.composite
def update_agents(draw) -> UpdateAgent:
    informed = draw(st.booleans())
    return UpdateAgent(
        agent=draw(handles),
        hostname=draw(texts) if informed else None,
        attributes=draw(st.dictionaries(names, texts, max_size=2)) if informed else None,
        region=draw(texts) if informed else "",
        zone=draw(texts) if informed else "",
        capabilities=draw(st.none() | agent_capabilities),
        capacity=draw(st.none() | sparse),
    )


add_frameworks = st.builds(
    AddFramework, handles, framework_infos, roles, suppressed_roles=roles, active=st.booleans()
)


@st.composite
def releases(draw) -> Release:
    released = draw(holdings())
    rows = len(released.framework)
    return Release(released, draw(column(rows, -1, TIME_MAX_MS)), draw(flags(rows)))


@st.composite
def refuses(draw) -> AddFilters:
    refused = draw(holdings())
    return AddFilters(refused, draw(column(len(refused.framework), 0, TIME_MAX_MS)))


@st.composite
def excludes(draw) -> Exclude:
    rows = draw(st.integers(0, 40))
    return Exclude(draw(column(rows)), draw(column(rows)), draw(column(rows)), draw(flags(rows)))


@st.composite
def outcomes(draw) -> Outcomes:
    reason = draw(hnp.arrays(np.int64, st.integers(0, 40), elements=st.integers(1, 18)))
    kind = draw(st.lists(st.integers(0, UINT32_MAX), max_size=3, unique=True))
    shape = (int((reason == 2).sum()), len(kind))
    amount = draw(hnp.arrays(np.int64, shape, elements=amounts))
    return Outcomes(draw(st.integers(1, 2**53)), reason, np.array(kind, np.int64), amount)


@st.composite
def unavailabilities(draw) -> SetUnavailability:
    start = draw(st.one_of(st.just(-1), times))
    return SetUnavailability(draw(handles), start, draw(times) if start >= 0 else 0)


quotas = st.builds(SetQuota, names, quantities, quantities)
weights = st.builds(
    SetWeights,
    st.dictionaries(names, st.floats(min_value=1e-300, allow_infinity=False), max_size=3),
)
# Agents may have empty names, and a whitelist of them contains these.
hostnames = st.text(max_size=8)
whitelists = st.builds(SetWhitelist, st.none() | st.frozensets(hostnames, max_size=3))

events = st.one_of(
    defines,
    add_agents(),
    update_agents(),
    st.builds(RemoveAgent, handles),
    st.builds(ActivateAgent, handles, st.booleans()),
    add_frameworks,
    st.builds(UpdateFramework, handles, framework_infos, roles, roles),
    st.builds(RemoveFramework, handles),
    st.builds(ActivateFramework, handles, st.booleans()),
    st.builds(Hold, holdings()),
    releases(),
    st.builds(Transition, holdings(least_framework=0)),
    st.builds(UpdateAllocation, handles, handles, handles, sparse, sparse),
    st.builds(Suppress, handles, roles),
    st.builds(Revive, handles, roles),
    excludes(),
    whitelists,
    weights,
    quotas,
    st.lists(st.tuples(quantities, st.sampled_from(["", "S0", "S9"])), max_size=3).flatmap(
        lambda rows: st.builds(
            Request,
            handles,
            st.just(tuple(needs for needs, _ in rows)),
            agents=st.sampled_from([(), tuple(agent for _, agent in rows)]),
        )
    ),
    unavailabilities(),
    st.builds(
        InverseOffer,
        handles,
        handles,
        st.sampled_from(["UNKNOWN", "ACCEPT", "DECLINE"]),
        st.integers(-1, TIME_MAX_MS),
    ),
    st.builds(SetPaused, st.booleans()),
    outcomes(),
)
"""Any report of a module."""

snapshot_events = st.one_of(
    st.builds(Define, defines.map(lambda it: it.kinds), defines.map(lambda it: it.roles)),
    weights,
    quotas,
    add_frameworks,
    add_agents(),
    st.builds(Hold, holdings()),
    refuses(),
    excludes(),
    whitelists,
)
"""Any contents of a snapshot."""

greetings = st.builds(
    Greeting,
    master_id=texts,
    instance_id=names,
    instance_started_us=st.integers(0, 2**62),
    options=st.builds(
        Options,
        allocation_interval_ms=st.integers(1, TIME_MAX_MS),
        fairness_excluded=st.frozensets(names, max_size=3),
        filter_gpus=st.booleans(),
        region=texts,
        minimum=st.lists(quantities, max_size=3).map(tuple),
    ),
    mesos_version=texts,
    module_version=texts,
)


@st.composite
def decisions(draw) -> Decisions:
    tables = st.lists(holdings(), max_size=4)
    groups = [each for each in draw(tables) if len(each.framework) and len(each.kind)]
    rows = draw(st.lists(st.tuples(handles, handles), max_size=4))
    reclaims = Reclaims(*np.array(rows, np.int64).reshape(-1, 2).T)
    numbers = draw(st.integers(0, 2**40)), draw(st.integers(1, 2**40))
    ends = np.cumsum([0, *(len(each.framework) for each in groups)]).tolist()
    cuts = sorted(draw(st.lists(st.integers(0, ends[-1]), max_size=6, unique=True)))
    gangs = tuple((first, end - first) for first, end in zip(cuts[::2], cuts[1::2], strict=False))
    return Decisions(*numbers, tuple(groups), reclaims, gangs=gangs)


def same(one: object, other: object) -> bool:
    """Equality that compares arrays by contents."""
    if is_dataclass(one):
        return type(one) is type(other) and all(
            same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)
        )
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and (
            one.shape == other.shape and one.dtype == other.dtype and bool((one == other).all())
        )
    if isinstance(one, tuple):
        return isinstance(other, tuple) and len(one) == len(other) and all(map(same, one, other))
    return one == other
