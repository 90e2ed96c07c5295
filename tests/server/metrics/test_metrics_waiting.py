"""Metrics of one scrape: quotas, unanswered offers, and waiting frameworks."""

import numpy as np
import pytest

from allocator.core import (
    AddAgent,
    AgentInfo,
    Define,
    Kind,
    Release,
    RemoveFramework,
    SetQuota,
    Suppress,
    Transition,
)
from allocator.server.reports import report
from allocator.server.views import status_warnings
from tests.server.metrics.metering import GIB, crowd, nsdi, scrape
from tests.server.metrics.scraping import Samples, series, value
from tests.world.rows import holdings


def test_offers_that_lie_are_as_old_as_the_oldest():
    allocator = nsdi()
    allocator.step(RemoveFramework(2))
    allocator.allocate(1000)
    allocator.advance(61_500)
    found = scrape(allocator)
    assert value(found, "framework_offer_age_seconds", framework="id-A") == 60.5
    assert value(found, "framework_offered_share", framework="id-A") == pytest.approx(6 / 9)
    assert value(found, "framework_offer_age_seconds", framework="other") == 0
    found = scrape(allocator, frameworks_max=0)
    assert value(found, "framework_offer_age_seconds", framework="other") == 60.5
    allocator.step(Transition(holdings((1, 3, 1, 5000, 10 * GIB), (1, 3, 2, 4000, 8 * GIB))))
    found = scrape(allocator)
    assert value(found, "framework_offer_age_seconds", framework="id-A") == 0
    assert value(found, "framework_offered_share", framework="id-A") == 0


VIP = SetQuota("vip", {"cpus": 13_000, "mem": 22 * GIB}, {})
"""Everything is needed for the guarantee of a role without frameworks, so nothing is offered."""


def kept_by(found: Samples) -> dict[str, float]:
    rows = series(found, "clients_overdue").items()
    return {dict(labels)["kept_by"]: number for labels, number in rows}


def test_overdue_frameworks_are_counted_by_reason():
    allocator = nsdi(patience_cycles=3)
    allocator.step(AddAgent(3, AgentInfo("a3"), {0: 4000, 1: 4 * GIB}))
    allocator.step(VIP)
    for now_ms in (1000, 2000):
        assert not len(allocator.allocate(now_ms))
    assert kept_by(scrape(allocator)) == {"filters": 0, "limit": 0, "nothing": 0}
    allocator.allocate(3000)
    found = scrape(allocator)
    assert kept_by(found) == {"filters": 0, "limit": 0, "nothing": 2}
    assert value(found, "framework_waited_cycles", framework="id-B") == 3
    assert value(found, "framework_waited_cycles", framework="other") == 0
    found = scrape(allocator, frameworks_max=0)
    assert value(found, "framework_waited_cycles", framework="other") == 3
    (warning,) = status_warnings._overdue(report.read(allocator).overdue, patience=3)
    assert warning.text.startswith("2 frameworks got no offer in 3 cycles or more")
    # B uses 6 CPUs: its role has none left.
    allocator.step(SetQuota("ops", {}, {"cpus": 6000}))
    assert kept_by(scrape(allocator)) == {"filters": 0, "limit": 1, "nothing": 1}
    (warning,) = status_warnings._overdue(report.read(allocator).overdue, patience=3)
    assert warning.text.startswith("1 framework got no offer in 3 cycles or more")
    ended = holdings((1, 3, 1, 1000, GIB))
    allocator.step(Release(ended, np.array([60_000]), np.array([True])))
    assert kept_by(scrape(allocator)) == {"filters": 1, "limit": 1, "nothing": 0}
    assert not list(status_warnings._overdue(report.read(allocator).overdue, patience=3))
    allocator.step(Suppress(1))
    allocator.step(Suppress(2))
    assert kept_by(scrape(allocator)) == {"filters": 0, "limit": 0, "nothing": 0}


def test_a_limit_of_a_parent_blocks_roles_below_their_own_limit():
    limits = {"eng": {"cpus": 3000}, "eng/ads": {"cpus": 9000}}
    allocator = nsdi(patience_cycles=1, limits=limits)
    allocator.step(AddAgent(3, AgentInfo("a3"), {0: 4000, 1: 4 * GIB}))
    allocator.step(VIP)
    allocator.allocate(1000)
    assert kept_by(scrape(allocator)) == {"filters": 0, "limit": 1, "nothing": 1}
    found = scrape(allocator)
    assert value(found, "role_quota_limit", role="eng", resource="cpus") == 3
    assert value(found, "role_quota_limit", role="eng/ads", resource="cpus") == 9
    for role in limits:
        assert value(found, "role_quota_consumed", role=role, resource="cpus") == 3
    assert value(found, "role_quota_consumed", role="other", resource="cpus") == 0


def test_without_patience_no_framework_is_overdue():
    allocator = nsdi(patience_cycles=0)
    allocator.step(AddAgent(3, AgentInfo("a3"), {0: 4000, 1: 4 * GIB}))
    allocator.step(VIP)
    allocator.allocate(1000)
    found = scrape(allocator)
    assert kept_by(found) == {"filters": 0, "limit": 0, "nothing": 0}
    assert value(found, "framework_waited_cycles", framework="id-B") == 1


def test_refusals_are_counted_by_role():
    allocator = nsdi()
    ended = holdings((1, 3, 1, 1000, 0), (1, 3, 2, 0, GIB), (2, 2, 2, 1000, 0))
    allocator.step(Release(ended, np.full(3, 60_000), np.ones(3, np.bool_)))
    found = scrape(allocator)
    filters = {role: value(found, "role_filters", role=role) for role in ("eng", "eng/ads", "ops")}
    assert filters == {"eng": 2, "eng/ads": 2, "ops": 1}
    assert value(found, "role_filters", role="other") == 0
    assert value(scrape(allocator, roles_max=0), "role_filters", role="other") == 3


def test_quotas_and_the_headroom_that_they_need():
    allocator = nsdi()
    assert not series(scrape(allocator), "role_quota_limit")
    assert value(scrape(allocator), "headroom_required", resource="cpus") == 0
    allocator.step(SetQuota("ops", {"cpus": 8000, "mem": 3 * GIB}, {"cpus": 8500}))
    allocator.step(SetQuota("eng", {"cpus": 1000}, {}))
    found = scrape(allocator)
    # ops uses 6 CPUs and 2 GB; of 18 GB on all agents 14 are in use, and no CPU is left.
    assert value(found, "role_quota_guarantee", role="ops", resource="cpus", unit="core") == 8
    assert value(found, "role_quota_guarantee", role="ops", resource="mem") == 3 * 2**30
    assert value(found, "role_quota_consumed", role="ops", resource="cpus") == 6
    assert value(found, "role_quota_consumed", role="eng", resource="mem") == 12 * 2**30
    assert list(series(found, "role_quota_limit").values()) == [8.5]
    assert value(found, "headroom_required", resource="cpus") == 2
    assert value(found, "headroom_required", resource="mem") == 2**30
    assert value(found, "headroom_available", resource="cpus") == 0
    assert value(found, "headroom_available", resource="mem", unit="byte") == 4 * 2**30
    allocator.step(SetQuota("ops", {}, {}))
    assert not series(scrape(allocator), "role_quota_consumed", role="ops")


def test_reserved_and_non_scalar_resources_are_no_headroom():
    allocator = nsdi()
    kinds = {
        2: Kind("cpus", reserved_role="ops", depth=1),
        3: Kind("ports", scalar=False),
    }
    allocator.step(Define(kinds, {}))
    allocator.step(AddAgent(3, AgentInfo("a3"), {0: 1000, 2: 500, 3: 4000}))
    allocator.step(SetQuota("ops", {"cpus": 8000}, {}))
    found = scrape(allocator)
    assert value(found, "headroom_available", resource="cpus") == 1
    assert value(found, "headroom_required", resource="cpus") == 1.5
    assert value(found, "role_quota_consumed", role="ops", resource="cpus") == 6.5
    assert not series(found, "headroom_available", resource="ports")
    assert value(found, "capacity", resource="ports") == 4


def test_the_number_of_quotas_with_series_is_bounded_and_nothing_is_lost():
    allocator = crowd(frameworks=30, roles=30)
    for role in ("ghost", "other", *(f"role{number}" for number in range(30))):
        allocator.step(SetQuota(role, {"cpus": 1000}, {"cpus": 2000}))
    found = scrape(allocator, roles_max=5)
    held = sum(range(31)) / 1000
    for name, total in (("guarantee", 32), ("consumed", held)):
        rows = series(found, f"role_quota_{name}", resource="cpus")
        assert len(rows) == 6
        assert sum(rows.values()) == pytest.approx(total)
    # Limits of several roles are not additive.
    assert len(series(found, "role_quota_limit")) == 5
    everything = scrape(allocator, roles_max=100)
    assert value(everything, "role_quota_guarantee", role="ghost", resource="cpus") == 1
    assert value(everything, "role_quota_consumed", role="ghost", resource="cpus") == 0
    assert value(everything, "role_quota_guarantee", role="other", resource="cpus") == 1
