"""The input of policies: only the agents of the cycle, as read-only arrays."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from allocator.core import Hold, PolicySpec, Request, Snapshot
from allocator.core.cycle.snapshot_builder import SnapshotBuilder
from tests.core.session import Session
from tests.strategies import bits_of_filters
from tests.tables import dense
from tests.world.world import World

AGENTS, FRAMEWORKS = 12, 5


def arrays(value: Any, name: str) -> Iterator[tuple[str, np.ndarray]]:
    """Every array in a snapshot, with the path to it."""
    if isinstance(value, np.ndarray):
        yield name, value
    elif is_dataclass(value):
        for field in fields(value):
            yield from arrays(getattr(value, field.name), f"{name}.{field.name}")
    elif hasattr(value, "_fields"):
        for field_name, part in zip(value._fields, value, strict=True):
            yield from arrays(part, f"{name}.{field_name}")


def busy_session(declined: list[int], spec: PolicySpec | None = None) -> Session:
    """Agents with holdings, and filters on some of them."""
    session = Session(spec)
    for agent in range(1, AGENTS + 1):
        session.agent(agent, cpus=4, mem=8)
    for framework in range(1, FRAMEWORKS + 1):
        session.framework(framework, 1 + framework % 2)
    for agent in range(1, AGENTS + 1):
        for framework in {1 + agent % FRAMEWORKS, 1 + agent * agent % FRAMEWORKS}:
            used = session.holdings(framework, 1 + framework % 2, agent, 1, 1)
            session.allocator.step(Hold(used))
    offers = session.cycle(1000, agents=declined or [1])
    for offer in offers:
        session.give_back(offer, refuse_ms=60_000)
    return session


@pytest.mark.parametrize("wanted", [None, [3, 4]])
def test_no_array_of_a_snapshot_can_be_written(wanted: list[int] | None) -> None:
    session = busy_session([1, 2, 3])
    chosen = None if wanted is None else np.array(wanted)
    shot = SnapshotBuilder().build(session.state, chosen)
    found = dict(arrays(shot, "snapshot"))
    assert len(found) > 40
    assert {"snapshot.tree.weight", "snapshot.filters.covered", "snapshot.classes.count"} <= set(
        found
    )
    for name, array in found.items():
        assert not array.flags.writeable, name
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def shown_agent(shot: Snapshot, agent: int) -> tuple[Any, ...]:
    """The data of an agent in a snapshot, independent of its row number."""
    row = int(np.flatnonzero(shot.handle == agent)[0])
    refusal, refused = int(shot.filters.head[row]), []
    while refusal >= 0:
        refused.append(
            (int(shot.filters.client[refusal]), shot.filters.amount[:, refusal].tolist())
        )
        refusal = int(shot.filters.next[refusal])
    holders = shot.holder[shot.holder >> 32 == row] & (2**32 - 1)
    return (
        shot.capacity[row].tolist(),
        shot.free[row].tolist(),
        dense(shot.excluded)[:, row].tolist(),
        shot.filters.covered[:, row].tolist(),
        shot.filters.largest[:, row].tolist(),
        refused,
        holders.tolist(),
        row in shot.agents,
    )


@given(
    declined=st.lists(st.integers(1, AGENTS), unique=True),
    wanted=st.lists(st.integers(0, AGENTS + 3), min_size=1, max_size=AGENTS),
)
def test_a_cycle_over_some_agents_shows_of_them_what_a_full_one_does(
    declined: list[int], wanted: list[int]
) -> None:
    """Holds in either order, because either snapshot updates the bits of filters."""
    session = busy_session(declined)
    twin = busy_session(declined)
    builder = SnapshotBuilder()
    some = builder.build(session.state, np.array(wanted))
    whole = SnapshotBuilder().build(twin.state, None)
    later = builder.build(session.state, None)
    bound = {agent for agent in wanted if 1 <= agent <= AGENTS}
    assert set(some.handle[some.agents].tolist()) == bound
    for agent in sorted(bound):
        assert shown_agent(some, agent) == shown_agent(whole, agent)
    for agent in range(1, AGENTS + 1):
        assert shown_agent(later, agent) == shown_agent(whole, agent)
    bits = bits_of_filters(some)
    # The number of words depends on the number of rows allocated so far.
    words = min(bits.shape[2], some.filters.covered.shape[2])
    assert (some.filters.covered[..., :words] == bits[..., :words]).all()
    assert not bits[..., words:].any()


@example(busy=set(range(1, AGENTS + 1)))
@given(busy=st.sets(st.integers(1, AGENTS)))
def test_agents_that_have_nothing_are_no_part_of_a_full_cycle(busy: set[int]) -> None:
    session = Session()
    for agent in range(1, AGENTS + 1):
        session.agent(agent, cpus=4, mem=8)
    session.framework(1)
    for agent in sorted(busy):
        session.allocator.step(Hold(session.holdings(1, 1, agent, 4, 8)))
    shot = SnapshotBuilder().build(session.state, None)
    assert set(shot.handle[shot.agents].tolist()) == set(range(1, AGENTS + 1)) - busy
    if len(busy) > AGENTS // 2:
        assert len(shot.free) == 1 + AGENTS - len(busy)


@pytest.mark.parametrize("name", ["drf", "ps-dsf", "rps-dsf", "tsf", "choosy"])
@pytest.mark.parametrize("agent", [1, 5, AGENTS])
def test_one_agent_is_served_as_if_it_were_the_only_one_with_room(name: str, agent: int) -> None:
    """Scores do not depend on which agents a snapshot contains."""
    session = busy_session([1, 2, 3], PolicySpec(name, selection="listed"))
    whole = SnapshotBuilder().build(session.state, None)
    row = int(np.flatnonzero(whole.handle == agent)[0])
    policy = session.allocator._policy
    alone = policy.allocate(replace(whole, agents=np.array([row])), 1)
    made = session.allocator.allocate(2000, agents=np.array([agent]))
    assert made.agent.tolist() == [agent] * len(made)
    clients = session.state.clients
    assert made.framework.tolist() == list(dict.fromkeys(clients.framework[alone.client].tolist()))


def test_a_request_tells_what_a_role_may_have_that_its_framework_only_holds_in() -> None:
    """Such a row exists before anything is derived for it."""
    world, kept = World(PolicySpec("drf")), SnapshotBuilder()
    agent = world.agent("cpus:2;mem:64;cpus[revocable]:2")
    framework = world.framework("b", capabilities=["REVOCABLE_RESOURCES"])
    world.hold(framework, "a", agent, "cpus:1")
    state = world.allocator.state
    kept.build(state, None)
    world.tell(Request(framework.handle, ()))
    now, anew = kept.build(state, None), SnapshotBuilder().build(state, None)
    assert now.specials.reach.tolist() == anew.specials.reach.tolist()
