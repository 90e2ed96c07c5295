"""Optional sections of the status page, and the usage page."""

import re

import numpy as np
import pytest

from allocator.core import Hold, Options, PolicySpec, SetBudget, SetDrain, SetShadow
from allocator.server.views.drains import drain_of
from allocator.server.web.page import drained, tables, usage
from allocator.usage.buckets import DAY_MS
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2
from tests.integration.sessions.two_frameworks import CLUSTER
from tests.integration.web.page_cluster import state
from tests.server.in_process import tell_books
from tests.server.web.test_page import always_fresh, loop, page, server, views
from tests.world.rows import holdings

__all__ = ["always_fresh", "loop", "server", "views"]  # fixtures


def text_of(page_text: str, section: str) -> str:
    """The words of a section, without elements."""
    return words_between(page_text, f'<section id="{section}">', "</section>")


def words_between(page_text: str, begin: str, end: str) -> str:
    inside = page_text.partition(begin)[2].partition(end)[0]
    return " ".join(re.sub(r"<[^>]*>", " ", inside).split())


def test_sections_without_content_are_omitted(loop, server):
    tell_books(loop, *state(12))
    shown = page(server, "/")
    assert 'id="drained"' not in shown
    assert 'id="shadow"' not in shown
    assert 'id="budgets"' not in shown


def test_a_drained_agent_is_shown_with_who_still_holds_something(loop, server):
    """Agent 5 of the cluster is empty; on agent 10 two frameworks hold a quarter of the CPUs."""
    tell_books(loop, *state(12))
    agents = loop.ask(lambda: loop.allocator).result(60).state.agents
    eighth = int(agents.capacity[0, 10] // 8)
    tell_books(loop, Hold(holdings((1, 2, 10, eighth, 0), (3, 4, 10, eighth, 0))))
    tell_books(loop, SetDrain("rack00-node-5"), SetDrain("agent-10"))
    found = loop.ask(lambda: drained.take(loop.allocator)).result(60)
    assert [(each.name, each.frameworks, each.used) for each in found.rows] == [
        ("rack00-node-10", 2, pytest.approx(0.25)),
        ("rack00-node-5", 0, 0.0),
    ]
    assert (found.more, found.empty) == (0, 1)
    shown = text_of(page(server, "/"), "drained")
    assert "rack00-node-10 25.0 % 2" in shown
    assert "rack00-node-5 nothing" in shown
    assert "1 of 2 is empty and can be removed" in shown


def test_many_drained_agents_are_a_table_of_bounded_size(loop, server):
    tell_books(loop, *state(60), *(SetDrain(f"agent-{number}") for number in range(1, 41)))
    found = loop.ask(lambda: drained.take(loop.allocator)).result(60)
    assert (len(found.rows), found.more) == (drained.SHOWN_MAX, 40 - drained.SHOWN_MAX)
    assert [each.used for each in found.rows] == sorted((r.used for r in found.rows), reverse=True)
    assert "15 more are not shown" in text_of(page(server, "/"), "drained")


def test_drains_are_found_by_host_and_by_id():
    names = ("host", "id-1")
    late = settings_pb2.Setting(key="drain", scope="agent host", set_at_ms=9)
    early = settings_pb2.Setting(key="drain", scope="agent id-1", set_at_ms=5)
    others = [
        settings_pb2.Setting(key="drain", scope="agent id-11"),
        settings_pb2.Setting(key="limit", scope="agent host"),
    ]
    assert drain_of(names, [late, *others, early]) is early
    assert drain_of(names, others) is None


def test_the_shadow_policy_is_shown_beside_the_one_in_force(loop, server):
    tell_books(loop, *state(12), SetShadow(PolicySpec("ps-dsf", mode="oblivious")))
    assert "by ps-dsf" in text_of(page(server, "/"), "shadow")  # before any cycle, too
    for now_ms in (1000, 2000):
        loop.ask(lambda now_ms=now_ms: loop.allocator.allocate(now_ms)).result(60)
        loop.ask(lambda: loop.shadow.after_answers(loop.allocator)).result(60)
        assert loop.shadow.settle(60)
    tally = loop.shadow.totals()
    spec, counts = tally.spec, tally.counts
    assert spec is not None
    assert counts.compared >= 1
    shown = text_of(page(server, "/"), "shadow")
    assert shown.startswith("Shadow policy: ps-dsf oblivious")
    assert f"{counts.compared} cycles compared" in shown
    both = counts.offers_of_both
    assert f"both {both}" in shown
    for role in ("eng", "eng/ads", "science"):
        assert f" {role} " in shown


def test_roles_that_differ_most_come_first_and_few_are_shown():
    found = pb.GetShadowResponse()
    for number in range(30):
        found.roles.add(role=f"r{number:02}", offered=1.0, offered_by_shadow=1.0 + number % 7)
    rows = tables.apart(found)
    assert len(rows) == tables.COMPARED_MAX
    apart = [abs(row.offered - row.offered_by_shadow) for row in rows]
    assert apart == sorted(apart, reverse=True)
    assert np.max(apart) == 6
    assert [row.role for row in rows[:4]] == ["r06", "r13", "r20", "r27"]


def test_budgets_are_shown_with_what_is_left_and_when_they_run_out(loop, server):
    """At noon, eng has held 4 CPUs for two hours, and ops one, which had a CPU hour."""
    noon_ms = 20_000 * DAY_MS + DAY_MS // 2
    begun_ms = noon_ms - DAY_MS // 12
    tell_books(loop, Options(), *CLUSTER)
    loop.ask(lambda: loop.allocator.advance(begun_ms)).result(60)
    tell_books(loop, SetBudget("eng", {"cpus": 20_000}, "day"))
    tell_books(loop, SetBudget("ops", {"cpus": 1000}, "day", hard=True))
    tell_books(loop, Hold(holdings((1, 1, 1, 4000, 0), (2, 2, 2, 1000, 0))))
    for now_ms in (begun_ms + DAY_MS // 24, noon_ms):
        loop.ask(lambda now_ms=now_ms: loop.allocator.advance(now_ms)).result(60)
    for role, words in (
        ("eng", "eng day cpus 8 h cpus 20 h cpus 12 h 3.0 h 12.0 h"),
        ("ops", "ops day, hard cpus 2 h cpus 1 h cpus 0 h used up 12.0 h"),
    ):
        explained = page(server, f"/explain?kind=role&name={role}")
        assert words_between(explained, 'aria-label="Budgets">', "</table>").endswith(words)
    both = text_of(page(server, "/"), "budgets")
    without_clock = "eng day cpus 8 h cpus 20 h cpus 12 h ops day, hard cpus 2 h cpus 1 h cpus 0 h"
    assert both.endswith(f"{without_clock} used up"), "no master has a session"


def test_the_usage_page_has_a_bar_for_each_day():
    """The bar of the day with the largest capacity has the full width."""

    def span(day: int, capacity_h: int, used_h: int) -> pb.UsageSpan:
        found = pb.UsageSpan(begin_ms=day * DAY_MS, end_ms=(day + 1) * DAY_MS)
        idle_s, used_s = 3600 * (capacity_h - used_h), 3600 * used_h
        found.cluster.add(resource="cpus", used_seconds=f"{used_s}", idle_seconds=f"{idle_s}")
        row = found.names.add(name="eng")
        row.resources.add(resource="cpus", used_seconds=f"{used_s}")
        return found

    daily = pb.GetUsageResponse(spans=[span(20_000, 100, 25), span(20_001, 200, 50)])
    found = usage.draw(daily, pb.GetUsageResponse(spans=[span(20_000, 300, 75)]), "")
    assert [(row.name, row.used.hours, row.used.part, row.idle.part) for row in found.days] == [
        ("2024-10-04", 25, 0.125, 0.375),
        ("2024-10-05", 50, 0.25, 0.75),
    ]
    assert [(row.name, row.used.hours, row.used.part) for row in found.names] == [("eng", 75, 0.25)]
