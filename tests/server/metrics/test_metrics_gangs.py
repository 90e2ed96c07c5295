"""Metrics of gangs that collect room, and of those that never fit."""

from allocator.core import SetGang
from allocator.server.reports import report
from allocator.server.views import status_warnings
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
    assert warning.text.startswith("1 gang would not fit even if nothing was held")
    busy.session.allocator.step(SetGang("a", "", 1))
    assert not list(status_warnings._gangs(report.read(busy.session.allocator).gangs))
