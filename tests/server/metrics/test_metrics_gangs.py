"""Metrics of gangs that collect room, and of those that never fit."""

from allocator.core import DEMAND_LABEL, GANG_LABEL, PolicySpec, SetGang
from allocator.server.reports import report
from allocator.server.views import status_warnings
from tests.core.cycle.test_backfilling import LONG, SHORT, Cluster
from tests.core.cycle.test_collecting import PATIENCE, Busy, gang
from tests.server.metrics.metering import scrape
from tests.server.metrics.scraping import value


def test_gangs_that_collect_and_what_is_kept_for_them():
    busy = Busy()
    allocator = busy.session.allocator
    busy.session.framework(2, 1, labels=gang(4))
    busy.churn(PATIENCE)
    busy.end(1, 3)
    busy.cycle()
    found = scrape(allocator)
    assert value(found, "gangs", state="collecting") == 1
    assert value(found, "gangs", state="too_large") == 0
    assert value(found, "gangs_kept", resource="cpus", unit="core") == 3
    # It is its turn, so it counts as collecting alone.
    assert value(found, "clients_overdue", kept_by="nothing") == 0


def test_whole_agents_count_as_kept_in_oblivious_mode():
    busy = Busy(PolicySpec("drf", mode="oblivious"))
    busy.session.framework(2, 1, labels=gang(3, cpus=3))
    busy.churn(PATIENCE)
    busy.end(1, 4)
    busy.cycle()
    assert value(scrape(busy.session.allocator), "gangs_kept", resource="cpus", unit="core") == 4


def test_tiny_tasks_count_in_lots():
    busy = Busy(size=2**15)
    labels = {DEMAND_LABEL: "cpus:0.001;mem:1", GANG_LABEL: "tasks:90000"}
    busy.session.framework(2, 1, labels=labels)
    for _ in range(PATIENCE + 1):
        busy.end(1)
        busy.cycle()
    (its,) = busy.session.state.clients.collecting.values()
    assert sum(its.tasks) == 45_000, "they are lots of two"
    found = scrape(busy.session.allocator)
    free = busy.session.state.free[1].tolist()
    assert value(found, "gangs_kept", resource="mem", unit="byte") == free[1] / 1000 * 2**20


def test_backfill_and_the_error_of_forecasts():
    cluster = Cluster()
    cluster.gang_waits()
    cluster.cycle()
    allocator = cluster.session.allocator
    assert value(scrape(allocator), "gang_backfills_total") == 1
    assert value(scrape(allocator), "gangs_kept", resource="cpus", unit="core") == 0
    assert value(scrape(allocator), "durations_remembered", known="yes") == 2
    cluster.session.use(cluster.offers[0])
    allocator.advance(110_000)
    cluster.now_s = 110
    cluster.end(LONG, 2, 4)
    cluster.end(SHORT, 1, 4)
    cluster.cycle()
    found = scrape(allocator)
    assert value(found, "gang_forecasts_total", result="held") == 1
    assert value(found, "gang_forecasts_total", result="late") == 0
    assert value(found, "gang_start_error_seconds_total", side="late") == 14
    assert value(found, "gang_start_error_seconds_total", side="early") == 0


def test_gangs_that_never_fit():
    busy = Busy()
    busy.session.framework(2, 1, labels=gang(7))
    busy.churn(PATIENCE + 1)
    found = scrape(busy.session.allocator)
    assert value(found, "gangs", state="collecting") == 0
    assert value(found, "gangs", state="too_large") == 1
    assert value(found, "gangs_kept", resource="cpus", unit="core") == 0
    (warning,) = status_warnings._gangs(report.read(busy.session.allocator).gangs)
    assert warning.what == "gang too large"
    assert warning.text.startswith("1 gang would not fit even on an empty cluster")
    busy.session.allocator.step(SetGang("a", "", 1))
    assert not list(status_warnings._gangs(report.read(busy.session.allocator).gangs))
