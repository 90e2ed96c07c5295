"""The command line against a real sidecar in session with a module."""

import json

import numpy as np

from allocator.v1 import session_pb2
from tests.integration.sessions.two_frameworks import CLUSTER
from tests.server.sidecar_process import GrpcModule, await_true

DEMAND = {"cpus": 1000, "mem": 1_024_000}


UNKNOWN_AGENT = session_pb2.OUTCOME_REASON_UNKNOWN_AGENT


def test_status_tells_of_the_session(session):
    before = session.ask("status")
    assert (before["in_session"], before["master_id"]) == (True, "master")
    assert (before["agents"], before["frameworks"]) == (2, 2)
    decisions = session.module.batch(cycle=True)
    assert len(decisions) == 2
    after = session.ask("status")
    assert after["cycles"] - before["cycles"] == 1
    assert after["decisions"] - before["decisions"] == after["outstanding_decisions"] == 2
    assert after["clock_ms"] == session.module.clock_ms
    await_true(lambda: session.ask("status")["cycle_p99_ms"] is not None)
    assert {use["name"]: use["held"] for use in after["resources"]} == {"cpus": 16, "mem": 32768}
    assert "master master" in session.command("status").stdout


def test_shares_tell_who_holds_what(session):
    session.offer()
    answer = session.ask("shares")
    assert {each["framework_name"]: each["share"] for each in answer["clients"]} == {
        "spark": 0.5,
        "kafka": 0.5,
    }
    assert answer["jain_index"] == 1
    assert session.ask("shares", "--role", "ops")["clients"][0]["held"] == {"cpus": 8, "mem": 16384}
    assert answer["clients"][0]["fair_share"] is None
    fair = session.ask("shares", "--fair")
    assert all(0 <= each["fair_share"] <= 1 for each in fair["clients"] + fair["roles"])
    assert "off by" in session.command("shares", "--fair").stdout
    told = session.command("shares", "--newcomer", "ops", "--newcomer-demand", "cpus:1").stdout
    assert "a new framework would get" in told
    assert "newcomer" not in session.command("shares").stdout
    table = session.command("shares").stdout
    assert "kafka" in table
    assert "Jain index 1.000" in table
    wide = session.command("shares", "--wide", "--limit", "1").stdout
    assert "offered for" in wide
    assert "not shown: 1 role and 1 framework" in wide
    assert session.ask("shares", "--waiting", "--sort", "name")["clients"] == []
    assert session.command("shares", "--sort", "size").returncode == 2
    done = session.command("shares", "--role", "opps")
    assert (done.returncode, done.stderr) == (
        4,
        "error: role = 'opps': there is no such role; did you mean 'ops'?\n",
    )


def test_a_policy_set_while_offers_are_out_decides_the_next_cycle(session):
    session.ask("demand", "set", "cpus:1;mem:1024", "--framework-name", "spark")
    assert len(session.module.batch(cycle=True)) == 2
    answer = session.ask("policy", "set", "ps-dsf", "--mode", "characterised")
    assert (answer["policy"]["name"], answer["policy"]["mode"]) == ("ps-dsf", "characterised")
    none = np.empty(0, np.int64)
    lost = np.full(2, UNKNOWN_AGENT)
    session.module.batch(session.module.client.outcomes(lost, none, np.empty((0, 0), np.int64)))
    decisions = session.module.batch(cycle=True)
    spark = decisions.amount[decisions.framework == 1]
    assert spark.sum() > 0
    assert (spark % [DEMAND["cpus"], DEMAND["mem"]] == 0).all()
    assert decisions.amount.sum(axis=0).tolist() == [16_000, 32_768_000]


def test_options_that_are_not_named_stay(session):
    session.ask("policy", "set", "choosy", "--selection", "joint", "-p", "unit=tasks", "--flat")
    kept = session.ask("policy", "set", "--mode", "characterised")["policy"]
    assert kept == {
        "name": "choosy",
        "selection": "joint",
        "mode": "characterised",
        "flat": True,
        "parameters": {"unit": "tasks"},
        "subtrees": {},
    }
    other = session.ask("policy", "set", "drf")["policy"]
    assert (other["selection"], other["parameters"]) == ("", {})
    assert (other["mode"], other["flat"]) == ("characterised", True)
    shown = session.ask("policy", "show")
    assert shown["policy"] == other
    assert "rps-dsf" in shown["policies"]


def test_a_refused_policy_changes_nothing_and_ends_with_4(session):
    done = session.command("policy", "set", "ps-dfs")
    assert done.returncode == 4
    assert done.stderr.startswith("error: policy.name: there is no policy 'ps-dfs'; choose from ")
    assert done.stderr.endswith("; did you mean 'ps-dsf'?\n")
    assert session.ask("policy", "show")["policy"]["name"] == "drf"
    assert len(session.offer()) == 2


def test_a_constraint_counts_in_the_next_cycle(session):
    rules = session.ask("constraint", "set", "zone=b", "--framework-name", "sp*")
    rule = {"role": "", "framework_name": "sp*", "expression": "zone=b"}
    assert rules["constraints"] == [rule]
    assert session.ask("constraint", "list") == {"constraints": [rule]}
    decisions = session.offer(UNKNOWN_AGENT)
    assert set(zip(decisions.framework.tolist(), decisions.agent.tolist(), strict=True)) <= {
        (1, 2),
        (2, 1),
        (2, 2),
    }
    removed = session.ask("constraint", "remove", "--framework-name", "sp*")
    assert removed["constraints"] == []
    again = session.command("constraint", "remove", "--framework-name", "sp*")
    assert again.returncode == 4
    assert "there is no rule for any role and framework 'sp*'" in again.stderr


def test_rules_outlive_the_session(session):
    session.ask("demand", "set", "cpus:1", "--role", "eng")
    session.module.leave()
    assert list(session.module.heard()) == []
    session.process.await_said("session closed")
    assert not session.ask("status")["in_session"]
    assert session.ask("demand", "list")["demands"][0]["demand"] == {"cpus": 1}
    session.module = GrpcModule(session.channel, started_us=2).begin(CLUSTER)
    session.module.batch()
    clients = session.ask("shares")["clients"]
    sources = {each["framework_name"]: each["demand_source"] for each in clients}
    assert sources == {"spark": "operator", "kafka": ""}


def test_a_dump_is_the_state(session, tmp_path):
    session.offer()
    file = tmp_path / "state.json"
    assert session.command("dump", str(file)).returncode == 0
    state = json.loads(file.read_text())
    assert state["session"]["master_id"] == "master"
    assert [agent["agent_id"] for agent in state["agents"]] == ["a1", "a2"]
    assert sum(row["held"]["0"] for row in state["holdings"]) == 16_000
    assert json.loads(session.command("dump").stdout)["sidecar_id"] == state["sidecar_id"]
    done = session.command("dump", f"{tmp_path}/none/state.json")
    assert done.returncode == 1
    assert "No such file or directory" in done.stderr
