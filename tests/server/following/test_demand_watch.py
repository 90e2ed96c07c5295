"""Unmet demand and results of forecasts, as metrics show them."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from allocator.core import (
    DEMAND_LABEL,
    GANG_LABEL,
    Allocator,
    RemoveFramework,
    Suppress,
    UpdateFramework,
)
from allocator.explain import Corrections
from allocator.explain.calibration import SIZES
from allocator.server.following.books import FollowedBooks
from allocator.server.following.demand_watch import CLIENTS, DemandWatch
from allocator.server.metrics.demand_families import demand_parts
from allocator.server.metrics.family import Parts
from allocator.wire import SessionCounts
from tests.core.cycle.test_backfilling import Cluster
from tests.core.session import Session
from tests.explain.lives import DRF, Life
from tests.server.metrics.scraping import Samples, samples, series, value
from tests.tiers import long


class Books:
    """Books that answer at once."""

    def __init__(self, allocator: Allocator) -> None:
        self.allocator = allocator
        self.counts = SessionCounts(sessions_opened=1)

    def ask(self, work: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(work())
        return future

    def read(self, work: Callable[[], Any], within_s: float) -> Any:
        return self.ask(work).result(within_s)


def watching(books: Books) -> DemandWatch:
    return DemandWatch(cast("FollowedBooks", books))


def scrape(watch: DemandWatch, roles_max: int = 100) -> Samples:
    registry = CollectorRegistry()
    registry.register(Parts([partial(demand_parts, watch, roles_max)]))
    return samples(generate_latest(registry).decode())


def results(watch: DemandWatch) -> dict[str, int]:
    found = series(scrape(watch), "offer_forecasts_total")
    return {dict(labels)["result"]: int(count) for labels, count in found.items()}


def full(frameworks: int = 1, cpus: int = 4) -> Cluster:
    """Two agents in use until 97 s to 129 s, and frameworks that wait."""
    cluster = Cluster()
    for framework in range(5, 5 + frameworks):
        labels = {DEMAND_LABEL: f"cpus:{cpus};mem:{cpus}"}
        cluster.session.framework(framework, 1, name="x", labels=labels)
    cluster.until(10)
    return cluster


def test_unmet_demand_by_role_and_agents_by_shape():
    session = full().session
    gang = {DEMAND_LABEL: "cpus:2;mem:2", GANG_LABEL: "tasks:5"}
    session.framework(9, 2, name="y", labels=gang)
    watch = watching(Books(session.allocator))
    assert not series(scrape(watch), "unmet"), "nothing is known yet"
    watch.sample()
    found = scrape(watch)
    assert value(found, "unmet", role="a", resource="cpus", unit="core") == 4
    assert value(found, "unmet", role="b", resource="mem", unit="byte") == 10 * 2**20
    assert value(found, "unmet", role="other", resource="cpus") == 0
    assert value(found, "agents_missing", shape="cpus:4;mem:4") == 4
    few = scrape(watch, roles_max=1)
    assert value(few, "unmet", role="b", resource="cpus") == 10
    assert value(few, "unmet", role="other", resource="cpus") == 4


@pytest.mark.parametrize(
    ("end_s", "result"), [(60, "early"), (108, "held"), (140, "late"), (None, "late")]
)
def test_results_of_forecasts_are_counted(end_s, result):
    cluster = full()
    watch = watching(Books(cluster.session.allocator))
    watch.sample()
    while cluster.now_s < 150 and not sum(results(watch).values()):
        if cluster.now_s == end_s:
            cluster.end(1, 1, 4)
        cluster.cycle()
        watch.settle()
    expected = dict.fromkeys(("early", "held", "late", "withdrawn"), 0) | {result: 1}
    assert results(watch) == expected
    watch.settle()
    assert results(watch) == expected, "it counts once"


@pytest.mark.parametrize("gone", [Suppress(5), RemoveFramework(5)])
def test_forecasts_of_who_wants_no_offers_any_more_are_withdrawn(gone):
    cluster = full()
    watch = watching(Books(cluster.session.allocator))
    watch.sample()
    cluster.session.allocator.step(gone)
    watch.settle()
    assert results(watch)["withdrawn"] == 1


def test_a_new_session_withdraws_forecasts():
    cluster = full()
    books = Books(cluster.session.allocator)
    watch = watching(books)
    watch.sample()
    books.counts.sessions_opened += 1
    watch.settle()
    assert results(watch)["withdrawn"] == 1


def test_clients_are_forecast_one_after_the_other():
    cluster = full(frameworks=2 * CLIENTS, cpus=1)
    watch = watching(Books(cluster.session.allocator))
    for _ in range(3):  # the third time finds none without a forecast
        watch.sample()
    for framework in range(5, 5 + 2 * CLIENTS):
        cluster.session.allocator.step(Suppress(framework))
    watch.settle()
    assert results(watch)["withdrawn"] == 2 * CLIENTS


def test_each_principal_has_its_share_of_the_forecasts():
    """One has five frameworks that wait, three others have one each."""
    cluster = full(frameworks=0)
    for framework in range(5, 13):
        principal = "many" if framework < 10 else f"p{framework}"
        info: dict[str, Any] = {"labels": _demand(1), "principal": principal}
        cluster.session.framework(framework, 1, name="x", **info)
    cluster.until(10)
    rows = [cluster.session.state.clients.row(framework, 1) for framework in range(5, 13)]
    watch = watching(Books(cluster.session.allocator))
    watch.sample()
    assert [each.row for each in watch.calibration.everyone()] == [rows[0], *rows[5:]]
    watch.sample()
    assert {each.row for each in watch.calibration.everyone()} == {*rows}


@pytest.mark.long
def test_a_principal_that_changes_its_demands_does_not_affect_others():
    """After each of its forecasts it needs less, so its offers come at once."""
    life = Life(DRF, 3)
    session = life.session
    session.framework(50, 1, name="h", principal="hostile", labels=_demand(3))
    life.role[50], life.cpus[50], life.mean_s[50] = 1, 1, 5
    watch = watching(Books(session.allocator))
    for number in range(300):
        life.cycle()
        watch.settle()
        if number >= 80 and number % 5 == 0:
            watch.sample()
            _change(session, _demand(1))
        elif number % 5 == 4:
            _change(session, _demand(3))
    known = watch.calibration.corrections(life.now_ms).known
    assert len(known["hostile"]) >= 20
    alone = Corrections({"": known[""]})
    for size in range(SIZES):
        assert watch.calibration.corrections(life.now_ms).of("", size) == alone.of("", size)


def _demand(cpus: int) -> dict[str, str]:
    return {DEMAND_LABEL: f"cpus:{cpus};mem:{cpus}"}


def _change(session: Session, labels: dict[str, str]) -> None:
    info = session.state.frameworks.info[50]
    assert info is not None
    session.allocator.step(UpdateFramework(50, replace(info, labels=labels), (1,)))


def test_books_that_are_far_behind_are_left_alone(monkeypatch):
    monkeypatch.setattr("allocator.server.following.demand_watch.ANSWER_S", 0.01)

    class Busy(Books):
        def ask(self, work: Callable[[], Any]) -> Future[Any]:
            del work
            return Future()

    watch = watching(Busy(full().session.allocator))
    with pytest.raises(TimeoutError):
        watch.sample()
    assert watch.latest is None


def test_forecasts_of_a_random_life_are_counted():
    life = Life(DRF, 3)
    watch = watching(Books(life.session.allocator))
    for number in range(150):
        life.cycle()
        watch.settle()
        if number >= 80 and number % 5 == 0:
            watch.sample()
    found = results(watch)
    assert found["early"] + found["held"] > 8 * found["late"]


@pytest.mark.parametrize("roles", long(1000))
def test_a_crowd_has_few_series(roles):
    session = Session(DRF, {number: f"r{number}" for number in range(1, roles + 1)})
    for agent in (1, 2):
        session.agent(agent, 4, 4)
    for framework in range(1, 20 * roles + 1):
        labels = {DEMAND_LABEL: f"cpus:{framework % 500 / 100};mem:1"}
        session.framework(framework, 1 + framework % roles, labels=labels)
    watch = watching(Books(session.allocator))
    watch.sample()
    found = scrape(watch, roles_max=20)
    assert len(series(found, "unmet")) == 2 * 21
    assert len(series(found, "agents_missing")) == 1
