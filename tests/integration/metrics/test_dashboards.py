"""The Grafana dashboards are generated, complete, and query existing metrics only."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from allocator.core import AddFramework, FrameworkInfo, Release, SetQuota
from allocator.server.metrics.scraping import FAMILIES
from allocator.v1 import session_pb2
from tests.integration.metrics.scraped import DEPLOY
from tests.server.metrics.scraping import samples
from tests.world.rows import holdings_of

GRAFANA = DEPLOY.parent / "grafana"
BOARDS = sorted((GRAFANA / "dashboards").glob("*.json"))


def panels(board: Path) -> Iterator[dict]:
    """List the panels of a dashboard, without rows."""
    for panel in json.loads(board.read_text())["panels"]:
        if panel["type"] != "row":
            yield panel


def expressions(board: Path) -> list[str]:
    return [target["expr"] for panel in panels(board) for target in panel["targets"]]


def test_generated_dashboards_are_up_to_date(tmp_path):
    command = [sys.executable, str(GRAFANA / "generate.py"), str(tmp_path)]
    subprocess.run(command, check=True, timeout=60)
    written = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert written == {board.name: board.read_text() for board in BOARDS}
    assert len(written) >= 5


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.stem)
def test_a_panel_says_what_to_make_of_it(board):
    titles = [panel["title"] for panel in panels(board)]
    assert len(titles) == len(set(titles))
    assert all(len(panel["description"]) > 20 for panel in panels(board))


SOMETIMES = {
    "mesos_allocator_reclaim_seconds",
    "mesos_allocator_role_used_share",
    "mesos_allocator_budget_used_hours",
    "mesos_allocator_budget_hours",
    "mesos_allocator_budget_runs_out_seconds",
    "mesos_allocator_plan_age_seconds",
    "mesos_allocator_usage_resource_seconds_total",  # after 15 s
    "mesos_allocator_usage_cluster_resource_seconds_total",
}
"""Metrics with series only under some settings, or while a plan asks a framework to leave."""


def test_every_panel_asks_for_series_that_a_real_prometheus_has(sidecar, query):
    known = FrameworkInfo("id-9", name="app 9", labels={"allocator.demand": "cpus:1"})
    sidecar.module.batch(AddFramework(9, known, (1,)))
    sidecar.module.batch(
        SetQuota("eng", {"cpus": 1000, "mem": 1_024_000}, {"cpus": 8000, "mem": 8_192_000})
    )
    decisions = sidecar.offer(session_pb2.OUTCOME_REASON_OFFERED)
    held = holdings_of(decisions)
    whole = [5000] * len(decisions), [False] * len(decisions)
    sidecar.module.batch(Release(held, *map(np.array, whole)))
    exported = {f"mesos_allocator_{name}" for name, _ in samples(sidecar.text())}
    while not query('mesos_allocator_role_quota_guarantee{role="eng"}'):
        time.sleep(0.2)  # until the next scrape
    instance = sidecar.process.http
    for board in BOARDS:
        for expression in expressions(board):
            named = set(re.findall(r"\bmesos_allocator_\w+", expression))
            assert named - SOMETIMES <= exported, (board.name, expression)
            asked = (
                expression.replace("$instance", instance)
                .replace("$role", "eng")
                .replace("$__rate_interval", "1m")
            )
            if "rate(" in asked or "topk(" in asked or named & SOMETIMES:
                query(asked)
                continue
            # After a scrape that failed, on a busy machine, there is nothing until the next one.
            until_s = time.monotonic() + 60
            while not (found := query(asked)) and time.monotonic() < until_s:
                time.sleep(0.2)
            assert found, (board.name, asked)


def test_dashboards_show_those_that_lead_and_lead_to_each_other(sidecar, query):
    for board in BOARDS:
        found = json.loads(board.read_text())
        variables = {each["name"]: each for each in found["templating"]["list"]}
        instance = variables["instance"]
        assert instance["includeAll"], board
        asked = re.fullmatch(r"query_result\((.+)\)", instance["query"])
        assert asked, board
        (led,) = query(asked[1].replace("$__range", "1m"))
        assert led["metric"]["instance"] == sidecar.process.http, board
        for expression in expressions(board):
            assert 'instance="' not in expression
            assert 'instance=~"$instance"' in expression
        (link,) = found["links"]
        assert (link["type"], link["keepTime"], link["includeVars"]) == ("dashboards", True, True)
        assert set(link["tags"]) <= set(found["tags"]), board


HISTOGRAM = ("_bucket", "_count", "_sum")


def test_every_metric_is_shown_by_a_panel_or_watched_by_an_alert():
    texts = [*(board.read_text() for board in BOARDS), (DEPLOY / "alerts.yaml").read_text()]
    shown = set(re.findall(r"\bmesos_allocator_\w+", "".join(texts)))
    for family in FAMILIES:
        if family.kind == "histogram":
            assert shown & {f"{family.full_name}{ending}" for ending in HISTOGRAM}
        elif family.kind != "info":  # informative only, and not on a dashboard
            assert family.full_name in shown


def test_the_table_has_what_a_scrape_has(sidecar):
    sidecar.offer(session_pb2.OUTCOME_REASON_OFFERED)
    found = re.findall(r"^# TYPE (mesos_allocator_\w+)", sidecar.text(), re.MULTILINE)
    declared = [each.full_name for each in FAMILIES]
    assert len(declared) == len(set(declared))
    assert found == [name for name in declared if name in found]
    # Fair shares may not be computed yet.
    absent = {name.removeprefix("mesos_allocator_") for name in declared if name not in found}
    assert all(name.startswith(("fair", "role_")) for name in absent)
    assert {"role_held", "fair_shares_total"}.isdisjoint(absent)
