"""A checkpoint contains decisions without an outcome, and expiry times of filters."""

import numpy as np

from allocator.core import Allocator, PolicySpec, Settings
from allocator.core.books.state import SessionLimits
from allocator.core.checkpoint import Detached, restore, to_columns
from allocator.policies import build
from tests.core.session import Session
from tests.world.rows import settled


def test_open_decisions_and_filters_continue_after_a_checkpoint() -> None:
    first = Session(PolicySpec("drf", selection="listed"))
    for agent in (1, 2, 3):
        first.agent(agent, cpus=agent, mem=agent)
    first.framework(1)
    first.framework(2, 2)
    offers = first.cycle(1000)
    first.give_back(offers[0], refuse_ms=5000)
    made = first.allocator.allocate(2000)
    column = to_columns(Detached(first.allocator.kept()).value)
    second = Allocator(build, Settings(), SessionLimits())
    second.resume(restore(column, second.kept()))
    second.check()
    assert second.state.open_decisions.next == first.state.open_decisions.next
    answers = []
    for allocator in (first.allocator, second):
        allocator.step(settled(made, offered=False))
        allocator.check()
        later = [allocator.allocate(now_ms) for now_ms in (3000, 9000)]
        answers.append([(one.agent.tolist(), one.amount.tolist()) for one in later])
    assert answers[0] == answers[1]
    assert np.array_equal(first.state.filters.rows.agent, second.state.filters.rows.agent)
