"""How long tasks run is learnt from what comes back, and never from claims."""

from random import Random

import numpy as np
import pytest

from allocator.core import DEMAND_LABEL, Hold, PolicySpec, RemoveAgent, Settings
from allocator.core.demand.durations import (
    BUCKETS,
    EDGES_MS,
    SAMPLES_MAX,
    SAMPLES_MIN,
    Durations,
    bucket_of,
    ends_after_ms,
    ends_within_ms,
)
from tests.core.session import Session
from tests.world.rows import given_back, holdings

TOPIC = ("a", "name", "job-#")
NONE = np.zeros(BUCKETS, np.int64)


def counted(*lasted_ms: int) -> np.ndarray:
    return np.bincount(bucket_of(np.array(lasted_ms, np.int64)), minlength=BUCKETS)


def ends(counts: np.ndarray) -> dict[int, int]:
    """Counts by bucket."""
    return {bucket: int(counts[bucket]) for bucket in np.flatnonzero(counts).tolist()}


def learnt(session: Session, name: str = "job-#", role: str = "a") -> dict[int, int]:
    """Ends by the upper edge of their bucket."""
    entry = session.state.memory.durations.entries.get((role, "name", name))
    counts = () if entry is None else entry.counts
    edges = (*EDGES_MS, 0)
    return {edges[at]: count for at, count in enumerate(counts) if count}


def cluster() -> Session:
    """One agent, and a framework with tasks of a CPU."""
    session = Session(PolicySpec("drf", "listed", "characterised"))
    session.agent(1, 4, 4)
    session.framework(1, 1, name="job-1", labels={DEMAND_LABEL: "cpus:1;mem:1"})
    return session


def end(session: Session, now_ms: int, cpus: int = 1, agent: int = 1) -> None:
    session.allocator.advance(now_ms)
    ended = session.holdings(1, 1, agent, cpus, cpus)
    session.allocator.step(given_back(ended, used=True))


def test_durations_are_counted_under_role_and_name():
    session = cluster()
    (offer,) = session.cycle(1000)
    session.allocator.advance(5000)
    session.use(offer)
    end(session, 15_000, cpus=4)
    assert learnt(session) == {12_000: 1}, "from when it came into use, not from the offer"


def test_overlapping_tasks_count_from_the_first_use():
    """Never less than the duration of the task that ended, which the core cannot know."""
    session = cluster()
    session.cycle(0)
    for begins_ms in (0, 10_000):
        session.allocator.advance(begins_ms)
        session.use((1, 1, 1, {"cpus": 1, "mem": 1}))
    end(session, 12_000)
    end(session, 60_000)
    # The rest came back meanwhile, but something was always in use.
    assert learnt(session) == {12_000: 1, 64_000: 1}


def test_use_after_a_pause_is_measured_separately():
    session = cluster()
    session.cycle(0)
    for begins_ms in (0, 10_000):
        session.allocator.advance(begins_ms)
        session.use((1, 1, 1, {"cpus": 1, "mem": 1}))
        end(session, begins_ms + 2000)
    assert learnt(session) == {2000: 2}


def test_a_decline_teaches_nothing():
    session = cluster()
    (offer,) = session.cycle(0)
    session.allocator.advance(5000)
    session.give_back(offer, 0)
    assert learnt(session) == {}


def test_holdings_from_before_the_session_are_not_recorded():
    session = cluster()
    session.allocator.step(Hold(session.holdings(1, 1, 1, 1, 1)))
    end(session, 5000)
    assert learnt(session) == {}


def test_tasks_lost_with_an_agent_are_not_recorded():
    session = cluster()
    (offer,) = session.cycle(0)
    session.use(offer)
    session.allocator.advance(5000)
    session.allocator.step(RemoveAgent(1))
    assert learnt(session) == {}


def test_a_refused_release_teaches_nothing():
    session = cluster()
    (offer,) = session.cycle(0)
    session.use(offer)
    with pytest.raises(Exception, match="gives back more"):
        end(session, 5000, cpus=5)
    assert learnt(session) == {}


def test_learnt_durations_outlive_the_framework_and_the_session():
    session = cluster()
    (offer,) = session.cycle(0)
    session.use(offer)
    end(session, 5000, cpus=4)
    later = cluster()
    later.allocator.remember(session.allocator)
    assert learnt(later) == {6000: 1}


def test_the_order_of_ends_does_not_matter_before_they_are_trimmed():
    settings, one, other = Settings(), Durations(), Durations()
    rows = [counted(each) for each in range(1000, 3_000_000, 1000)]
    for row in rows:
        one.teach(settings, TOPIC, ends(row), 0)
    other.teach(settings, TOPIC, ends(np.sum(rows, axis=0)), 0)
    for each in (one, other):
        each.trim(settings)
    assert one.entries == other.entries


def test_memory_is_bounded():
    settings, durations = Settings(priors_max=3), Durations()
    for number in range(10):
        durations.teach(settings, ("a", "name", f"job{number}"), ends(counted(1000)), 0)
    durations.teach(settings, ("a", "name", "job7"), ends(counted(1000) * 5000), 0)
    durations.trim(settings)
    assert [who for _, _, who in durations.entries] == ["job8", "job9", "job7"]
    assert sum(durations.entries["a", "name", "job7"].counts) <= SAMPLES_MAX


def test_few_ends_say_nothing_and_old_ones_less():
    settings, durations = Settings(prior_half_life_ms=1000), Durations()
    durations.teach(settings, TOPIC, ends(counted(5000) * (SAMPLES_MIN - 1)), 0)
    assert durations.counts(settings, TOPIC, 0) is None
    durations.teach(settings, TOPIC, ends(counted(5000) * 60), 0)
    for elapsed_ms, left in ((1999, 40), (2000, 20)):
        counts = durations.counts(settings, TOPIC, elapsed_ms)
        assert counts is not None
        assert counts.sum() == left
    assert durations.counts(settings, TOPIC, 3000) is None


def test_halving_keeps_what_is_rare_and_long():
    settings, durations = Settings(), Durations()
    durations.teach(settings, TOPIC, ends(counted(1000) * 5000 + counted(90_000)), 0)
    durations.trim(settings)
    assert durations.entries[TOPIC].counts[int(bucket_of(np.array([90_000]))[0])] == 1


@pytest.mark.parametrize("seed", range(200))
def test_quantiles_are_rounded_away_from_hope(seed):
    """Against a plain list of durations."""
    chance = Random(seed)
    lasted = [int(1000 * 1.5 ** chance.uniform(0, 20)) for _ in range(chance.randint(20, 300))]
    counts = counted(*lasted)
    within_ms = ends_within_ms(counts, NONE)
    assert within_ms is not None
    longer = [each for each in lasted if each > within_ms]
    assert 20 * len(longer) <= len(lasted), "p95 is never too short"
    smaller = [edge for edge in EDGES_MS if edge < within_ms]
    if smaller:
        assert 20 * sum(each > smaller[-1] for each in lasted) > len(lasted), (
            "nor a bucket too long"
        )
    age_ms = chance.randrange(2 * max(lasted))
    bucket = {each: int(bucket_of(np.array([each]))[0]) for each in (*lasted, age_ms)}
    left = sorted(each for each in lasted if bucket[each] >= bucket[age_ms])
    for percent in (50, 95):
        down, up = (
            max(int(ends_after_ms(counts, percent, up=each)[bucket[age_ms]]), age_ms)
            for each in (False, True)
        )
        if not left:
            assert down == up == age_ms
            continue
        exact = left[-(-len(left) * percent // 100) - 1]
        assert age_ms <= down <= max(exact, age_ms)
        assert up >= exact


def test_tasks_that_run_on_count_against_their_like():
    """A hundred short ones that ended say little while ten others never end."""
    counts, hour = counted(*[5000] * 100), counted(*[3_600_000] * 10)
    assert ends_within_ms(counts, NONE) == 6000
    assert ends_within_ms(counts, hour) == 4_096_000
    assert ends_within_ms(counts, counted(*[3_600_000] * 5)) == 6000
    assert ends_within_ms(counts, counted(*[5000] * 1000)) == 6000, "they may end just as soon"


def test_durations_beyond_all_buckets_have_no_quantile():
    assert ends_within_ms(counted(*[2 * EDGES_MS[-1]] * 100), NONE) is None


def test_parts_of_one_event_and_single_events_teach_the_same():
    both = []
    for together in (True, False):
        session = cluster()
        session.agent(2, 4, 4)
        for offer in session.cycle(0):
            session.use(offer)
        session.allocator.advance(7000)
        ones = [(1, 1, 1, 1000, 1000), (1, 1, 2, 4000, 4000), (1, 1, 1, 3000, 3000)]
        for rows in [ones] if together else [[one] for one in ones]:
            session.allocator.step(given_back(holdings(*rows), used=True))
        both.append(learnt(session))
    assert both == [{8000: 3}, {8000: 3}]
