"""Operators see a framework's ignored input in every command and page."""

import pytest

from allocator.core import CONSTRAINT_LABEL, DEMAND_LABEL, AddFramework, FrameworkInfo
from tests.integration.operators.test_lasting_settings import ask, command
from tests.integration.sessions.two_frameworks import CLUSTER
from tests.server.metrics.scraping import value
from tests.server.sidecar_process import GrpcModule, SidecarProcess

LABELS = {DEMAND_LABEL: "cpus:9e999999", CONSTRAINT_LABEL: "zone<3\x1b[31m"}


@pytest.fixture(scope="module")
def process():
    with SidecarProcess("http.page=all") as running:
        channel = running.channel()
        module = GrpcModule(channel).begin(CLUSTER)
        module.batch(AddFramework(3, FrameworkInfo("id-3", name="odd", labels=LABELS), (1,)))
        yield running
        channel.close()


def test_an_operator_sees_input_that_was_ignored(process):
    rows = ask(process, "explain", "framework", "odd")["set_aside"]
    assert [(each["field"], each["reason"]) for each in rows] == [("labels", "unreadable")] * 2
    assert [label in each["text"] for each, label in zip(rows, LABELS, strict=True)] == [True] * 2
    shown = command(process, "explain", "framework", "odd").stdout
    assert "set aside of" in shown
    assert DEMAND_LABEL in shown
    assert "\x1b" not in shown
    (warning,) = [
        each for each in ask(process, "status")["warnings"] if each["what"] == "words set aside"
    ]
    assert warning["mend"] == "mesos-allocator explain framework odd says what"
    assert value(process.scraped(), "set_aside", reason="unreadable") == 2
    (line,) = process.said("input is set aside")
    assert (line["of"], line["id"], len(line["words"])) == ("framework", "id-3", 2)
    assert "Ignored input" in process.page("/explain?kind=framework&name=odd")[1]


def test_valid_input_is_not_reported(process):
    assert ask(process, "explain", "framework", "kafka")["set_aside"] == []
