"""The gates before an offer: one test a reason, and none that lets too much through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import AMOUNT_MAX, Reason
from allocator.lab.master.gates import GPU_CAPABILITY, Decision, judge
from allocator.lab.master.ledger import AgentRow, FrameworkRow, Ledger, OfferFilter
from allocator.lab.resources import AgentSpec
from allocator.v1 import session_pb2 as pb

NOW_MS = 1000
SEQUENCE = 5


def build(*, allowed=None, capabilities=(), gpus=0):
    ledger = Ledger(("cpus", "mem", "gpus"))
    ledger.path = {1: "r"}
    capacity = [4000, 8_000_000, gpus]
    info = AgentSpec("h", {}, {"zone": "n"}).info("a")
    ledger.add_agent(1, AgentRow(info, SEQUENCE, capacity, [0, 0, 0]))
    row = FrameworkRow("f", SEQUENCE, {1}, capabilities=frozenset(capabilities))
    row.allowed = allowed or {}
    ledger.add_framework(1, row)
    return ledger


def decide(framework=1, role=1, agent=1, kinds=(0, 1), amounts=(1000, 64_000)):
    return Decision(framework, role, agent, kinds, amounts)


def reason(ledger, decision=None, sequence=SEQUENCE):
    return judge(ledger, decision or decide(), sequence, NOW_MS).reason


def test_reasons_are_those_of_the_protocol():
    ours = {f"OUTCOME_REASON_{reason.name}": int(reason) for reason in Reason}
    assert ours | {"OUTCOME_REASON_UNSPECIFIED": 0} == dict(pb.OutcomeReason.items())


def test_what_is_free_and_wanted_is_offered_as_it_is():
    verdict = judge(build(), decide(), SEQUENCE, NOW_MS)
    assert verdict.reason == Reason.OFFERED
    assert verdict.amount == (1000, 64_000, 0)


def test_what_is_more_than_free_is_cut_to_what_is_free():
    verdict = judge(build(), decide(amounts=(5000, 64_000)), SEQUENCE, NOW_MS)
    assert verdict.reason == Reason.PARTIAL
    assert verdict.amount == (4000, 64_000, 0)


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (decide(framework=2), Reason.UNKNOWN_FRAMEWORK),
        (decide(framework=0), Reason.UNKNOWN_FRAMEWORK),
        (decide(role=2), Reason.BAD_ROLE),
        (decide(agent=2), Reason.UNKNOWN_AGENT),
        (decide(kinds=(0, 7)), Reason.MALFORMED),
        (decide(kinds=(0,)), Reason.MALFORMED),
        (decide(kinds=(), amounts=()), Reason.MALFORMED),
        (decide(amounts=(-1, 64_000)), Reason.MALFORMED),
        (decide(amounts=(AMOUNT_MAX + 1, 0)), Reason.MALFORMED),
        (decide(amounts=(0, 0)), Reason.MALFORMED),
        (decide(amounts=(9, 31_999)), Reason.BELOW_MINIMUM),
        (decide(kinds=(2,), amounts=(1,)), Reason.NOTHING_AVAILABLE),
    ],
)
def test_a_wrong_decision_is_turned_down(decision, expected):
    verdict = judge(build(), decision, SEQUENCE, NOW_MS)
    assert verdict.reason == expected
    assert not any(verdict.amount)


def test_a_paused_ledger_offers_nothing():
    ledger = build()
    ledger.recovery = (1, NOW_MS)
    assert reason(ledger) == Reason.PAUSED


def test_an_inactive_framework_is_offered_nothing():
    ledger = build()
    ledger.deactivate_framework(1)
    assert reason(ledger) == Reason.INACTIVE_FRAMEWORK


def test_a_suppressed_role_is_offered_nothing_until_it_revives():
    ledger = build()
    ledger.suppress(1)
    assert reason(ledger) == Reason.SUPPRESSED
    ledger.revive(1)
    assert reason(ledger) == Reason.OFFERED


def test_an_inactive_agent_is_not_offered():
    ledger = build()
    ledger.agents[1].active = False
    assert reason(ledger) == Reason.INACTIVE_AGENT


@pytest.mark.parametrize("who", ["agents", "frameworks"])
def test_a_decision_for_an_earlier_bearer_of_a_handle_is_stale(who):
    ledger = build()
    getattr(ledger, who)[1].bound_sequence = SEQUENCE + 1
    assert reason(ledger) == Reason.STALE
    assert reason(ledger, sequence=SEQUENCE + 1) == Reason.OFFERED


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        ({"zone": frozenset({"n", "s"})}, Reason.OFFERED),
        ({"zone": frozenset({"s"})}, Reason.CONSTRAINT),
        ({"rack": frozenset({"n"})}, Reason.CONSTRAINT),
    ],
)
def test_constraints_are_held(allowed, expected):
    assert reason(build(allowed=allowed)) == expected


def test_an_excluded_pair_does_not_meet():
    ledger = build()
    ledger.excluded[1].add((1, 1))
    assert reason(ledger) == Reason.CONSTRAINT


def test_agents_with_gpus_are_for_frameworks_that_can_use_them():
    assert reason(build(gpus=1000)) == Reason.CAPABILITY
    assert reason(build(gpus=1000, capabilities=[GPU_CAPABILITY])) == Reason.OFFERED


@pytest.mark.parametrize(
    ("refused", "expires_ms", "expected"),
    [
        ((1000, 64_000, 0), NOW_MS, Reason.FILTERED),
        ((1000, 64_000, 0), NOW_MS - 1, Reason.OFFERED),
        ((999, 64_000, 0), NOW_MS, Reason.OFFERED),
        ((2000, 99_000, 5), NOW_MS + 9, Reason.FILTERED),
    ],
)
def test_a_filter_bars_what_it_covers_up_to_its_last_moment(refused, expires_ms, expected):
    ledger = build()
    ledger.add_filter(1, (1, 1), OfferFilter(refused, expires_ms))
    assert reason(ledger) == expected


@given(
    held=st.tuples(st.integers(0, 4000), st.integers(0, 8_000_000)),
    wanted=st.tuples(st.integers(-5, 2**60), st.integers(-5, 2**60)),
)
def test_no_decision_whatever_gets_more_than_is_free(held, wanted):
    ledger = build()
    if any(held):
        ledger.offer(1, (1, 1), (*held, 0))
    verdict = judge(ledger, decide(amounts=wanted), SEQUENCE, NOW_MS)
    if verdict.amount:
        ledger.offer(1, (1, 1), verdict.amount)
    ledger.check()
    assert bool(verdict.amount) == (verdict.reason in {Reason.OFFERED, Reason.PARTIAL})
