"""A process apart sees all as it was at the moment it was begun."""

import mmap
import time
from dataclasses import fields

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allocator.core import PolicySpec
from allocator.server.system.frozen import Moment
from allocator.wire.journal.checkpoint import mark
from tests.core.random_gates import ROLES, random_world, some
from tests.tiers import examples
from tests.world.rows import given_back, holdings_of, settled

WAIT_S = 60.0
CMMF = PolicySpec("cmmf", mode="characterised")


@settings(examples(10, 30), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1), before=st.integers(0, 3), after=st.integers(1, 4))
def test_all_is_of_the_moment_it_was_begun(seed, before, after):
    """The slow obvious twin is what was there at that moment."""
    chance = np.random.default_rng(seed)
    world = random_world(chance, CMMF)
    allocator = world.allocator

    def go_on():
        world.quota(str(chance.choice(ROLES)), some(chance, 0, 6))
        world.agent(some(chance, 1, 15))
        world.now_ms += 1000
        made = allocator.allocate(world.now_ms)
        world.tell(settled(made))
        world.tell(given_back(holdings_of(made), 5000))

    for _ in range(before):
        go_on()
    problem, copied = allocator.problem(), allocator.copied()
    gone_on = mmap.mmap(-1, 1)  # memory that both processes share

    def make():
        # Only after the core went on: what it changes must not be seen.
        while not gone_on[0]:
            time.sleep(0.001)
        return allocator.problem(), allocator.copied(still=True)

    moment = Moment(make, allocator.shared())
    for _ in range(after):
        go_on()
    gone_on[0] = 1
    found, columns = moment.take()
    assert mark(columns.columns()) == mark(copied.columns())
    assert mark(columns.columns()) != mark(allocator.copied().columns())
    if problem is None:
        assert found is None
        return
    for name in (each.name for each in fields(problem)):
        one, other = getattr(found, name), getattr(problem, name)
        if isinstance(other, np.ndarray):
            np.testing.assert_array_equal(one, other)
            assert (one.dtype, one.flags.writeable) == (other.dtype, other.flags.writeable)
        elif name in ("agents", "frameworks"):
            # Identity comparisons give the same object.
            assert list(map(id, one)) == list(map(id, other))
        elif name == "plan":
            assert one is other
        else:
            assert one == other
