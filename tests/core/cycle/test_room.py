"""How many tasks fit on agents: the compiled count against the slow one."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocator.core.cycle import gangs
from allocator.core.cycle.room import fits_on_plain
from allocator.core.snapshot import Gangs, Snapshot
from tests.strategies import snapshots


def slow(snapshot: Snapshot, client: int, need: int) -> bool:
    """Whether a gang of equal tasks fits, by arrays of all agents."""
    clients = np.array([client])
    its = replace(snapshot, gangs=Gangs.of(clients, np.array([need])))
    return gangs._tasks_open_to(its, client) >= need


@given(snapshot=snapshots(agents_max=8), need=st.integers(1, 12), data=st.data())
def test_agents_have_room_exactly_if_the_slow_count_says_so(snapshot, need, data):
    client = data.draw(st.sampled_from(range(len(snapshot.demand))))
    fits, expected = fits_on_plain(snapshot, client, need), slow(snapshot, client, need)
    plain = not np.diff(snapshot.specials.start)[snapshot.agents].any()
    assert fits == expected or (fits is None and not plain)
    its = replace(snapshot, gangs=Gangs.of(np.array([client]), np.array([need])))
    assert gangs.has_room(its, client) == expected


@given(snapshot=snapshots(), need=st.integers(1, 12))
def test_agents_with_special_resources_alone_decide_nothing(snapshot, need):
    """A reserved or revocable part may make room, so the count leaves the answer open."""
    special = np.diff(snapshot.specials.start)[snapshot.agents] > 0
    only = replace(snapshot, agents=snapshot.agents[special])
    for client in range(len(snapshot.demand)):
        found = fits_on_plain(only, client, need)
        assert found is None if special.any() else found is False
