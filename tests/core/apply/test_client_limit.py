"""`limits.clients` counts clients, that is pairs of framework and role, not rows of a message.

Any framework may name many roles, so clients beyond the limit are ignored without an error.
"""

import numpy as np
import pytest

from allocator.core import (
    EventError,
    FrameworkInfo,
    Hold,
    Holdings,
    Revive,
    SessionLimits,
    Suppress,
    UpdateFramework,
)
from tests.core.session import CPUS, Session

ROLES = {role: f"role-{role}" for role in range(1, 9)}


def held(*rows: tuple[int, int, int]) -> Hold:
    """One CPU for each (framework, role, agent)."""
    framework, role, agent = np.array(rows).T
    return Hold(Holdings(framework, role, agent, np.array([CPUS]), np.full((len(rows), 1), 1000)))


def session(clients: int, agents: int = 10) -> Session:
    made = Session(roles=ROLES, limits=SessionLimits(clients=clients))
    for agent in range(1, agents + 1):
        made.agent(agent, 4, 8)
    return made


def test_many_rows_of_one_client_need_one_place():
    made = session(clients=1)
    made.allocator.step(held(*[(1, 1, agent) for agent in range(1, 11)]))
    made.allocator.step(held(*[(1, 1, agent) for agent in range(1, 11)]))
    assert len(made.state.clients) == 1
    assert made.state.ledger.books.client_held.sum() == 20_000
    made.allocator.check()


def test_holdings_of_clients_beyond_the_limit_are_not_booked():
    made = session(clients=2)
    made.allocator.step(held((1, 1, 1)))
    made.allocator.step(held((1, 1, 2), (2, 1, 1), (3, 1, 1)))
    assert len(made.state.clients) == 2
    assert made.state.ledger.books.client_held.sum() == 3000
    made.allocator.check()


def test_roles_that_a_framework_has_already_need_no_place():
    made = session(clients=3)
    made.framework(1, 1, 2, 3)
    made.allocator.step(UpdateFramework(1, FrameworkInfo("x"), (1, 2, 3)))
    made.allocator.step(UpdateFramework(1, FrameworkInfo("x"), (1, 2, 3, 4)))
    assert len(made.state.clients) == 3
    assert [row.reason for row in made.state.frameworks.aside[1]] == ["too_many"]
    assert {offer[1] for offer in made.cycle(1000)} == {1, 2, 3}
    # Input about that role has no effect.
    made.allocator.step(Suppress(1, (3, 4)))
    made.allocator.step(Revive(1, (4,)))
    with pytest.raises(EventError, match="not subscribed to role 5"):
        made.allocator.step(Suppress(1, (5,)))


def test_a_role_that_is_left_makes_place_for_another():
    made = session(clients=3)
    made.framework(1, 1, 2, 3)
    made.allocator.step(UpdateFramework(1, FrameworkInfo("x"), (1, 2, 4)))
    assert len(made.state.clients) == 3
    made.allocator.check()


def test_a_role_with_holdings_keeps_its_client():
    made = session(clients=3)
    made.framework(1, 1, 2, 3)
    made.allocator.step(held((1, 3, 1)))
    made.allocator.step(UpdateFramework(1, FrameworkInfo("x"), (1, 2, 4)))
    assert len(made.state.clients) == 3
    assert made.state.frameworks.unserved[1] == {4}
    # The client is added when the framework repeats its role after room became available.
    made.give_back((1, 3, 1, {"cpus": 1, "mem": 0}))
    made.allocator.step(UpdateFramework(1, FrameworkInfo("x"), (1, 2, 4)))
    assert not made.state.frameworks.aside
    made.allocator.check()
