"""Changes by operators and the configuration: validated, reported, logged, applied atomically."""

import getpass
import json
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from allocator.cli.app import app
from tests.integration.operators.test_lasting_settings import ask, command, settings
from tests.integration.sessions.two_frameworks import CLUSTER
from tests.server.sidecar_process import GrpcModule, SidecarProcess, await_true

AUDIT = "mesos_allocator.audit"


def audit(process: SidecarProcess) -> list[dict]:
    return [entry for entry in process.log if entry.get("logger") == AUDIT]


def test_a_mistyped_constraint_is_refused(session):
    for text in ("zone<3", "zone>=3", "!zone=a", "zone==a", "zone='a'", "a b", "zone=a&ssd"):
        done = command(session.process, "constraint", "set", text, "--all")
        assert done.returncode == 4, text
        assert "is not a clause; write 'name=a|b'" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert ask(session.process, "constraint", "list") == {"constraints": []}
    assert len(session.offer()) == 2


def test_a_rule_for_all_frameworks_must_say_so(session):
    for words in (["constraint", "set", "ssd"], ["demand", "set", "cpus:1"], ["demand", "remove"]):
        done = command(session.process, *words)
        assert done.returncode == 2
        assert "--all" in done.stderr
    done = command(session.process, "constraint", "set", "zone=a", "--all", "--role", "eng")
    assert done.returncode == 2
    assert (
        ask(session.process, "constraint", "set", "zone=a", "--all")["change"]["match"]["agents"]
        == 1
    )


def test_a_constraint_says_what_it_matches_and_what_it_would_stop(session):
    words = ["constraint", "set", "zone=a", "--role", "eng"]
    change = ask(session.process, *words, "--dry-run")["change"]
    match = change["match"]
    assert (match["agents"], match["agents_total"]) == (1, 2)
    assert (match["frameworks"], match["frameworks_total"]) == (1, 2)
    assert (change["dry_run"], change["warnings"]) == (True, [])
    assert ask(session.process, "constraint", "list") == {"constraints": []}
    text = command(session.process, *words, "--dry-run").stdout
    assert "the rule applies to 1 of 2 agents, 1 of 2 frameworks" in text
    assert "dry run: nothing was changed" in text
    mistyped = ["constraint", "set", "zoen=a", "--role", "eng"]
    stopped = ask(session.process, *mistyped, "--force")["change"]
    assert stopped["warnings"] == [
        "no agent has an attribute 'zoen'; did you mean 'zone'?",
        "no agent satisfies it: 1 framework would be offered nothing",
    ]
    both = ["constraint", "set", "zone=b", "--framework-name", "spark", "--force"]
    assert ask(session.process, *both)["change"]["warnings"] == [
        "with their other rules, 1 of 1 frameworks would have no agent left"
    ]
    status = command(session.process, "status").stdout
    assert "0 of 2 agents, 1 of 2 frameworks, 1 WITHOUT AN AGENT" in status


SENSELESS = [
    ("constraint", "zoen=a --role eng", "no agent has an attribute 'zoen'; did you mean 'zone'?"),
    ("constraint", "zone=c --all", "no agent satisfies it: 2 frameworks would be offered nothing"),
    ("demand", "cpu:2 --role eng", "no agent has any 'cpu', 1 framework would be offered nothing"),
    ("demand", "cpus:9 --all", "no agent is large enough for cpus:9, 2 frameworks would be"),
    ("limit", "eng cpu:1", "no agent has any 'cpu', it would have no effect; did you mean 'cpus'?"),
    ("limit", "eng cpus:0", "no cpus would be granted in 'eng' and below it"),
    ("drain", "nope", "no agent has the id or host name 'nope' now"),
    ("drain", "a1 a2", "every agent would be drained: no framework would be offered"),
]


@pytest.mark.parametrize(("kind", "words", "why"), SENSELESS)
def test_probable_mistakes_are_refused_unless_forced(session, kind, words, why):
    process, set_it = session.process, (kind, "set", *words.split())
    for dry in ((), ("--dry-run",)):
        done = command(process, *set_it, *dry)
        assert (done.returncode, done.stdout) == (4, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"error: {kind}: ")
        assert why in line
        assert line.endswith("; nothing has changed, --force sets it nevertheless")
        assert ask(process, kind, "list")[f"{kind}s"] == []
    process.await_said("setting", setting=kind, result="refused")
    tried = ask(process, *set_it, "--force", "--dry-run")["change"]
    assert any(why in each for each in tried["warnings"])
    assert ask(process, kind, "list")[f"{kind}s"] == []
    assert ask(process, *set_it, "--force")[f"{kind}s"]
    remove = words.replace(" --force", "").split()
    if kind != "drain":
        remove = [each for each in remove if each != words.split()[kind == "limit"]]
    ask(process, kind, "remove", *remove)
    resources = ask(process, "status")["resources"]
    assert {each["name"] for each in resources} == {"cpus", "mem"}, "a name in a rule is no row"


def test_agents_that_can_only_be_drained_one_by_one_are_left_as_they_were(session):
    ask(session.process, "drain", "set", "a1")
    done = command(session.process, "drain", "set", "a1", "a2")
    assert done.returncode == 4
    assert ask(session.process, "drain", "list")["drains"] == [{"agent": "a1", "from_ms": 0}]


def test_where_no_agents_are_known_rules_are_taken_and_that_is_said(process):
    for words in (["limit", "set", "eng", "cpu:1"], ["drain", "set", "nope"]):
        told = ask(process, *words)["change"]["warnings"]
        (said,) = [each for each in told if "could not be judged" in each]
        assert "no agents are known yet" in said
        ask(process, words[0], "remove", words[2])


def test_a_demand_that_cannot_be_met_and_a_role_that_is_unknown_warn(session):
    words = ["demand", "set", "cpus:9", "--role", "egn", "--force", "--dry-run"]
    assert ask(session.process, *words)["change"]["warnings"] == [
        "no framework matches now; did you mean 'eng'?",
        "no agent is large enough for cpus:9, its frameworks would be offered nothing",
    ]
    change = ask(session.process, "policy", "set", "--subtree", "enq=drf")["change"]
    (warning,) = change["warnings"]
    assert "a role 'enq' without frameworks now; did you mean 'eng'?" in warning


def test_policy_dry_run_shows_how_the_next_decisions_would_differ(session):
    ask(session.process, "demand", "set", "cpus:1;mem:1024", "--role", "eng")
    words = ["policy", "set", "drf", "--mode", "characterised", "--dry-run"]
    answer = ask(session.process, *words)
    assert answer["policy"]["mode"] == "oblivious"
    assert answer["change"]["dry_run"]
    names = {each["framework_name"] for each in answer["forecasts"]}
    assert len(names) + answer["unaffected"] == 2
    text = command(session.process, *words).stdout
    assert text.splitlines()[0] == (
        "drf (its own selection, oblivious, hierarchical) now;"
        " drf (its own selection, characterised, hierarchical) would decide:"
    )
    other = command(session.process, "policy", "set", "ps-dsf", "--dry-run").stdout
    assert other.startswith("drf now; ps-dsf would decide:\n")
    assert ask(session.process, "policy", "show")["policy"]["mode"] == "oblivious"
    done = command(session.process, "policy", "set", "drff", "--dry-run")
    assert done.returncode == 4


def test_a_dry_run_of_a_rule_says_what_would_be_set_and_what_was(session):
    def said(*words: str) -> str:
        return command(session.process, *words, "--dry-run").stdout.splitlines()[0]

    weight = ["weight", "set", "3", "--role", "eng"]
    assert said(*weight) == "would set: role eng, weight 3 (was: none)"
    ask(session.process, *weight)
    assert said("weight", "set", "2.5", "--role", "eng") == (
        "would set: role eng, weight 2.5 (was: 3)"
    )
    assert said("weight", "remove", "--role", "eng") == "would remove: role eng, weight 3"
    assert said("weight", "set", "2", "--all") == "would set: all, weight 2 (was: none)"
    assert said("drain", "set", "a1") == "would set: agent a1, drained (was: none)"
    assert said("shadow", "set", "tsf").startswith("would set: shadow tsf (its own selection")


def test_every_change_leaves_a_line_of_who_and_what(session):
    process = session.process
    ask(process, "demand", "set", "cpus:1", "--role", "eng")
    ask(process, "demand", "set", "cpus:2", "--role", "eng")
    command(process, "demand", "set", "cpus:0", "--role", "eng")
    ask(process, "demand", "remove", "--role", "eng", "--dry-run")
    process.await_said("setting", scope="role eng", result="dry_run", old="cpus:2")
    lines = [each for each in audit(process) if each["scope"] == "role eng"][-4:]
    pairs = [(each["result"], each["old"], each["new"]) for each in lines]
    assert pairs == [
        ("done", "", "cpus:1"),
        ("done", "cpus:1", "cpus:2"),
        ("refused", "", "cpus:0"),
        ("dry_run", "cpus:2", ""),
    ]
    assert all(f"user {getpass.getuser()}" in each["who"] for each in lines)
    assert all("at 127.0.0.1:" in each["who"] for each in lines)
    refused = "admin_changes_total", (("result", "refused"), ("setting", "demand"))
    await_true(lambda: process.scraped()[refused] >= 1)
    found = process.scraped()
    assert found["rules", (("kind", "demand"),)] == 1
    assert found["operator_settings", (("kind", "demand"),)] == 1
    assert found["state_kept", ()] == found["journal_on", ()] == 0
    assert found["last_batch_timestamp_seconds", ()] > 1.7e9
    assert found["core_queue_depth", ()] >= 0
    assert not [line for line in process.raw if not line.startswith("{")]


def test_the_caller_on_a_unix_socket_is_recorded(tmp_path):
    target = f"unix:{tmp_path}/a.sock"
    with SidecarProcess(listen=[target]) as process:
        ask(process, "limit", "set", "eng", "cpus:1")
        line = process.await_said("setting", setting="limit")
        assert line["who"].startswith("user ")
        assert line["who"].endswith("at unix")


CONFIG = """
[policy]
name = "drf"
[[demand]]
role = "eng"
resources = "cpus:1"
[starvation]
patience_cycles = 5
"""


def test_sighup_takes_a_configuration_over_whole_or_not_at_all(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text(CONFIG)
    with SidecarProcess(config=file) as process:
        channel = process.channel()
        module = GrpcModule(channel).begin(CLUSTER)
        ask(process, "constraint", "set", "zone=a", "--role", "ops")
        file.write_text(CONFIG.replace('"drf"', '"ps-dsf"').replace("cpus:1", "cpus:x"))
        process.process.send_signal(signal.SIGHUP)
        said = process.await_said("configuration refused, nothing has changed")
        assert any("'x' is not a number" in each for each in said["problems"])
        assert ask(process, "policy", "show")["policy"]["name"] == "drf"
        file.write_text(
            CONFIG.replace('"drf"', '"ps-dsf"').replace("cpus:1", "cpus:2") + "[limits]\nroles = 9"
        )
        process.process.send_signal(signal.SIGHUP)
        said = process.await_said("configuration reloaded")
        assert said["changed"]["policy.name"] == {"old": "drf", "new": "ps-dsf"}
        assert set(said["changed"]) == {"policy.name", "demand"}
        assert said["needs_restart"] == ["limits.roles"]
        assert ask(process, "policy", "show")["policy"]["name"] == "ps-dsf"
        shares = ask(process, "shares", "--role", "eng")["clients"][0]
        assert (shares["demand"], shares["demand_source"]) == ({"cpus": 2}, "operator")
        now = settings(process)
        assert now["policy.name", ""]["value"] == '"ps-dsf"'
        assert now["limits.roles", ""]["value"] == "65536"
        assert now["constraint", "role ops"]["source"] == "operator"
        assert len(module.batch(cycle=True)) > 0, "the session continues"
        # An operator's setting takes precedence over later changes of the file.
        ask(process, "policy", "set", "tsf")
        file.write_text(CONFIG)
        process.process.send_signal(signal.SIGHUP)
        said = process.await_said("configuration reloaded", operators_keep=["policy.name"])
        assert ask(process, "policy", "show")["policy"]["name"] == "tsf"
        ask(process, "settings", "reset", "policy")
        assert ask(process, "policy", "show")["policy"]["name"] == "drf"
        channel.close()


def test_a_reload_replays(tmp_path):
    file = tmp_path / "c.toml"
    journal = tmp_path / "journal" / "j"
    journal.parent.mkdir()
    file.write_text(f'{CONFIG}\n[journal]\npath = "{journal}"\n')
    with SidecarProcess(config=file) as process:
        channel = process.channel()
        module = GrpcModule(channel).begin(CLUSTER)
        module.batch(cycle=True)
        file.write_text(file.read_text().replace('"drf"', '"tsf"'))
        process.process.send_signal(signal.SIGHUP)
        process.await_said("configuration reloaded")
        ask(process, "limit", "set", "eng", "cpus:2")
        module.batch(cycle=True)
        channel.close()
        process.terminate()
    done = CliRunner().invoke(app, ["replay", str(journal), "--json"])
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["differing"] == 0
    assert Path(journal.parent / "settings.json").exists(), "beside the journal by default"
