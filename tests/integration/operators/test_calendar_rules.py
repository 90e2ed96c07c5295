"""Scheduled rules and paused roles over real calls: commands, restarts, journals, the page."""

import json
import time
import tomllib
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from allocator.cli.app import app
from tests.integration.operators.test_lasting_settings import ask, begun, command, settings
from tests.integration.sessions.two_frameworks import CLUSTER
from tests.server.sidecar_process import GrpcModule, SidecarProcess


def until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.05)


def limit(process: SidecarProcess) -> dict[str, float]:
    found = {each["role"]: each["limit"] for each in ask(process, "limit", "list")["limits"]}
    return found.get("ops", {})


def test_a_limit_begins_survives_a_restart_and_ends_and_the_journal_replays(tmp_path):
    journal = tmp_path / "a.journal"
    with begun(tmp_path / "state", f"journal.path={journal}") as process:
        ask(process, "limit", "set", "ops", "cpus:8")
        ask(process, "limit", "set", "ops", "cpus:2", "--from", "+5s", "--for", "20d")
        ask(process, "limit", "set", "ops", "cpus:5", "--from", "+90d")
        until(lambda: limit(process) == {"cpus": 2})
        row = settings(process)["limit", "role ops"]
        assert (row["value"], row["source"]) == ("cpus:2", "calendar")
        assert process.await_said("setting", who="calendar")["new"] == "cpus:2"
        channel = process.channel()
        module = GrpcModule(channel).begin(CLUSTER)
        decisions = module.batch(cycle=True)
        assert decisions.amount[decisions.framework == 2][:, 0].sum() <= 2000
        channel.close()
        process.terminate()
    done = CliRunner().invoke(app, ["replay", str(journal), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["differing"] == 0
    with begun(tmp_path / "state") as process:
        assert limit(process) == {"cpus": 2}
        told = ask(process, "limit", "set", "ops", "cpus:7")
        assert "a scheduled rule holds instead now" in "".join(told["change"]["warnings"])
        assert limit(process) == {"cpus": 2}
        ask(process, "limit", "set", "ops", "cpus:3", "--for", "15s")
        assert limit(process) == {"cpus": 3}, "of two the one that was set last"
        process.await_said("setting", who="calendar", old="cpus:3", new="cpus:2")
        assert limit(process) == {"cpus": 2}
        first, second = ask(process, "schedule", "list")["schedules"]
        assert (first["holds"], second["holds"]) == (True, False)
        ask(process, "schedule", "remove", first["id"])
        assert limit(process) == {"cpus": 7}


def test_before_a_drain_an_agent_is_for_tasks_that_end_in_time_and_the_journal_replays(tmp_path):
    journal = tmp_path / "a.journal"
    with begun(tmp_path / "state", f"journal.path={journal}") as process:
        ask(process, "drain", "set", "a1", "--from", "+2h", "--for", "1h")
        row = settings(process)["drain", "agent a1"]
        assert row["value"].startswith("drained, from 20")
        assert row["source"] == "calendar"
        process.terminate()
    with begun(tmp_path / "state", f"journal.path={journal}") as process:
        channel = process.channel()
        module = GrpcModule(channel)
        module.clock_ms = int(1000 * time.time())
        module.begin(CLUSTER)
        assert set(module.batch(cycle=True).agent.tolist()) == {2}, "nothing is learnt"
        text = printed(process, "explain", "framework", "spark")
        assert "drained soon" in text
        assert "its tasks would not end before the drain at 20" in text
        assert "it is drained from 20" in printed(process, "explain", "agent", "a1")
        (rule,) = ask(process, "schedule", "list")["schedules"]
        ask(process, "schedule", "remove", rule["id"])
        assert ask(process, "drain", "list")["drains"] == []
        assert set(module.batch(cycle=True).agent.tolist()) == {1}
        channel.close()
        process.terminate()
    done = CliRunner().invoke(app, ["replay", str(journal), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["differing"] == 0


@pytest.fixture(scope="module")
def process() -> Iterator[SidecarProcess]:
    with SidecarProcess() as process:
        channel = process.channel()
        module = GrpcModule(channel).begin(CLUSTER)
        module.batch(cycle=True)
        yield process
        module.leave()
        channel.close()


@pytest.fixture
def reset(process) -> Iterator[None]:
    yield
    ask(process, "settings", "reset", "--all")


WEEKLY = ("--every", "0 8 * * 1-5", "--for", "10h", "--tz", "Europe/Berlin")


def printed(process: SidecarProcess, *words: str) -> str:
    done = command(process, *words)
    assert (done.returncode, done.stderr) == (0, "")
    return " ".join(done.stdout.split())


def test_a_dry_run_tells_the_effect_as_if_it_held_now_and_when_it_will(process, reset):
    text = printed(process, "limit", "set", "opps", "cpus:4", *WEEKLY, "--dry-run")
    assert "+ limit role opps: cpus:4, every '0 8 * * 1-5' for 10h (Europe/Berlin)" in text
    assert "holds from" in text or "holds now" in text
    assert "if it held now, it would apply to 0 of 2 frameworks" in text
    assert "did you mean 'ops'" in text
    assert "dry run: nothing was changed" in text
    assert ask(process, "schedule", "list")["schedules"] == []


def test_settings_are_shown_as_they_will_be_at_a_later_time(process, reset):
    ask(process, "limit", "set", "ops", "cpus:8")
    ask(process, "limit", "set", "ops", "cpus:2", "--from", "+10d", "--for", "2d")
    ask(process, "drain", "set", "a1", "--from", "+12d", "--for", "1d")

    def at(when: str) -> dict[str, tuple[str, str]]:
        rows = ask(process, "settings", "show", "--at", when)["settings"]
        return {each["key"]: (each["value"], each["source"]) for each in rows}

    assert at("+1h")["limit"] == ("cpus:8", "operator")
    assert at("+11d")["limit"] == ("cpus:2", "calendar")
    assert at("+11d")["drain"][0].startswith("drained, from"), "announced"
    assert at("+301h")["limit"] == ("cpus:8", "operator")
    assert at("+301h")["drain"] == ("drained", "calendar")
    assert "drain" not in at("+14d")
    text = printed(process, "settings", "show", "--at", "+11d")
    assert "begins: limit" not in text
    assert "ends: limit role ops: cpus:2" in text
    assert limit(process) == {"cpus": 8}, "nothing has changed"


def test_scheduled_rules_are_listed_and_shown(process, reset):
    printed(process, "drain", "set", "a1", "--from", "+2h", "--for", "3h")
    for words in (("settings", "show"), ("status",)):
        text = printed(process, *words)
        assert "begins: drain agent a1: drained" in text
        assert "ends: drain agent a1: drained" in text
    (rule,) = ask(process, "schedule", "list")["schedules"]
    assert (rule["key"], rule["scope"], rule["holds"]) == ("drain", "agent a1", False)
    assert rule["end_ms"] - rule["begin_ms"] == 3 * 3_600_000
    assert rule["id"] in printed(process, "schedule", "list")
    (drain,) = ask(process, "drain", "list")["drains"]
    assert drain == {"agent": "a1", "from_ms": rule["begin_ms"]}
    assert "a1 - from 20" in printed(process, "drain", "list")
    with urllib.request.urlopen(f"http://{process.http}/") as page:
        assert "drain agent a1" in " ".join(page.read().decode().split())


def test_an_export_is_applied_and_names_the_other_rule_while_one_holds(process, reset, tmp_path):
    ask(process, "limit", "set", "ops", "cpus:8")
    ask(process, "limit", "set", "ops", "cpus:2", "--for", "20d")
    ask(process, "drain", "set", "a1", "--from", "+2h", "--for", "1h")
    ask(process, "weight", "set", "2", "--role", "eng", *WEEKLY)
    text = command(process, "settings", "export").stdout
    assert {"role": "ops", "resources": "cpus:8"} in tomllib.loads(text)["limit"]
    assert ["from" in each for each in tomllib.loads(text)["drain"]] == [True]
    file = Path(tmp_path) / "settings.toml"
    file.write_text(text)
    assert "no differences" in printed(process, "apply", "-f", str(file))
    before = ask(process, "schedule", "list")["schedules"]
    ask(process, "settings", "reset", "--all")
    assert limit(process) == {}
    ask(process, "apply", "-f", str(file))
    assert limit(process) == {"cpus": 2}
    after = ask(process, "schedule", "list")["schedules"]
    assert [each["id"] for each in after] == [each["id"] for each in before]
    number = ask(process, "settings", "history")["changes"][0]["number"]
    ask(process, "settings", "revert", str(number))
    assert ask(process, "schedule", "list")["schedules"] == []
    assert limit(process) == {}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--every", "0 8 * *", "--for", "1h"), "--every: '0 8 * *': give minute"),
        (("--every", "0 8 * * *", "--for", "30h"), "--for: 1d6h: is longer than"),
        (("--from", "+1h", "--tz", "Europe/Berln"), "did you mean 'Europe/Berlin'"),
        (("--until", "2020-01-01"), "is over already; give a later time"),
    ],
)
def test_a_bad_schedule_is_an_error_with_its_fix(process, words, text):
    done = command(process, "limit", "set", "ops", "cpus:4", *words)
    assert done.returncode != 0
    assert text in " ".join(done.stderr.split())
    done = command(process, "schedule", "remove", "nonesuch")
    assert "there is no such scheduled rule" in done.stderr


def test_pause_and_resume(process, reset):
    assert "the rule applies to 1 of 2 frameworks" in printed(process, "pause", "ops", "--dry-run")
    assert ask(process, "pause", "list")["pauses"] == []
    assert ask(process, "pause", "ops")["pauses"] == [{"role": "ops"}]
    (kafka,) = ask(process, "frameworks", "--role", "ops")["frameworks"]
    assert kafka["states"] == ["paused"]
    text = printed(process, "explain", "framework", "kafka")
    assert "an operator, or the calendar, paused the role ops or one above it" in text
    roles = {each["role"]: each["paused"] for each in ask(process, "roles")["roles"]}
    assert (roles["ops"], roles["eng"]) == (True, False)
    assert ask(process, "resume", "ops")["pauses"] == []
    ask(process, "pause", "ops", "--for", "20d")
    assert ask(process, "pause", "list")["pauses"] == [{"role": "ops"}]
    (rule,) = ask(process, "schedule", "list")["schedules"]
    for options in ((), ("--dry-run",)):
        done = command(process, "resume", "ops", *options)
        assert done.returncode != 0
        assert "there is no pause of role 'ops'; a scheduled rule holds now" in done.stderr
        assert f"`schedule remove {rule['id']}`" in done.stderr
