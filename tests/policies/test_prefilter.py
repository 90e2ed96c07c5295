"""A client that cannot be served costs little, in any number of roles."""

from dataclasses import replace

import numpy as np
import pytest

from allocator.core import FrameworkInfo, PolicySpec
from allocator.core.numba.compiled import interpreted_here
from allocator.core.numba.shared_bits import shared_width
from allocator.core.snapshot import Specials, Tier
from allocator.policies import SELECTIONS, build
from allocator.policies.filling.rules import offers
from allocator.policies.filling.search import prefilter
from allocator.testing import static_snapshot
from tests.core.test_needs import AGENTS, ROLES, minimums, snapshot_of
from tests.counting import count_calls


@pytest.fixture
def calls(monkeypatch):
    """Number of times a client is tried individually."""
    return count_calls(monkeypatch, offers, "can_serve")


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize(
    "info",
    [
        FrameworkInfo("nowhere", labels={"allocator.constraint": "nope"}),
        FrameworkInfo("too-much", minimum=minimums(0)),
        FrameworkInfo("each-too-much", minimum=minimums(7, alternatives=3)),
    ],
    ids=lambda info: info.name,
)
def test_many_roles_that_no_agent_suits_are_not_tried_one_by_one(info, selection, calls):
    snapshot = snapshot_of(info)
    with interpreted_here():
        assert not len(build(PolicySpec("drf", selection)).allocate(snapshot, 0))
    assert calls["can_serve"] < AGENTS * ROLES / 5


@pytest.mark.parametrize("selection", SELECTIONS)
def test_where_only_reserved_resources_are_left_no_other_client_is_tried(selection, calls):
    """Each agent has a little that no client may use, and is granted to one of many clients."""
    cluster = static_snapshot([[4]] * AGENTS, clients=ROLES)
    agents, words = len(cluster.free), shared_width(cluster.excluded)
    reserved = Specials(
        start=np.maximum(np.arange(-1, agents), 0),
        row=np.zeros(AGENTS, np.int64),
        free=np.full(AGENTS, 100),
        kind=np.array([1]),
        column=np.array([0]),
        tier=np.array([Tier.RESERVED]),
        bounded=np.array([False]),
        whole=np.array([False]),
        reach=np.zeros((1, words), np.uint64),
    )
    cluster = replace(cluster, specials=reserved)
    with interpreted_here():
        grants = build(PolicySpec("drf", selection)).allocate(cluster, 0)
    assert sorted(grants.agent.tolist()) == list(range(1, agents))
    assert calls["can_serve"] < AGENTS * ROLES / 5


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("name", ["drf", "ps-dsf"])
def test_clients_excluded_almost_everywhere_cost_no_try_on_each_agent(name, selection, calls):
    """They have the smallest shares until the end, so they are first in order on each agent."""
    allowed = np.ones((ROLES, AGENTS), np.bool_)
    allowed[:20] = False
    allowed[0, 2] = True  # on the agent in row 3
    cluster = static_snapshot([[4]] * AGENTS, clients=ROLES, allowed=allowed)
    with interpreted_here():
        grants = build(PolicySpec(name, selection)).allocate(cluster, 0)
    assert sorted(grants.agent.tolist()) == list(range(1, AGENTS + 1))
    first, others = grants.client[grants.agent == 3], grants.client[grants.agent != 3]
    assert first.tolist() == [0]
    assert min(others) >= 20
    assert calls["can_serve"] < 6 * AGENTS


def test_a_square_of_bits_is_turned_round():
    square = np.random.default_rng(1).integers(0, 2**64, 64, np.uint64)
    turned = square.copy()
    prefilter.turn(turned)
    places = np.arange(64, dtype=np.uint64)
    bits = square[:, None] >> places & np.uint64(1)
    np.testing.assert_array_equal(turned[:, None] >> places & np.uint64(1), bits.T)
