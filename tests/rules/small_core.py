"""The offer of the core to a case's client while all other clients are suppressed."""

import numpy as np

from allocator import policies
from allocator.core import Allocator, Decisions, Options, PolicySpec, SetPaused, Settings, Suppress
from laboratory.master.session import snapshot
from tests.rules.cases import Case, Wish
from tests.rules.small_master import UNBOUND, SmallMaster

POLICY = PolicySpec("drf", selection="listed", mode="oblivious")


def offered(case: Case) -> Wish:
    """Run one cycle over the agent, all others suppressed; returns the offered amounts by kind."""
    master = SmallMaster(case)
    wish = master.decision
    known = wish.framework in master.ledger.frameworks and wish.agent != UNBOUND
    if not known or wish.role not in master.ledger.frameworks[wish.framework].roles:
        return {}
    allocator = begun(master)
    for framework, row in master.ledger.frameworks.items():
        others = row.roles - {wish.role} if framework == wish.framework else row.roles
        if others:
            allocator.step(Suppress(framework, tuple(sorted(others))))
    made = allocator.allocate(master.now_ms, np.array([wish.agent]))
    assert allocator.last_cycle.policy_error == ""
    allocator.check()
    return _given(master, made)


def begun(master: SmallMaster) -> Allocator:
    """An allocator in the state of the master."""
    ledger = master.ledger
    settings = Settings(
        policy=POLICY, limits=dict(master.limits), outstanding_max=master.outstanding_max
    )
    allocator = Allocator(policies.build, settings, substitute=None)
    allocator.step(
        Options(minimum=ledger.minimum, filter_gpus=ledger.filter_gpus, region=ledger.region)
    )
    for event in snapshot(ledger, master.identities, {}, master.now_ms):
        allocator.step(event)
    allocator.step(SetPaused(ledger.holds_back))
    _put_on_offer(allocator, master)
    return allocator


def _put_on_offer(allocator: Allocator, master: SmallMaster) -> None:
    """A snapshot contains holdings; the part that is only on offer is set separately."""
    state, kinds = allocator.state, master.ledger.kinds.kinds
    for framework, role, agent, amounts in master.offered:
        row = np.array([state.clients.row(framework, role)]), np.array([agent])
        kind = np.array([kinds.index(each) for each in amounts], np.int64)
        amount = np.array([list(amounts.values())], np.int64)
        state.ledger.release(*row, kind, amount, np.array([True]))
        state.ledger.charge(*row, kind, amount, as_offer=True, now_ms=master.now_ms)


def _given(master: SmallMaster, made: Decisions) -> Wish:
    assert len(made) <= 1
    kinds = master.ledger.kinds.kinds
    return {
        kinds[kind]: amount
        for group in made.groups
        for kind, amount in zip(group.kind.tolist(), group.amount[0].tolist(), strict=True)
        if amount
    }
