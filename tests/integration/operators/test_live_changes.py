"""A shadow policy, drained agents, and weights: set in a running sidecar."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

from allocator.core import Hold
from tests.integration.operators.test_lasting_settings import ask, command, settings
from tests.integration.sessions.live_session import compared
from tests.server.metrics.scraping import value
from tests.wire.dialogue import holding
from tests.world.rows import given_back


def test_a_shadow_policy_starts_and_stops(session):
    process = session.process
    assert command(process, "shadow", "show").stdout == "no shadow policy\n"
    words = ["shadow", "set", "tsf", "--mode", "characterised"]
    assert ask(process, *words, "--dry-run")["change"]["dry_run"]
    assert ask(process, "shadow", "show")["shadow"]["name"] == ""
    told = ask(process, *words)
    assert (told["shadow"]["name"], told["shadow"]["mode"]) == ("tsf", "characterised")
    assert len(session.offer()) == 2
    answer = compared(process)
    assert {each["role"] for each in answer["roles"]} == {"eng", "ops"}
    for each in answer["clients"]:
        assert (each["offered"], each["cycles"], each["fair_share"]) == (0.5, 1, None)
    fair = ask(process, "shadow", "show", "--fair")
    assert all(0 < each["fair_share"] <= 1 for each in fair["clients"] + fair["roles"])
    text = command(process, "shadow", "show", "--fair").stdout
    assert "shadow: tsf (its own selection, characterised)" in text
    assert "1 cycles compared" in text
    assert settings(process)["shadow.policy", ""]["value"] == '"tsf"'
    assert "shadow.policy" in command(process, "status").stdout
    found = process.scraped()
    assert value(found, "shadow_on") == 1
    assert value(found, "shadow_cycles_total", result="compared") == 1
    ask(process, "shadow", "stop")
    assert ask(process, "shadow", "show")["shadow"]["name"] == ""
    done = command(process, "shadow", "stop")
    assert (done.returncode, done.stderr) == (
        4,
        "error: shadow: there is no shadow policy to stop\n",
    )


def test_an_invalid_policy_cannot_run_in_shadow(session):
    for words, code, said in (
        (["drff"], 4, "there is no policy 'drff'"),
        (["drf", "--mode", "whole"], 2, "'whole' is not one of 'oblivious', 'characterised'"),
        (["drf", "-p", "unit=tasks"], 4, "takes no parameters"),
    ):
        done = command(session.process, "shadow", "set", *words)
        assert done.returncode == code, done.stderr
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
    warned = ask(session.process, "shadow", "set")["change"]["warnings"]
    assert warned == ["that is the policy in force: both would decide the same"]


def test_a_drained_agent_is_not_offered_and_explained(session):
    process = session.process
    change = ask(process, "drain", "set", "a1", "--dry-run")["change"]
    assert (change["match"]["agents"], change["match"]["agents_total"]) == (1, 2)
    change = ask(process, "drain", "set", "a1")["change"]
    assert change["warnings"] == []
    assert session.offer().agent.tolist() == [2]
    assert ask(process, "drain", "list")["drains"] == [{"agent": "a1", "from_ms": 0}]
    text = command(process, "explain", "agent", "a1").stdout
    assert "an operator drains it" in text
    assert "drain" in command(process, "status").stdout
    asked = ask(process, "drain", "set", "a2", "a11", "--force")["change"]["warnings"]
    assert "a11: no agent has the id or host name 'a11' now; did you mean 'a1'?" in asked
    assert any("no framework would be offered anything" in each for each in asked)
    done = command(process, "drain", "remove", "a1", "a9")
    assert (done.returncode, done.stderr) == (4, "error: drain: 'a9' is not drained\n")
    assert {each["agent"] for each in ask(process, "drain", "list")["drains"]} == {
        "a1",
        "a2",
        "a11",
    }
    ask(process, "drain", "remove", "a1", "a2", "a11")
    assert session.offer().agent.tolist() == [1]


RUNS = holding(1, 1, 1, cpus=1000)
"""A holding of a framework on the first agent."""


def test_a_drain_shows_what_still_runs_since_when_and_by_which_operator(session):
    process = session.process
    session.module.batch(Hold(RUNS))
    told = command(process, "drain", "set", "a1").stdout
    (row,) = told.partition("still held on")[2].splitlines()[1:]
    assert row.split() == ["a1", "spark", "eng", "cpus:1", "-"]
    (agent,) = ask(process, "drain", "set", "a1")["agents"]
    (holder,) = agent["holders"]
    assert (holder["framework"], holder["held"]) == ("spark", {"cpus": 1})
    head, row = command(process, "drain", "list").stdout.splitlines()
    assert head.split() == ["agent", "held", "drained", "for", "held", "by", "set", "by"]
    assert row.split()[0] == "a1"
    assert " spark " in row
    assert re.search(r"[\d.]+ s ", row)
    ask(process, "drain", "set", "a9", "--force")
    assert "no such agent" in command(process, "drain", "list").stdout
    session.module.batch(given_back(RUNS, used=True))
    assert "nothing is held there" in command(process, "drain", "set", "a1").stdout


def test_a_drain_waits_until_nothing_is_held(session, monkeypatch):
    monkeypatch.setattr("allocator.cli.remote.drains.LOOK_S", 0.1)
    process = session.process
    session.module.batch(Hold(RUNS))
    done = command(process, "drain", "set", "a1", "--wait", "--timeout", "0.3")
    assert done.returncode == 1
    assert "after 0.3 s something is still held on a1 (spark); the drain stays" in done.stderr
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(command, process, "drain", "set", "a1", "--wait")
        time.sleep(1.0)
        assert not waiting.done()
        session.module.batch(given_back(RUNS, used=True))
        done = waiting.result(60)
    assert done.returncode == 0
    assert "still held" not in done.stdout
    done = command(process, "drain", "set", "a1", "--wait", "--dry-run")
    assert done.returncode == 2
    assert "--wait cannot be used with --dry-run" in done.stderr


def test_a_weight_is_reported_and_shown(session):
    process = session.process
    done = command(process, "weight", "set", "2")
    assert done.returncode == 2
    assert "--all" in done.stderr
    done = command(process, "weight", "set", "0", "--role", "eng")
    assert done.returncode == 2
    assert "give a number from" in done.stderr
    change = ask(process, "weight", "set", "3", "--framework-name", "spark*")["change"]
    assert change["match"]["frameworks"] == 1
    shown = {each["framework_name"]: each["weight"] for each in ask(process, "shares")["clients"]}
    assert shown == {"spark": 3, "kafka": 1}
    assert "spark*" in command(process, "weight", "list").stdout
    ask(process, "weight", "remove", "--framework-name", "spark*")
    assert ask(process, "weight", "list")["weights"] == []


def test_a_snapshot_is_replayed_and_under_pseudonyms_too(session, tmp_path):
    session.offer()
    ask(session.process, "constraint", "set", "zone=a", "--framework-name", "spark")
    for flags in ([], ["--pseudonyms"]):
        file = tmp_path / f"state{len(flags)}"
        done = command(session.process, "snapshot", str(file), *flags)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert oct(file.stat().st_mode & 0o777) == "0o600"
        assert list(tmp_path.glob("*.part")) == []
        again = command(session.process, "replay", str(file))
        assert again.returncode == 0, again.stderr
        assert "1 records with answers" in again.stdout
        assert "all as recorded" in again.stdout
    done = command(session.process, "snapshot", str(tmp_path / "missing" / "state"))
    assert done.returncode == 1
    assert "No such file or directory" in done.stderr
    assert len(done.stderr.splitlines()) == 1
