"""The shadow policy makes the decisions that it would make if it were in force."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import (
    Allocator,
    Comparison,
    CycleRecord,
    Decisions,
    EventError,
    Floats,
    PolicySpec,
    SetDemand,
    SetPolicy,
    SetShadow,
    Settings,
    Trail,
    compare_beside,
)
from allocator.policies import build
from tests.explain.test_explanations_hold import POLICIES, TASKS, thousandths
from tests.rules.cases import Case
from tests.rules.random_cases import cases
from tests.rules.small_core import begun
from tests.rules.small_master import SmallMaster
from tests.world.rows import given_back, holdings_of, settled
from tests.world.world import World

REFUSED_MS = 10_000


def share_of(allocator: Allocator, made: Decisions) -> Floats:
    """Dominant share of the decisions for each client."""
    state = allocator.state
    given = np.zeros((len(state.space), len(state.clients.framework)), np.int64)
    rows = state.clients.rows(made.framework, made.role)
    for row, amount in zip(rows.tolist(), made.amount, strict=True):
        given[made.kind, row] += amount
    total = state.total_by_column()
    counted = np.flatnonzero(state.space.counted & (total > 0))
    by_name = state.space.by_column(given)[:, counted]
    return (by_name / total[counted]).max(axis=1, initial=0.0)


def run(allocator: Allocator, now_ms: int) -> tuple[Decisions, Comparison | None]:
    """Run a cycle; all decisions become offers, and every other one is refused."""
    assert allocator.trail is not None
    trail = allocator.trail
    trail.for_shadow = None
    made = allocator.allocate(now_ms)
    record: CycleRecord | None = trail.for_shadow
    spec = allocator.settings.shadow
    assert spec is not None
    found = compare_beside(record, spec, build(spec)) if record else None
    allocator.step(settled(made))
    return made, found


@given(
    case=cases(),
    policy=POLICIES,
    beside=POLICIES,
    tasks=st.tuples(TASKS, TASKS),
)
def test_the_shadow_decides_as_if_in_force(
    case: Case, policy: PolicySpec, beside: PolicySpec, tasks: tuple[Mapping[str, str], ...]
):
    master = SmallMaster(case)
    allocator = begun(master)
    allocator.trail = Trail()
    allocator.step(SetPolicy(policy))
    allocator.step(SetShadow(replace(beside, flat=False)))
    for number, task in enumerate(tasks, 1):
        infos = allocator.state.frameworks.info
        info = infos[min(number, len(infos) - 1)]
        if info is not None:
            allocator.step(SetDemand("", info.name, thousandths(task)))
    for _ in range(3):
        twin = Allocator(build, Settings(policy=policy))
        twin.suppose(allocator.copied(), replace(beside, flat=policy.flat))
        would = share_of(twin, twin.allocate(master.now_ms))
        made, found = run(allocator, master.now_ms)
        if found is None:
            assert not len(made)
            assert not would.any()
        else:
            about = f"\n{case.text()}{policy} beside {beside} {tasks}"
            np.testing.assert_allclose(found.offered_beside, would, err_msg=about)
            np.testing.assert_allclose(found.offered, share_of(allocator, made), err_msg=about)
        # Refused resources are filtered in the next cycle.
        if len(made):
            allocator.step(given_back(holdings_of(made), REFUSED_MS))
            master.now_ms += 1000


def small(policy: PolicySpec, beside: PolicySpec | None) -> World:
    """Two agents, and two frameworks that suit one each."""
    world = World(policy, settings={"shadow": beside})
    world.allocator.trail = Trail()
    world.bind("cpus", "mem", roles=["a", "b"])
    world.agent("cpus:9;mem:18")
    world.agent("cpus:18;mem:9")
    for role, task in (("a", "cpus:1;mem:4"), ("b", "cpus:4;mem:1")):
        world.framework(role, name=role)
        amounts = {"cpus": int(task[5]) * 1000, "mem": int(task[-1]) * 1000}
        world.tell(SetDemand(role, "", amounts))
    return world


def latest(world: World) -> CycleRecord:
    """The record of the last cycle for the shadow policy."""
    trail = world.allocator.trail
    assert trail is not None
    assert trail.for_shadow is not None
    return trail.for_shadow


def test_a_policy_in_the_shadow_of_itself_agrees():
    spec = PolicySpec("ps-dsf", "joint", "characterised")
    world = small(spec, spec)
    world.cycle()
    found = compare_beside(latest(world), spec, build(spec))
    assert found is not None
    assert (found.of_policy, found.of_beside) == (0, 0)
    assert found.of_both > 0
    assert (found.offered == found.offered_beside).all()


def test_a_shadow_policy_shows_its_offers_and_has_no_effect():
    spec, beside = PolicySpec("drf", "listed"), PolicySpec("ps-dsf", "joint", "characterised")
    alone, watched = small(spec, None), small(spec, beside)
    offers = [(each.framework.handle, each.agent.handle) for each in alone.cycle()]
    assert offers == [(each.framework.handle, each.agent.handle) for each in watched.cycle()]
    assert alone.allocator.trail is not None
    assert alone.allocator.trail.for_shadow is None
    found = compare_beside(latest(watched), beside, build(beside))
    assert found is not None
    assert found.of_beside > 0
    assert not np.array_equal(found.offered, found.offered_beside)


def test_a_large_cycle_is_only_copied_if_a_shadow_waits_for_it(monkeypatch):
    monkeypatch.setattr("allocator.core.diagnostics.trail.SNAPSHOT_BYTES_MAX", 0)
    spec = PolicySpec("drf")
    world = small(spec, spec)
    world.cycle()
    trail = world.allocator.trail
    assert trail is not None
    assert latest(world).seen is None
    trail.shadow_bytes_max = 2**20
    for offer in world.cycle():
        raise AssertionError(offer)  # everything is on offer
    world.agent("cpus:1;mem:1")
    world.cycle()
    assert latest(world).seen is not None
    assert trail.cycles[-1].seen is None


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (PolicySpec("drff"), "there is no policy 'drff'"),
        (PolicySpec("drf", flat=True), "leave them out"),
        (PolicySpec("drf", subtrees={"a": "tsf"}), "leave them out"),
        (PolicySpec("cmmf"), "no plans are made for a shadow policy"),
        (None, "there is no shadow policy to stop"),
    ],
)
def test_an_invalid_shadow_policy_is_refused(spec: PolicySpec | None, said: str):
    world = small(PolicySpec("drf"), None)
    with pytest.raises(EventError, match=said):
        world.allocator.step(SetShadow(spec))
    assert world.allocator.settings.shadow is None
