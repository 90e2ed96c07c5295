"""Waiting clients: an agent could have served them, but they were offered nothing.

A client that no agent suits does not wait: its count stays, and it does not move to the front.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.cli.remote.output import plain
from allocator.cli.render import share_tables
from allocator.core import (
    DEMAND_LABEL,
    ActivateFramework,
    FrameworkInfo,
    Hold,
    PolicySpec,
    Revive,
    SetConstraint,
    SetQuota,
    Suppress,
    UpdateFramework,
)
from allocator.core.cycle.servable import servable
from allocator.core.cycle.snapshot_builder import SnapshotBuilder
from allocator.core.numba.bit_tables import has_bit
from allocator.core.numba.shared_bits import has_shared_bit
from allocator.core.snapshot import Bounds, Snapshot
from allocator.policies.filling.scene.scoring import USUAL
from allocator.server.reports import report
from allocator.server.reports.report import write_clients
from allocator.server.web.page import tables
from allocator.v1 import admin_pb2 as pb
from tests.core.session import Session
from tests.oracle_offers import Supply
from tests.strategies import snapshots

INFO = FrameworkInfo("nobody")


def is_servable(snapshot: Snapshot, client: int) -> bool:
    """Naive implementation: whether an agent has a permitted offer for a client, without quotas."""
    free = Bounds.none(len(snapshot.demand), len(snapshot.total))
    none = np.full_like(snapshot.filters.head, -1)
    filters = snapshot.filters._replace(head=none)
    supply = Supply(replace(snapshot, bounds=free, filters=filters))
    demand = snapshot.demand[client].tolist() if snapshot.characterised[client] else None
    return any(
        not has_shared_bit(snapshot.excluded, agent, client)
        and not has_bit(snapshot.filters.covered, agent, client)
        and supply.offer(client, agent, demand, USUAL) is not None
        for agent in snapshot.agents.tolist()
    )


@given(snapshots() | snapshots(several=True), st.sampled_from([0, 1, 16]))
def test_servable_equals_its_slow_twin(snapshot, nearby):
    clients = snapshot.tree.client
    found = servable(snapshot, clients, nearby)
    slow = np.array([is_servable(snapshot, client) for client in clients.tolist()], np.bool_)
    # For an indivisible resource it may wrongly say yes if several tasks are needed.
    several = snapshot.characterised[clients] & (snapshot.opening[clients] != 1)
    exact = ~several | (not snapshot.specials.whole.any())
    assert (found == slow)[exact].all()
    assert found[slow].all()


def waited(session: Session, framework: int, role: int = 1) -> int:
    return int(session.state.clients.waited[session.state.clients.row(framework, role)])


def cycles(session: Session, count: int, first_ms: int = 1000) -> None:
    """Run cycles; every offer is declined."""
    for number in range(count):
        for offer in session.cycle(first_ms + 1000 * number):
            session.give_back(offer)


def name(session: Session, framework: int) -> str:
    info = session.state.frameworks.info[framework]
    assert info is not None
    return info.framework_id


def overdue(session: Session) -> np.ndarray:
    return SnapshotBuilder().build(session.state, None).overdue


def test_a_client_that_no_agent_suits_does_not_wait():
    session = Session(PolicySpec("drf", "listed"), patience_cycles=3)
    session.agent(1, 4, 8, attributes={"zone": "a"})
    session.framework(1)
    session.framework(2, name="nowhere")
    session.allocator.step(SetConstraint("", "nowhere", "zone=nowhere"))
    cycles(session, 5)
    assert (waited(session, 1), waited(session, 2)) == (0, 0)
    assert not overdue(session).any()


def test_nor_one_whose_task_is_larger_than_every_agent():
    session = Session(PolicySpec("drf", "listed", "characterised"), patience_cycles=3)
    session.agent(1, 4, 8)
    session.framework(1, labels={DEMAND_LABEL: "cpus:1;mem:2"})
    session.framework(2, labels={DEMAND_LABEL: "cpus:5;mem:2"})
    cycles(session, 5)
    assert (waited(session, 1), waited(session, 2)) == (0, 0)


def test_nor_one_that_refused_all_that_there_is():
    session = Session(PolicySpec("drf", "listed"), patience_cycles=3)
    session.agent(1, 4, 8)
    session.framework(1)
    (offer,) = session.cycle(1000)
    session.give_back(offer, refuse_ms=1_000_000)
    cycles(session, 5, first_ms=2000)
    assert waited(session, 1) == 0
    session.agent(2, 4, 8)
    session.framework(2)
    session.allocator.step(Suppress(1))
    cycles(session, 1, first_ms=10_000)
    assert waited(session, 1) == 0


def test_a_client_behind_preferred_ones_waits():
    session = Session(PolicySpec("drf", "listed"), patience_cycles=0)
    session.agent(1, 4, 8)
    session.agent(2, 4, 8)
    session.framework(1)
    session.allocator.step(Hold(session.holdings(1, 1, 2, 4, 8)))
    session.framework(2)
    cycles(session, 5)
    assert (waited(session, 1), waited(session, 2)) == (5, 0)


def test_a_client_at_its_limit_waits():
    session = Session(PolicySpec("drf", "listed"), patience_cycles=0)
    session.agent(1, 4, 8)
    session.framework(1)
    session.allocator.step(SetQuota("a", {}, {"cpus": 0, "mem": 0}))
    cycles(session, 5)
    assert waited(session, 1) == 5


def test_an_overdue_client_that_cannot_be_served_is_not_served_first():
    """It keeps its place: as soon as an agent suits it again, it is served before the others."""
    session = Session(PolicySpec("drf", "listed"), patience_cycles=3)
    session.agent(1, 4, 8, attributes={"zone": "a"})
    session.agent(2, 4, 8)
    session.framework(1, name="picky")
    session.allocator.step(Hold(session.holdings(1, 1, 2, 4, 8)))
    session.framework(2)
    cycles(session, 3)
    client = session.state.clients.row(1, 1)
    assert waited(session, 1) == 3
    assert overdue(session)[client]
    session.allocator.step(SetConstraint("", "picky", "zone=nowhere"))
    assert not overdue(session)[client]
    cycles(session, 2, first_ms=10_000)
    assert waited(session, 1) == 3
    session.allocator.step(SetConstraint("", "picky", None))
    assert [offer[0] for offer in session.cycle(20_000)] == [1]


LAST_WORDS = pytest.mark.parametrize(
    ("last", "again"),
    [
        (Suppress(1), Revive(1)),
        (Suppress(1, (1,)), Revive(1, (1,))),
        (ActivateFramework(1, active=False), ActivateFramework(1, active=True)),
        (UpdateFramework(1, INFO, (1,), (1,)), UpdateFramework(1, INFO, (1,))),
        (UpdateFramework(1, INFO, ()), UpdateFramework(1, INFO, (1,))),
    ],
    ids=["suppressed", "suppressed in its role", "deactivated", "updated", "left its role"],
)


@LAST_WORDS
def test_clients_without_demand_do_not_wait(last, again):
    session = Session(PolicySpec("drf", "listed"), patience_cycles=0)
    session.agent(1, 4, 8)
    session.agent(2, 4, 8)
    session.framework(1)
    session.allocator.step(Hold(session.holdings(1, 1, 2, 4, 8)))
    session.framework(2)
    session.framework(3)
    session.allocator.step(Hold(session.holdings(3, 1, 2, 0, 1)))
    cycles(session, 3)
    assert (waited(session, 1), waited(session, 3)) == (3, 3)
    session.allocator.step(last)
    cycles(session, 2, first_ms=10_000)
    assert (waited(session, 1), waited(session, 3)) == (0, 5)
    # So a list sorted by waiting time begins with clients that starve.
    shares = write_clients(report.read(session.allocator), np.full(3, np.nan), "")
    assert tables.frameworks(shares, 9).rows[0].framework_id == name(session, 3)
    shown = share_tables.arranged(plain(pb.GetSharesResponse(clients=shares)))
    assert shown["clients"][0]["framework_id"] == name(session, 3)
    session.allocator.step(again)
    cycles(session, 1, first_ms=20_000)
    assert waited(session, 1) == 1
