"""Where usage is stored, how it is queried, and the effects of its failures."""

import sqlite3
import time
from collections import Counter
from typing import Any

import grpc
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from allocator.core import Hold
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.following.usage import Totals, UsageKeeper
from allocator.server.following.usage_store import NAME, UsageError, UsageStore
from allocator.server.metrics.family import Parts
from allocator.server.metrics.usage_families import UsageSeries
from allocator.usage.account import DAYS_KEPT, HOURS_KEPT, Account, Closed
from allocator.usage.buckets import DAY_MS, HOUR_MS, Bucket, Part
from allocator.v1 import admin_pb2 as pb
from allocator.v1.admin_pb2_grpc import AdminServiceStub
from tests.server.in_process import InProcess, observed
from tests.server.metrics.scraping import samples
from tests.wire.dialogue import holding

NOON_MS = 1_835_308_800_000 + 12 * HOUR_MS


def bucket(amount: int) -> Bucket:
    made = Bucket(span_ms=HOUR_MS)
    made.parts["cpus", Part.USED] = amount
    made.held["role"][made.place("role", "eng"), "cpus", Part.USED] = amount
    return made


def test_old_usage_is_forgotten(tmp_path):
    store = UsageStore(tmp_path / NAME)
    hours = [Closed(HOUR_MS, number * HOUR_MS, bucket(number)) for number in range(1000)]
    days = [Closed(DAY_MS, number * DAY_MS, bucket(number)) for number in range(1000)]
    for first in range(0, 1000, 50):
        store.write(hours[first : first + 50] + days[first : first + 50], {})
    read = list(store.read(HOUR_MS, 0, 10**15))
    assert [begin_ms // HOUR_MS for begin_ms, _ in read] == list(range(1000 - HOURS_KEPT, 1000))
    assert [each.parts["cpus", Part.USED] for _, each in read] == list(
        range(1000 - HOURS_KEPT, 1000)
    )
    assert len(list(store.read(DAY_MS, 0, 10**15))) == DAYS_KEPT
    store.close()
    assert len(list(UsageStore(tmp_path / NAME).read(HOUR_MS, 0, 10**15))) == HOURS_KEPT


def test_a_write_is_done_whole_or_not_at_all(tmp_path):
    store = UsageStore(tmp_path / NAME)
    store.write([Closed(HOUR_MS, 0, bucket(1))], {"state": b"before"})

    class Broken(Bucket):
        def to_bytes(self) -> bytes:
            raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        store.write([Closed(HOUR_MS, HOUR_MS, bucket(2)), Closed(HOUR_MS, 0, Broken())], {})
    again = UsageStore(tmp_path / NAME)
    assert [begin_ms for begin_ms, _ in again.read(HOUR_MS, 0, 10**15)] == [0]
    assert again.rest() == {"state": b"before"}


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.write_bytes(b"no database" * 999), "file is not a database"),
        (lambda path: path.write_bytes(path.read_bytes()[:5000]), "malformed|broken"),
        (lambda path: _set_version(path, 2), "it has version 2; 1 can be read"),
        (lambda path: _set_version(path, 0), "it has version 0; 1 can be read"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path, spoil, said):
    path = tmp_path / NAME
    store = UsageStore(path)
    store.write([Closed(HOUR_MS, n * HOUR_MS, bucket(n)) for n in range(500)], {})
    store.close()
    spoil(path)
    with pytest.raises(UsageError, match=said):
        UsageStore(path)


def _set_version(path, version: int) -> None:
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA user_version = {version}")
    database.close()


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").touch()
    (tmp_path / NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        UsageStore(tmp_path / NAME)


def usage(stub: AdminServiceStub, **fields: Any) -> pb.GetUsageResponse:
    return stub.GetUsage(pb.GetUsageRequest(**fields), timeout=60)


def cpus(response: pb.GetUsageResponse) -> dict[str, float]:
    """CPU hours."""
    (span,) = response.spans
    (found,) = (each for each in span.cluster if each.resource == "cpus")
    return {"used": float(found.used_seconds) / 3600, "idle": float(found.idle_seconds) / 3600}


def in_session(loop: CoreLoop, stub: AdminServiceStub) -> InProcess:
    """A module of a cluster of 6 CPUs, of which 4 are used; the account has started."""
    module = InProcess(loop)
    module.clock_ms = NOON_MS
    module.begin()
    module.batch(NOON_MS, Hold(holding(1, 1, 1, cpus=4000)), cycle=False)
    while not usage(stub).spans:  # pytest-timeout bounds it
        time.sleep(0.01)
    return module


def test_usage_is_answered_and_reset_over_the_channel(loop, stub):
    module = in_session(loop, stub)
    module.batch(NOON_MS + HOUR_MS, cycle=False)
    assert cpus(usage(stub)) == {"used": 4.0, "idle": 2.0}
    (span,) = usage(stub, by="framework", daily=True).spans
    assert [row.name for row in span.names] == ["spark"]
    stub.ResetUsage(pb.ResetUsageRequest(), timeout=60)
    assert cpus(usage(stub)) == {"used": 0.0, "idle": 0.0}
    module.batch(NOON_MS + 2 * HOUR_MS, cycle=False)
    assert cpus(usage(stub)) == {"used": 4.0, "idle": 2.0}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"by": "user"}, "by = 'user': choose from role, framework, principal"),
        ({"since_ms": -1}, "since_ms = -1: must be at least 0"),
    ],
)
def test_a_wrong_question_is_refused(stub, fields, said):
    with pytest.raises(grpc.RpcError) as refused:
        usage(stub, **fields)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert refused.value.details() == said


def test_a_defect_of_the_account_costs_no_books(loop, monkeypatch):
    with observed(loop) as views:
        module = InProcess(loop).begin()
        monkeypatch.setattr(Account, "follow", lambda *_: 1 // 0)
        module.batch(2000)
        after = loop.feed.position
        assert (
            views.books.ask(lambda: len(views.books.allocator.state.agents), after).result(60) == 2
        )
        assert not views.books.lag.restarts


def test_an_unusable_directory_is_reported(loop, tmp_path):
    (tmp_path / NAME).mkdir()
    with observed(loop) as views:
        keeper = UsageKeeper(views.books, lambda: str(tmp_path))
        views.books.ask(lambda: setattr(views.books, "account", None)).result(60)
        keeper.start()
        while not keeper.problem:
            time.sleep(0.01)
        assert f"{tmp_path / NAME} cannot be used" in keeper.problem
        assert keeper.answer(pb.GetUsageRequest()).problem == keeper.problem
        keeper.stop(60)


class Counted:
    """A keeper with these totals."""

    def __init__(self, totals: Totals | None) -> None:
        self.totals = totals


def scraped(series: UsageSeries) -> dict:
    registry = CollectorRegistry()
    registry.register(Parts([series.parts]))
    return samples(generate_latest(registry).decode())


def test_counters_of_a_bounded_number_of_roles_only_grow():
    """A role keeps its series, however small it becomes relative to others."""
    keeper: Any = Counted(None)
    series = UsageSeries(keeper, roles_max=2)
    assert not [name for name, _ in scraped(series) if "usage" in name]

    def role(name: str, seconds: int) -> tuple[tuple[str, str, Part], int]:
        return (name, "mem", Part.USED), seconds * 1_000_000

    keeper.totals = Totals(
        Counter({("cpus", Part.IDLE): 1_500_000}), Counter(dict([role("b", 5), role("\n", 2)]))
    )
    first = scraped(series)
    keeper.totals = Totals(Counter(), Counter(dict([role("b", 5), role("a", 9), role("0", 90)])))
    second = scraped(series)
    mib = 2**20
    named = "usage_resource_seconds_total"
    found = {
        dict(labels)["role"]: number for (name, labels), number in second.items() if name == named
    }
    assert found == {"b": 5 * mib, "0": 90 * mib, "other": 9 * mib}
    assert {
        dict(labels)["role"]: number for (name, labels), number in first.items() if name == named
    } == {"b": 5 * mib, "other": 2 * mib}
    cluster = {
        dict(labels)["state"]: number
        for (name, labels), number in first.items()
        if name == "usage_cluster_resource_seconds_total"
    }
    assert cluster == {"idle": 1.5}
