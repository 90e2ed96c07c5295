"""Who cannot be served costs little, however many roles it is in."""

import numpy as np
import pytest

from allocator.core import FrameworkInfo, PolicySpec
from allocator.core.numba.compiled import interpreted_here
from allocator.policies import SELECTIONS, build
from allocator.policies.filling.rules import offers
from allocator.policies.filling.search import hopeful
from tests.core.test_wants import AGENTS, ROLES, minimums, snapshot_of


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
def test_many_roles_that_no_agent_suits_are_not_tried_one_by_one(info, selection, monkeypatch):
    snapshot, calls, real = snapshot_of(info), 0, offers.can_serve

    def counted(*arguments):
        nonlocal calls
        calls += 1
        return real(*arguments)

    monkeypatch.setattr(offers, "can_serve", counted)
    policy = build(PolicySpec("drf", selection))
    with interpreted_here():
        assert not len(policy.allocate(snapshot, 0))
    assert calls < AGENTS * ROLES / 5


def test_a_square_of_bits_is_turned_round():
    square = np.random.default_rng(1).integers(0, 2**64, 64, np.uint64)
    turned = square.copy()
    hopeful.turn(turned)
    places = np.arange(64, dtype=np.uint64)
    bits = square[:, None] >> places & np.uint64(1)
    np.testing.assert_array_equal(turned[:, None] >> places & np.uint64(1), bits.T)
