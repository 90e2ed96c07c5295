"""Every feature of Mesos at once: the gates reject no decision, and the books stay equal.

`MESOS_ALLOCATOR_EVERYTHING` is the number of seeds to play in addition to the first.
"""

import os
import socket
import urllib.request
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import PolicySpec, Reason
from allocator.policies import MODES, POLICIES
from laboratory.experiments.soak import Soak
from laboratory.master.cycles import Timing
from laboratory.random_cluster import RandomScenario
from laboratory.random_cluster.checks import SORTS, differences, of_ledger
from laboratory.workloads.play import play
from tests.laboratory.master.auditing import Audited
from tests.laboratory.master.books import of_state
from tests.laboratory.master.masters import wire_link
from tests.plain_loops import plain_sidecar
from tests.server.metrics.scraping import samples, series
from tests.tiers import examples, long, some

FIRST = 3
SEEDS = range(FIRST, FIRST + 1 + int(os.environ.get("MESOS_ALLOCATOR_EVERYTHING", "0")))


def run(seed, policy="drf", mode="oblivious", *, decision_ms=0, cut_every_ms=0, **more):
    scenario = RandomScenario(seed, **{"duration_ms": 20_000, **more})
    link = wire_link(policy, mode, seed)
    audited = Audited(
        scenario, link, every_ms=490, cut_every_ms=cut_every_ms, until_ms=scenario.duration_ms
    )
    timing = Timing(decision_ms=decision_ms)
    played = play(audited, link, tell_demand=True, options=scenario.options, timing=timing)
    assert scenario.inspector.wrong == []
    assert audited.compared > 10
    return scenario, played.record


# Three types of policies: a global criterion, one for each agent, and a plan.
QUICK = {("drf", MODES[0]), ("ps-dsf", MODES[1]), ("cmmf", MODES[1])}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("policy", "mode"), some(product(sorted(POLICIES), MODES), QUICK))
def test_no_decision_needs_the_gates(policy, mode, seed):
    _, record = run(seed, policy, mode)
    assert record.steady[Reason.OFFERED] > 50
    assert not record.defects
    assert record.steady == record.outcomes


@pytest.mark.parametrize("mode", [MODES[0], *long(MODES[1])])
def test_only_decisions_that_cross_an_event_are_rejected(mode):
    _, record = run(FIRST, mode=mode, decision_ms=150, duration_ms=40_000)
    assert record.steady[Reason.OFFERED] > 20
    assert not record.defects
    assert sum(record.rejected.values()) > 0
    assert not record.rejected.keys() & {Reason.MALFORMED}


@pytest.mark.parametrize("mode", [MODES[1], *long(MODES[0])])
def test_books_agree_with_what_the_masters_fallback_offered(mode):
    """Such an offer is booked like others, then accepted, declined or rescinded."""
    scenario, record = run(FIRST, mode=mode, silent=True, duration_ms=40_000, event_ms=100)
    assert scenario.happened["silence"] > 5
    assert record.fallbacks > 3
    assert not record.defects


@examples(2, 12)
@given(
    seed=st.integers(0, 2**32),
    policy=st.sampled_from(sorted(POLICIES)),
    mode=st.sampled_from(MODES),
    decision_ms=st.sampled_from([0, 150, 400]),
    cut_every_ms=st.sampled_from([0, 4_500]),
)
def test_books_agree_in_any_such_cluster(seed, policy, mode, decision_ms, cut_every_ms):
    _, record = run(seed, policy, mode, decision_ms=decision_ms, cut_every_ms=cut_every_ms)
    assert record.resyncs == (4 if cut_every_ms else 0)
    assert not record.defects
    assert decision_ms or not record.rejected


def test_the_comparison_sees_a_difference():
    link = wire_link()
    audited = Audited(RandomScenario(1, duration_ms=20_000), link, every_ms=490)
    played = play(audited, link, tell_demand=True)
    now_ms = played.master.event_heap.now_ms
    state = link.sidecar.allocator.state  # The session is closed: an empty allocator.
    wrong = differences(of_ledger(played.master.ledger, now_ms), of_state(state, now_ms))
    assert any(line.startswith("agent ") for line in wrong)
    assert any(line.startswith("held ") for line in wrong)


def test_books_agree_after_sessions_that_are_cut():
    _, record = run(FIRST, mode="characterised", cut_every_ms=3_000)
    assert record.resyncs == 6
    assert not record.defects


@pytest.mark.long
def test_everything_occurs():
    """Every kind of event must happen at least once."""
    scenario, record = run(FIRST, size=12, duration_ms=90_000)
    assert len(scenario.happened) == 20
    assert min(scenario.happened.values()) > 0
    assert scenario.inspector.seen.keys() == SORTS.keys()
    assert record.operations > 20


def test_the_same_seed_is_the_same_run():
    one, two = (run(FIRST, "ps-dsf", "characterised", duration_ms=8_000)[1] for _ in range(2))
    assert (one.used, one.time_ms, one.outcomes) == (two.used, two.time_ms, two.outcomes)


def test_a_real_sidecar_counts_no_outcome_but_offered(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with plain_sidecar(tmp_path, {"http.port": str(port)}) as process:
        scenario = RandomScenario(FIRST, duration_ms=20_000)
        soak = Soak(process.target, scenario)
        soak.play(PolicySpec("drf", mode="characterised"))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            scraped = samples(answer.read().decode())
    assert soak.wrong == []
    assert soak.compared == 3
    assert scenario.inspector.wrong == []
    assert soak.record is not None
    assert not soak.record.defects
    outcomes = {
        dict(labels)["reason"]: number
        for labels, number in series(scraped, "outcomes_total").items()
    }
    assert outcomes.keys() == {reason.name.lower() for reason in Reason}
    assert outcomes.pop("offered") > 50
    assert not any(outcomes.values())
