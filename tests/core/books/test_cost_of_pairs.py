"""Relations of clients and agents take memory only for the pairs in them."""

import numpy as np
import pytest

from allocator.core import (
    AddAgent,
    AddFramework,
    AgentInfo,
    Allocator,
    Define,
    Exclude,
    FrameworkInfo,
    Kind,
    Options,
    PolicySpec,
    RemoveAgent,
    Settings,
)
from allocator.core.checkpoint import Detached, restore, to_columns
from allocator.policies import build
from tests.counting import resident_bytes
from tests.tables import dense
from tests.world.rows import given_back, holdings_of, settled

AGENTS, FRAMEWORKS, ROLES = 4039, 16, 1000
"""Each table of such pairs has 8 MiB; sixteen agents share a page of it."""

PAGES_MAX = 256 * 1024
"""Bytes for a few pairs, including what the system allocates with them."""


@pytest.fixture
def allocator() -> Allocator:
    """A cluster with one framework, and another one with sixteen thousand (role, agent) pairs."""
    allocator = Allocator(build, Settings(policy=PolicySpec("drf")))
    allocator.step(Options())
    roles = {handle: f"role-{handle}" for handle in range(1, ROLES + 2)}
    allocator.step(Define({0: Kind("cpus")}, roles))
    for agent in range(1, AGENTS + 1):
        allocator.step(_agent(agent))
    allocator.step(AddFramework(1, FrameworkInfo("alone"), (1,)))
    for handle in range(2, 2 + FRAMEWORKS):
        allocator.step(AddFramework(handle, FrameworkInfo("tenant"), tuple(range(2, ROLES + 2))))
    return allocator


def _agent(agent: int) -> AddAgent:
    capabilities = frozenset({"MULTI_ROLE"})
    return AddAgent(agent, AgentInfo(f"agent-{agent}", capabilities=capabilities), {0: 1000})


def _covered(allocator: Allocator) -> np.ndarray:
    return allocator.state.filters.rows.covered


def _exclusion_bytes(allocator: Allocator) -> int:
    """The largest of the tables of exclusions, without rows that it has room for."""
    eligibility = allocator.state.eligibility
    tables = eligibility._told.table, eligibility.excluded
    return max(table.row.nbytes + table.bits.nbytes for table in tables)


def _cycle(allocator: Allocator, refusing: int) -> None:
    """Offer and release everything; offers on this number of agents are refused."""
    made = allocator.allocate(allocator.state.now_ms + 1000)
    assert len(made) == AGENTS
    allocator.step(settled(made))
    rows = holdings_of(made)
    allocator.step(given_back(rows.cut(slice(0, refusing)), 600_000))
    allocator.step(given_back(rows.cut(slice(refusing, AGENTS))))


def test_pairs_without_data_take_no_memory(allocator):
    """This is true after cycles, after agents have returned, and after a checkpoint."""
    for _ in range(2):
        _cycle(allocator, refusing=0)
    for agent in range(1, 200):
        allocator.step(RemoveAgent(agent))
        allocator.step(_agent(agent))
    assert not dense(allocator.state.eligibility.excluded).any()
    assert _covered(allocator).nbytes >= 7 * 2**20
    assert resident_bytes(_covered(allocator)) <= PAGES_MAX
    assert _exclusion_bytes(allocator) <= 2 * PAGES_MAX
    copied = Detached(allocator.state.filters).value
    assert resident_bytes(copied.rows.covered) <= PAGES_MAX
    again = restore(to_columns(copied), type(copied)(1))
    assert (again.rows.covered == copied.rows.covered).all()
    assert allocator.state.filters.rows.maybe.shape[1] == 16, "of more than 1,024 clients"
    allocator.state.filters.check()


def test_a_few_refusals_and_exclusions_take_their_pages_alone(allocator):
    _cycle(allocator, refusing=10)
    client = np.full(10, 1)
    told = Exclude(client, client, np.arange(20, 30), np.ones(10, np.bool_))
    allocator.step(told)
    assert allocator.preview() is not None
    excluded, covered = dense(allocator.state.eligibility.excluded), _covered(allocator)
    assert np.count_nonzero(excluded) == np.count_nonzero(covered) == 10
    assert resident_bytes(covered) <= PAGES_MAX
    assert _exclusion_bytes(allocator) <= 2 * PAGES_MAX
    allocator.state.filters.check()


def test_larger_relations_take_no_more(allocator):
    _cycle(allocator, refusing=10)
    allocator.step(AddFramework(99, FrameworkInfo("more"), tuple(range(2, ROLES + 2))))
    allocator.step(_agent(AGENTS + 1))
    assert allocator.preview() is not None
    assert _covered(allocator).nbytes >= 30 * 2**20
    assert resident_bytes(_covered(allocator)) <= PAGES_MAX
    assert _exclusion_bytes(allocator) <= 4 * PAGES_MAX
