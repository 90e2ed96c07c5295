"""A real sidecar in session, scraped over HTTP, checked by promtool's rules and by Prometheus."""

import re
import subprocess
import time
from contextlib import suppress
from http.client import HTTPException
from itertools import dropwhile
from typing import Any

import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from allocator.core import (
    DEMAND_LABEL,
    AddFramework,
    FrameworkInfo,
    Release,
    RemoveFramework,
    Suppress,
    Transition,
)
from allocator.v1 import session_pb2
from tests.docs.test_pages import anchors
from tests.integration.metrics.scraped import CLUSTER, DEPLOY
from tests.server.metrics.scraping import series, value
from tests.server.sidecar_process import GrpcModule, SidecarProcess, await_true
from tests.world.rows import holdings_of

ROOT = DEPLOY.parents[1]


def test_a_scrape_follows_the_session(sidecar):
    before = sidecar.samples()
    assert value(before, "in_session") == 1
    assert value(before, "agents", state="active") == 2
    assert value(before, "capacity", resource="mem", unit="byte") == 16_384 * 2**20
    assert value(before, "role_weight", role="eng") == 2
    decisions = sidecar.offer(session_pb2.OUTCOME_REASON_OFFERED)
    offered = sidecar.samples()
    assert value(offered, "offered", resource="cpus") == 8
    assert value(offered, "utilisation_ratio", resource="cpus") == 1

    sidecar.module.batch(Transition(holdings_of(decisions)))
    used = sidecar.samples()
    assert value(used, "offered", resource="cpus") == 0
    assert value(used, "held", resource="cpus") == 8

    back = Release(
        holdings_of(decisions), np.full(len(decisions), 5000), np.ones(len(decisions), np.bool_)
    )
    sidecar.module.batch(back)
    free = sidecar.samples()
    assert value(free, "held", resource="cpus") == 0
    assert value(free, "filters") == len(decisions)

    def grown(name: str, **labels: str) -> float:
        return value(free, name, **labels) - value(before, name, **labels)

    assert grown("cycles_total") == 1
    # Cycle times are sent four times a second.
    timed = "cycle_duration_seconds_count"
    await_true(lambda: value(sidecar.samples(), timed) == value(before, timed) + 1)
    assert grown("decisions_total") == grown("outcomes_total", reason="offered") == len(decisions)
    assert grown("batches_total") == 4
    assert grown("events_total", type="release") == 1


def test_errors_and_sessions_are_counted_by_code(sidecar):
    before = sidecar.samples()
    intruder = GrpcModule(sidecar.channel, instance="older", started_us=0)
    intruder.say(intruder.client.hello())
    assert intruder.ends_with().code == session_pb2.ERROR_CODE_SUPERSEDED
    after = sidecar.samples()
    for name, label in (("errors_total", "code"), ("sessions_closed_total", "reason")):
        wanted = {label: "superseded"}
        assert value(after, name, **wanted) == value(before, name, **wanted) + 1
    assert value(after, "in_session") == 1


def test_liveness_readiness_and_shutdown_are_visible():
    with SidecarProcess() as process:
        assert process.page("/healthz") == (200, "ok\n")
        # `/readyz` says whether loops are being compiled or loaded.
        ready = process.page("/readyz")
        assert (ready[0], ready[1].strip().partition(",")[0]) == (200, "ok")
        channel = process.channel()
        module = GrpcModule(channel).begin(CLUSTER)
        # An open call delays the end, so that metrics can be read.
        health: Any = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(health_pb2.HealthCheckRequest())
        next(watch)
        process.process.terminate()
        assert module.ends_with().code == session_pb2.ERROR_CODE_SHUTDOWN
        said = []
        # In the end it no longer listens, or ends in the middle of an answer.
        with suppress(OSError, HTTPException):
            while process.alive:
                said.append(process.page_now("/readyz"))
                if said[-1] != ready:
                    watch.cancel()
        # The observer answers, and learns of the shutdown a moment after the module.
        assert set(dropwhile(lambda each: each == ready, said)) == {(503, "shutting down\n")}
        channel.close()
        assert process.process.wait(60) == 0


def test_unmet_demand_is_reported_everywhere(sidecar):
    """A framework in a full cluster: in metrics, `status`, `explain`, and on its page."""
    decisions = sidecar.offer(session_pb2.OUTCOME_REASON_OFFERED)
    info = FrameworkInfo("id-3", name="late", labels={DEMAND_LABEL: "cpus:4;mem:8192"})
    others = Suppress(1), Suppress(2)
    sidecar.module.batch(Transition(holdings_of(decisions)), *others, AddFramework(3, info, (1,)))
    await_true(lambda: bool(series(sidecar.samples(), "unmet", role="eng")))
    found = sidecar.samples()
    assert value(found, "unmet", role="eng", resource="cpus", unit="core") == 4
    assert value(found, "unmet", role="other", resource="cpus", unit="core") == 0
    assert value(found, "agents_missing", shape="cpus:4;mem:8100") == 1
    told = sidecar.ask("status")["unmet"]
    assert told == (
        "cpus:4;mem:8192, of 1 client; at least these agents are missing: 1 of cpus:4;mem:8100"
    )
    why = "no forecast: the durations of"
    (client,) = sidecar.ask("explain", "framework", "late")["clients"]
    assert client["forecast"].startswith(why)
    assert client["expected_in_ms"] == -1
    assert why in sidecar.text("explain?kind=framework&name=late")
    assert "next offer" in sidecar.command("explain", "framework", "late").stdout


def test_the_names_follow_prometheus_conventions(sidecar, tool):
    sidecar.offer(session_pb2.OUTCOME_REASON_OFFERED)
    done = subprocess.run(
        [tool("promtool"), "check", "metrics"],
        input=sidecar.text(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "rules", "alerts.yaml"],
        ["check", "rules", "scaling.yaml"],
        ["check", "config", "prometheus.yml"],
        ["test", "rules", "alerts_test.yaml"],
    ],
    ids=" ".join,
)
def test_the_alerts_are_valid_and_do_what_their_tests_say(tool, arguments):
    command = [tool("promtool"), *arguments]
    done = subprocess.run(
        command, cwd=DEPLOY, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested_and_asks_for_metrics_that_exist(sidecar):
    rules = (DEPLOY / "alerts.yaml").read_text()
    tests = (DEPLOY / "alerts_test.yaml").read_text()
    alerts = re.findall(r"alert: (\w+)", rules)
    assert len(alerts) == len(set(alerts)) > 0
    tested = re.findall(r'alertname[:=] *"?(\w+)', tests)
    assert set(alerts) == set(tested)
    exported = {f"mesos_allocator_{name}" for name, _ in sidecar.samples()}
    asked = set(re.findall(r"mesos_allocator_\w+", rules + tests))
    assert asked <= exported


def test_every_alert_has_a_chapter_that_says_what_to_do():
    rules = (DEPLOY / "alerts.yaml").read_text()
    alerts = re.findall(r"alert: (\w+)", rules)
    site = re.findall(r'(?m)^site_url: .*"(\S+)"', (ROOT / "mkdocs.yml").read_text())
    links = re.findall(r"runbook_url: (\S+)", rules)
    for alert, link in zip(alerts, links, strict=True):
        place, _, anchor = link.partition("#")
        assert place.startswith(site[0]), "the site that mkdocs.yml names"
        page = ROOT / "docs" / place.removeprefix(site[0]).replace(".html", ".md")
        assert anchor == alert.lower()
        assert anchor in anchors(page)
    page = ROOT / "docs" / "how-to" / "alerts.md"
    chapters = re.split(r"(?m)^## ", page.read_text())[1:]
    assert [chapter.partition("\n")[0] for chapter in chapters] == alerts
    for chapter in chapters:
        assert "\n- Check: " in chapter
        assert "\n- Fix: " in chapter


def test_the_reference_names_exactly_the_metrics_that_exist(sidecar):
    sidecar.module.batch(
        AddFramework(9, FrameworkInfo("id-9", labels={"allocator.demand": "cpus:1"}), (1,))
    )
    families = re.findall(r"(?m)^# TYPE (mesos_allocator_\w+) ", sidecar.text())
    table = (DEPLOY.parents[1] / "docs" / "reference" / "metrics.md").read_text()
    assert re.findall(r"(?m)^\| `(\w+)` ", table) == families


def test_a_prometheus_can_be_asked(sidecar, query):
    sidecar.offer(session_pb2.OUTCOME_REASON_OFFERED)
    expression = (
        'sum(mesos_allocator_framework_held{resource="cpus"})'
        ' / on() mesos_allocator_capacity{resource="cpus"}'
    )
    deadline = time.monotonic() + 60
    while (found := query(expression)) and float(found[0]["value"][1]) != 1:
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    assert found
    assert query('up{job="mesos-allocator"}')[0]["value"][1] == "1"
    dropped = query("scrape_samples_scraped - scrape_samples_post_metric_relabeling")
    assert dropped[0]["value"][1] == "0"
    assert query("count by (framework) (mesos_allocator_framework_dominant_share)")
    sidecar.module.batch(RemoveFramework(1))
    gone = 'mesos_allocator_framework_held{framework="id-1"}'
    while query(gone):
        assert time.monotonic() < deadline
        time.sleep(0.2)
