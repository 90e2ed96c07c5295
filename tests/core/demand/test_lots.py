"""Tiny demands are granted many tasks at a time: no input can cause millions of grants."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from allocator.core import AddFramework, FrameworkInfo, PolicySpec
from allocator.core.demand.lots import LOTS_LEAST, LOTS_MOST, LOTS_OF_CLUSTER, in_lots, lots_max
from allocator.policies.filling.rules.charging import GRANTS_MAX
from tests.bench.cluster import cluster

AMOUNTS = st.one_of(st.integers(0, 5), st.integers(0, 2**43))


@given(arrays(np.int64, (4, 3), elements=AMOUNTS), arrays(np.int64, 3, elements=AMOUNTS))
def test_a_lot_is_a_whole_number_of_tasks_and_no_larger_than_it_must_be(demand, largest):
    for one, lot in zip(
        demand.tolist(), in_lots(demand, largest, LOTS_LEAST).tolist(), strict=True
    ):
        needed = [r for r in range(3) if one[r]]
        if not needed:
            assert lot == one
            continue
        tasks = min(int(largest[r]) // one[r] for r in needed)
        lots = max(1, -(-tasks // LOTS_LEAST))
        assert lot == [lots * amount for amount in one]


@pytest.mark.parametrize("selection", ["random", "round_robin", "listed", "joint", "best_fit"])
@pytest.mark.parametrize("demand", ["disk:0.001", "mem:0.001", "mem:1", "cpus:0.001"])
def test_a_tiny_demand_makes_a_bounded_number_of_grants(selection, demand):
    made = cluster(3, 2, PolicySpec("drf", selection, "characterised"), roles=1)
    info = FrameworkInfo("tiny", labels={"allocator.demand": demand})
    made.step(AddFramework(3, info, (1,)))
    made.allocate(1000)
    assert 0 < made.last_cycle.grants <= 3 * LOTS_MOST + 3 * 200
    assert made.state.ledger.books.client_held[:, 3].any()
    made.check()


def test_a_demand_below_the_minimum_blocks_no_others():
    """Tasks of disk alone are below the minimum, so it is served as if without a demand."""
    made = cluster(20, 1, PolicySpec("drf", "listed", "characterised"), roles=1)
    disk, all_of_it = {"allocator.demand": "disk:1"}, {"allocator.demand": "cpus:1;disk:1000"}
    made.step(AddFramework(2, FrameworkInfo("disk", labels=disk), (1,)))
    made.step(AddFramework(3, FrameworkInfo("honest", labels=all_of_it), (1,)))
    snapshot = made.preview()
    assert snapshot is not None
    assert snapshot.characterised[2:4].tolist() == [False, True]
    made.allocate(1000)
    assert made.state.ledger.books.client_held[:, 2:4].any(axis=0).all()


def test_a_cycle_ends_at_the_limit_of_grants_and_the_next_one_continues():
    made = cluster(1250, 1, PolicySpec("drf", "listed", "characterised"), roles=1)
    made.step(AddFramework(2, FrameworkInfo("tiny", labels={"allocator.demand": "mem:1"}), (1,)))
    grants = []
    for now_ms in (1000, 2000, 3000):
        made.allocate(now_ms)
        grants.append(made.last_cycle.grants)
    assert grants[0] == GRANTS_MAX
    assert 0 < grants[1] < GRANTS_MAX
    assert not grants[2]


@pytest.mark.parametrize(
    ("agents", "most"),
    [
        (0, LOTS_MOST),
        (16, LOTS_MOST),
        (17, LOTS_OF_CLUSTER // 17),
        (255, LOTS_OF_CLUSTER // 255),
        (256, LOTS_LEAST),
        (50_000, LOTS_LEAST),
    ],
)
def test_lots_are_larger_in_larger_clusters(agents, most):
    assert lots_max(agents) == most
