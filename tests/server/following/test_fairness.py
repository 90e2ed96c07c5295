"""The distance of shares from fair ones: its metrics, how often it is computed, and its cost."""

import threading
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from allocator import policies
from allocator.core import (
    AddFramework,
    Define,
    FrameworkInfo,
    Policy,
    PolicySpec,
    Release,
    RemoveFramework,
    SetDemand,
    SetPolicy,
    SetWeights,
    Suppress,
)
from allocator.server.following.books import FollowedBooks
from allocator.server.following.fair_shares import (
    FAILED_PAUSE_MAX_S,
    PROCESSOR_PART,
    FairnessWatch,
)
from allocator.server.metrics.family import Parts
from allocator.server.metrics.operation_families import fairness_parts
from tests.server.grpc.test_admin import CLUSTER, NESTED
from tests.server.in_process import books_of, kept, tell_books
from tests.server.metrics.scraping import Samples, samples, series, value
from tests.world.rows import holdings

GIB = 1024 * 1000  # thousandths of a MiB
WAIT_S = 60.0
DRF = PolicySpec("drf", mode="characterised", selection="listed")


class Failing:
    """A policy that decides like another one until a test makes it fail."""

    def __init__(self) -> None:
        self.fails = False

    def build(self, spec: PolicySpec) -> Policy:
        policy = policies.build(spec)
        decide = policy.allocate

        class Guarded:
            def allocate(_self, snapshot, seed):  # noqa: N805
                if self.fails:
                    raise ArithmeticError("no shares today")
                return decide(snapshot, seed)

        return Guarded()


@pytest.fixture
def failing() -> Failing:
    return Failing()


@pytest.fixture
def books(failing) -> Iterator[FollowedBooks]:
    """The example of NSDI 2011, sec. 4.1: A has its three tasks, B one of its fair two."""
    one, other = {"cpus": 1000, "mem": 4 * GIB}, {"cpus": 3000, "mem": 1 * GIB}
    with kept(books_of(policies.build, failing.build)) as found:
        tell_books(found, SetPolicy(DRF), *CLUSTER, NESTED, SetWeights({"eng": 1.0}))
        tell_books(found, SetDemand("", "spark", one), SetDemand("", "kafka", other))
        yield found


def scrape(watch: FairnessWatch, roles_max: int = 100) -> Samples:
    registry = CollectorRegistry()
    registry.register(Parts([partial(fairness_parts, watch, roles_max)]))
    return samples(generate_latest(registry).decode())


def looked(books: FollowedBooks) -> Samples:
    watch = FairnessWatch(books, 60.0)
    watch.sample()
    return scrape(watch)


def test_metrics_show_each_distance_from_the_fair_share(books):
    found = looked(books)
    for role, fair, error in (("eng", 2 / 3, 0), ("eng/ads", 2 / 3, 0), ("ops", 2 / 3, -1 / 3)):
        assert value(found, "role_fair_share", role=role) == pytest.approx(fair)
        assert value(found, "role_fairness_error", role=role) == pytest.approx(error)
        assert value(found, "role_shortfall", role=role) == pytest.approx(-error)
    for among, people in (("frameworks", 2), ("roles", 3)):
        assert value(found, "fairness_error_max", among=among) == pytest.approx(1 / 3)
        assert value(found, "fairness_error_mean", among=among) == pytest.approx(1 / 3 / people)
    assert value(found, "fair_shares_total", result="done") == 1
    assert value(found, "fair_shares_age_seconds") > 0
    assert value(found, "fair_shares_last_seconds") > 0


def test_frameworks_that_refuse_or_suppress_offers_lack_nothing(books):
    nothing = holdings((2, 3, 1, 1000, 0))
    tell_books(books, Release(nothing, np.array([3_600_000]), np.array([True])))
    found = looked(books)
    # The refusal does not change the fair shares, and B has less than before.
    assert value(found, "role_fairness_error", role="ops") == pytest.approx(2 / 9 - 2 / 3)
    assert value(found, "role_shortfall", role="ops") == 0
    tell_books(books, Suppress(2))
    found = looked(books)
    assert value(found, "role_fair_share", role="ops") == 0
    assert value(found, "role_fairness_error", role="ops") == pytest.approx(2 / 9)
    assert value(found, "role_shortfall", role="ops") == 0


def test_a_role_lacks_what_those_below_it_lack(books):
    tell_books(books, Release(holdings((1, 2, 1, 1000, 4 * GIB)), np.array([0]), np.array([True])))
    found = looked(books)
    for role in ("eng", "eng/ads"):
        assert value(found, "role_shortfall", role=role) == pytest.approx(4 / 18)


def test_of_many_roles_those_that_have_or_should_have_most_are_shown(books):
    tell_books(
        books, Define({}, {4: "small"}), AddFramework(3, FrameworkInfo("id-3", name="tiny"), (4,))
    )
    tell_books(
        books, SetWeights({"eng": 1.0, "small": 0.01}), SetDemand("", "tiny", {"cpus": 1000})
    )
    watch = FairnessWatch(books, 60.0)
    watch.sample()
    shown = series(scrape(watch, roles_max=3), "role_shortfall")
    assert {dict(labels)["role"] for labels in shown} == {"eng", "eng/ads", "ops"}
    # Frameworks without a series count in the totals.
    shortfalls = series(scrape(watch), "role_shortfall")
    assert len(shortfalls) == 4


def test_an_empty_cluster_has_no_series(books):
    watch = FairnessWatch(books, 60.0)
    watch.sample()
    assert series(scrape(watch), "role_fair_share")
    tell_books(books, RemoveFramework(1), RemoveFramework(2))
    watch.sample()
    found = scrape(watch)
    assert not series(found, "role_fair_share")
    assert not series(found, "fairness_error_max")


def test_a_policy_that_fails_at_it_costs_figures_and_no_decision(books, failing):
    watch = FairnessWatch(books, 60.0)
    watch.sample()
    failing.fails = True
    for _ in range(3):
        watch.sample()
    found = scrape(watch)
    assert value(found, "fair_shares_total", result="failed") == 3
    assert value(found, "fair_shares_total", result="done") == 1
    # The previous result remains, and its age grows.
    assert value(found, "role_fair_share", role="ops") == pytest.approx(2 / 3)
    # The policy in force is another one of the same name.
    made = books.ask(lambda: books.allocator.allocate(1000)).result(WAIT_S)
    assert len(made)
    assert not books.ask(lambda: books.allocator.last_cycle.policy_error).result(WAIT_S)


def test_the_more_it_costs_the_longer_it_rests(books):
    watch = FairnessWatch(books, 60.0)
    assert watch.pause_s == 60
    watch.counts.processor_s = 2.0
    assert watch.pause_s == 2.0 / PROCESSOR_PART


def test_a_single_slow_sample_does_not_cause_a_pause(books):
    watch = FairnessWatch(books, 0.001)
    watch.sample()  # it may load loops, or be the first of its kind in this process
    assert watch.counts.processor_s == 0
    watch.sample()
    assert 0 < watch.counts.processor_s <= watch.counts.total_s


def test_a_policy_that_keeps_failing_is_called_less_and_less_often(books, failing):
    watch = FairnessWatch(books, 60.0)
    failing.fails = True
    pauses = []
    for _ in range(8):
        watch.sample()
        watch.counts.processor_s = 0.0
        pauses.append(watch.pause_s)
    assert pauses[:3] == [120, 240, 480]
    assert pauses[-1] == FAILED_PAUSE_MAX_S
    failing.fails = False
    watch.sample()
    watch.counts.processor_s = 0.0
    assert watch.pause_s == 60


def test_a_thread_of_its_own_looks_again_and_again_until_it_is_stopped(books, monkeypatch):
    looked = threading.Semaphore(0)
    watch = FairnessWatch(books, 0.001)
    sample = watch.sample

    def seen() -> None:
        sample()
        looked.release()

    monkeypatch.setattr(watch, "sample", seen)
    watch.start()
    for _ in range(3):
        assert looked.acquire(timeout=WAIT_S)
    assert watch.counts.done > 0
    watch.stop()
    watch._thread.join(WAIT_S)
    assert not watch._thread.is_alive()


def test_nothing_is_computed_if_disabled(books):
    before = threading.active_count()
    watch = FairnessWatch(books, 0)
    watch.start()
    assert threading.active_count() == before
    watch.stop()
