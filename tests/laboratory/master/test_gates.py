"""The gates of the emulated master, beyond the cases of `tests/rules`.

Those check one wish at a time against Mesos's rules. These check what a case cannot express:
malformed decisions, attributes in constraints, and charges of a batch of decisions to quotas.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import AMOUNT_MAX, Reason
from allocator.v1 import session_pb2 as pb
from laboratory.master.gates import Decision, QuotaBook, judge
from laboratory.master.ledger import AgentRow, FrameworkRow, Ledger, Quota
from laboratory.resources import AgentSpec

NOW_MS = 1000
SEQUENCE = 5


def build(cpus=4000, *, allowed=None):
    ledger = Ledger(("cpus", "mem"))
    ledger.path = {1: "r"}
    info = AgentSpec("h", {}, {"zone": "n"}).info("a")
    ledger.add_agent(1, AgentRow(info, SEQUENCE, [cpus, 8_000_000], [0, 0]))
    row = FrameworkRow("f", SEQUENCE, {1})
    row.allowed = allowed or {}
    ledger.add_framework(1, row)
    return ledger


def decide(kinds=(0, 1), amounts=(1000, 64_000), framework=1):
    return Decision(framework, 1, 1, kinds, amounts)


def test_reasons_are_those_of_the_protocol():
    ours = {f"OUTCOME_REASON_{reason.name}": int(reason) for reason in Reason}
    assert ours | {"OUTCOME_REASON_UNSPECIFIED": 0} == dict(pb.OutcomeReason.items())


@pytest.mark.parametrize(
    "decision",
    [
        decide(kinds=(0, 7)),
        decide(kinds=(0,)),
        decide(amounts=(-1, 64_000)),
        decide(amounts=(AMOUNT_MAX + 1, 0)),
    ],
)
def test_a_malformed_decision_is_turned_down(decision):
    verdict = judge(build(), decision, SEQUENCE, NOW_MS)
    assert verdict.reason == Reason.MALFORMED
    assert not any(verdict.amount)


def test_no_framework_has_the_handle_zero():
    assert judge(build(), decide(framework=0), 0, NOW_MS).reason == Reason.UNKNOWN_FRAMEWORK


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        ({"zone": frozenset({"n", "s"})}, Reason.OFFERED),
        ({"zone": frozenset({"s"})}, Reason.CONSTRAINT),
        ({"rack": frozenset({"n"})}, Reason.CONSTRAINT),
    ],
)
def test_constraints_on_attributes_are_held(allowed, expected):
    assert judge(build(allowed=allowed), decide(), SEQUENCE, NOW_MS).reason == expected


@given(
    held=st.tuples(st.integers(0, 4000), st.integers(0, 8_000_000)),
    wanted=st.tuples(st.integers(-5, 2**60), st.integers(-5, 2**60)),
)
def test_no_decision_gets_more_than_is_free(held, wanted):
    ledger = build()
    if any(held):
        ledger.offer(1, (1, 1), held)
    verdict = judge(ledger, decide(amounts=wanted), SEQUENCE, NOW_MS)
    if verdict.amount:
        ledger.offer(1, (1, 1), verdict.amount)
    ledger.check()
    assert bool(verdict.amount) == (verdict.reason in {Reason.OFFERED, Reason.PARTIAL})


def test_headroom_is_kept_for_guarantees_of_others_over_the_batch():
    ledger = build(cpus=5000)
    ledger.quotas = {"a": Quota(guarantees={"cpus": 4000})}
    quotas = QuotaBook(ledger)
    assert quotas.bounded("b", (5000,)).amount == (1000,)
    quotas.charge("b", (1000,))
    assert quotas.bounded("b", (5000,)).by_headroom
    assert quotas.bounded("b", (5000,)).amount == (0,)
    # Nothing is held back from the role with the last unmet guarantee.
    assert quotas.bounded("a/x", (5000,)).amount == (5000,)


def test_of_two_guarantees_that_are_unmet_each_is_kept_from_the_other():
    ledger = build(cpus=5000)
    ledger.quotas = {role: Quota(guarantees={"cpus": 3000}) for role in ("a", "b")}
    quotas = QuotaBook(ledger)
    assert quotas.bounded("a", (5000,)).amount == (3000,)
    assert quotas.bounded("b", (5000,)).amount == (3000,)
    quotas.charge("a", (3000,))
    assert quotas.bounded("b", (5000,)).amount == (5000,)
