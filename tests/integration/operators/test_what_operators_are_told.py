"""Messages to operators: unknown names, the number of affected frameworks, and odd names.

All tests share one sidecar.
"""

import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from allocator.core import DEMAND_LABEL, AddFramework, Define, FrameworkInfo, SetQuota
from tests.integration.operators.test_lasting_settings import ask, command
from tests.integration.sessions.two_frameworks import CLUSTER
from tests.server.forked import completed
from tests.server.sidecar_process import GrpcModule, SidecarProcess

CONFIG = """
[[limit]]
role = "eng"
resources = "cpu:1"

[[demand]]
framework_name = "nightly*"
resources = "tokens:3"

[[constraint]]
role = "elsewhere"
agents = "zoen=a"

[[limit]]
role = "unreserved"
resources = "cpus(*):20"
"""

MESOS_FORM = {DEMAND_LABEL: "cpus(*):0.5;mem(*):384"}
TENANTS = range(5, 9)
"""Each framework has two roles."""

ESCAPES = "a\x1b[2Jb\x07c\u202ed"
SEPARATED = "line\u2028separator\u2028"

OF_A_ROLE = {DEMAND_LABEL: "cpus(prod):0.5;mem:384"}


class Live(NamedTuple):
    process: SidecarProcess
    config: Path


@pytest.fixture(scope="module")
def live(tmp_path_factory) -> Iterator[Live]:
    config = tmp_path_factory.mktemp("config") / "config.toml"
    config.write_text(CONFIG)
    with (
        SidecarProcess("policy.mode=characterised", config=config) as process,
        process.channel() as channel,
    ):
        module = GrpcModule(channel).begin(CLUSTER)
        module.batch(
            SetQuota("ops", {"gpu": 1000}, {}),
            AddFramework(3, FrameworkInfo("id-3", name="mesos-form", labels=MESOS_FORM), (2,)),
            AddFramework(4, FrameworkInfo("id-4", name="of-a-role", labels=OF_A_ROLE), (2,)),
            Define({}, {3: "c", 4: "d", 5: ESCAPES}),
            *(AddFramework(n, FrameworkInfo(f"id-{n}", name="tenant"), (3, 4)) for n in TENANTS),
            AddFramework(9, FrameworkInfo(SEPARATED, name=ESCAPES), (5,)),
        )
        yield Live(process, config)


def warning(live: Live, what: str) -> dict:
    (found,) = [each for each in ask(live.process, "status")["warnings"] if each["what"] == what]
    return found


def test_the_status_shows_configured_rules_and_quotas(live):
    text = warning(live, "unknown name")["text"]
    assert "the limit of role eng: no agent has any 'cpu'; did you mean 'cpus'?" in text
    assert "the demand of framework nightly*: no agent has any 'tokens'" in text
    assert "the constraint of role elsewhere: no agent has an attribute 'zoen'; did you" in text
    assert text.endswith("and 1 more")


def test_unknown_names_are_logged_at_the_start_and_reported_by_the_check(live):
    known = "the demand of framework nightly*: no agent has any 'tokens'"
    live.process.await_said("a rule names a resource or attribute that no agent has", rule=known)
    (entry,) = live.process.said("a rule names an unknown resource, probably by mistake")
    told = "limit of role eng: 'cpu' is not one of Mesos's own resources; did you mean 'cpus'?"
    assert entry["rule"] == f"{live.config}:2: {told}"
    done = completed("check-config", str(live.config))
    assert done.returncode == 0
    assert done.stderr.splitlines() == [f"warning: {live.config}:2: {told}"]


def test_the_command_line_says_the_same(live):
    done = command(live.process, "limit", "set", "eng", "cpu:1")
    assert "no agent has any 'cpu', it would have no effect; did you mean 'cpus'?" in done.stderr


def test_amounts_as_mesos_prints_them_are_understood(live):
    limits = {each["role"]: each["limit"] for each in ask(live.process, "limit", "list")["limits"]}
    assert limits["unreserved"] == {"cpus": 20}
    (client,) = ask(live.process, "explain", "framework", "mesos-form")["clients"]
    assert (client["demand"], client["demand_source"]) == ({"cpus": 0.5, "mem": 384}, "label")
    assert client["open_agents"] == 2


def test_a_demand_that_fits_nowhere_is_named_with_a_suggestion(live):
    found = warning(live, "fits nowhere")
    assert found["text"] == (
        "1 framework asked for a resource that no agent has, such as of-a-role for 'cpus(prod)';"
        " did you mean 'cpus'?; no task that needs it fits, and no minimum is reached"
    )
    assert found["mend"] == "mesos-allocator explain framework of-a-role says what"
    warnings = ask(live.process, "status")["warnings"]
    assert "words set aside" not in [each["what"] for each in warnings]
    (client,) = ask(live.process, "explain", "framework", "of-a-role")["clients"]
    (blocker,) = [each for each in client["blockers"] if each["reason"] == "too large"]
    assert (
        blocker["cause"]
        == "it asks for resources that no agent has: 'cpus(prod)'; did you mean 'cpus'?"
    )
    assert blocker["agents"] == 2
    assert client["demand"] == {"cpus(prod) (unknown resource)": 0.5, "mem": 384}


COUNTED = [
    ("demand set cpus:1 --role c", "the rule applies to 4 of 9 frameworks, counts for 4"),
    ("limit set d cpus:100", "the rule applies to 4 of 9 frameworks"),
    ("weight set 2 --framework-name tenant", "the rule applies to 4 of 9 frameworks"),
    ("gang set 8 --framework-name tenant", "the rule applies to 4 of 9 frameworks"),
    ("claim set d cpus:100", "the rule applies to 4 of 9 frameworks"),
    ("cap set d cpus:100 --per user", "the rule applies to 4 of 9 frameworks"),
    ("cap set d tasks:5;agents:2", "the demand of 4 of 4 frameworks is not known yet"),
    ("pause d", "the rule applies to 4 of 9 frameworks"),
    ("policy set choosy", "would not change."),
]


@pytest.mark.parametrize(("words", "told"), COUNTED)
def test_frameworks_in_several_roles_are_counted_once(live, words, told):
    done = command(live.process, *words.split(), "--dry-run")
    assert told in " ".join((done.stdout + done.stderr).split())


def test_a_rule_that_would_leave_frameworks_without_offers_states_their_number(live):
    done = command(live.process, "constraint", "set", "zone=c", "--all")
    assert "no agent satisfies it: 9 frameworks would be offered nothing" in done.stderr


def test_a_forecast_tells_of_each_framework_once(live):
    answer = ask(live.process, "policy", "set", "cmmf", "--dry-run")
    named = {each["framework_id"] for each in answer["forecasts"]}
    assert len(named) + answer["unaffected"] == 9


def test_tables_count_what_they_do_not_show(live):
    text = command(live.process, "shares", "--limit", "2", "--sort", "name").stdout
    assert "not shown: 3 roles and 7 frameworks as 11 clients" in text
    answer = ask(live.process, "explain", "agent", "a1")
    assert "of 9 frameworks" in answer["verdict"]
    assert max(each["frameworks"] for each in answer["tallies"]) <= 9
    for each in answer["tallies"]:
        assert len(set(each["examples"])) == len(each["examples"])


def test_a_scrape_has_no_control_characters_and_keeps_names_apart(live):
    status, text = live.process.page("/metrics")
    assert status == 200
    assert not [each for each in set(text) if not each.isprintable() and each != "\n"]
    assert "a?[2Jb?c?d~" in text
    live.process.scraped()  # every series occurs once


def test_links_of_the_page_lead_to_odd_names(live):
    for kind, name in (("framework", SEPARATED), ("framework", ESCAPES), ("role", ESCAPES)):
        query = urllib.parse.urlencode({"kind": kind, "name": name}, quote_via=urllib.parse.quote)
        assert live.process.page(f"/explain?{query}")[0] == 200
