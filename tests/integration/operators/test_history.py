"""`settings history` and `settings revert`: changes, their authors, and previous values."""

import getpass
import json
import re
import signal

from tests.integration.operators.test_lasting_settings import ask, begun, command, settings
from tests.server.sidecar_process import SidecarProcess


def history(process: SidecarProcess) -> list[dict]:
    return ask(process, "settings", "history")["changes"]


def told(change: dict) -> list[tuple[str, str, str, str]]:
    return [
        (each["key"], each["scope"], each["before"], each["after"]) for each in change["settings"]
    ]


def test_changes_are_known_after_a_kill_and_can_be_reverted(tmp_path):
    with begun(tmp_path) as process:
        assert history(process) == []
        ask(process, "limit", "set", "ops", "cpus:4")
        ask(process, "limit", "set", "ops", "cpus:6")
        ask(process, "limit", "set", "ops", "cpus:6")  # changes nothing
        before = history(process)
        process.process.kill()
        process.process.wait()
    with begun(tmp_path) as process:
        assert history(process) == before
        assert [each["number"] for each in before] == [2, 1]
        assert told(before[0]) == [("limit", "role ops", "cpus:4", "cpus:6")]
        assert told(before[1]) == [("limit", "role ops", "", "cpus:4")]
        assert getpass.getuser() in before[0]["by"] or "127.0.0.1" in before[0]["by"]
        tried = command(process, "settings", "revert", "2", "--dry-run").stdout.splitlines()
        assert (tried[0], tried[-1]) == (
            "~ limit role ops: cpus:6 -> cpus:4",
            "dry run: nothing was changed",
        )
        assert len(history(process)) == 2
        assert ask(process, "settings", "revert", "2")["change"]["lasts"]
        assert settings(process)["limit", "role ops"]["value"] == "cpus:4"
        assert told(history(process)[0]) == [("limit", "role ops", "cpus:6", "cpus:4")]
        assert command(process, "settings", "revert", "1").stdout == "- limit role ops: cpus:4\n"
        assert ("limit", "role ops") not in settings(process)
    kept = json.loads((tmp_path / "history.json").read_text())["content"]
    assert [int(each["number"]) for each in kept["changes"]] == [1, 2, 3, 4]


def test_changes_of_one_command_have_one_number(session, tmp_path):
    ask(session.process, "limit", "set", "eng", "cpus:2")
    file = tmp_path / "settings.toml"
    file.write_text('[policy]\nname = "tsf"\n[[limit]]\nrole = "ops"\nresources = "cpus:4"\n')
    ask(session.process, "apply", "-f", str(file), "--prune")
    (change, *_) = history(session.process)
    assert [(key, scope) for key, scope, _, _ in told(change)] == [
        ("policy", ""),
        ("limit", "role eng"),
        ("limit", "role ops"),
    ]
    lines = command(session.process, "settings", "history", "--limit", "1").stdout.splitlines()
    number = str(change["number"])
    assert lines[0].split() == ["number", "when", "by", "what"]
    assert [line.split()[0] for line in lines[1:4]] == [number] * 3
    assert lines[2].endswith("- limit role eng: cpus:2")
    assert re.fullmatch(r"and (1 earlier change|\d+ earlier changes); --limit shows more", lines[4])
    names = command(session.process, "settings", "history", "-o", "name").stdout.split()
    assert names[0] == number
    ask(session.process, "settings", "revert", number)
    assert settings(session.process)["policy.name", ""]["value"] == '"drf"'
    assert settings(session.process)["policy.name", ""]["source"] == "default"
    assert settings(session.process)["limit", "role eng"]["value"] == "cpus:2"


def test_a_reset_is_reverted(session):
    ask(session.process, "shadow", "set", "tsf")
    ask(session.process, "drain", "set", "a2")
    ask(session.process, "settings", "reset", "--all")
    change = history(session.process)[0]
    assert {(key, after) for key, _, _, after in told(change)} == {("shadow", ""), ("drain", "")}
    ask(session.process, "settings", "revert", str(change["number"]))
    assert ask(session.process, "shadow", "show")["shadow"]["name"] == "tsf"
    assert [each["agent"] for each in ask(session.process, "drain", "list")["drains"]] == ["a2"]


def test_a_revert_is_checked_as_any_change(session):
    ask(session.process, "drain", "set", "a1")
    ask(session.process, "drain", "remove", "a1")
    number = str(history(session.process)[0]["number"])
    ask(session.process, "drain", "set", "a2")
    done = command(session.process, "settings", "revert", number)
    assert (done.returncode, done.stdout) == (4, "")
    assert "every agent would be drained" in done.stderr
    assert [each["agent"] for each in ask(session.process, "drain", "list")["drains"]] == ["a2"]
    assert ask(session.process, "settings", "revert", number, "--force")["changes"]


def test_unknown_values_are_refused(session):
    done = command(session.process, "settings", "revert", "1000000")
    assert done.returncode == 4
    assert "number = 1000000: there is no such change; the latest is " in done.stderr
    session.process.await_said("setting", result="refused", setting="settings")


def test_another_configuration_is_a_change(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text('[[limit]]\nrole = "ops"\nresources = "cpus:4"\n')
    with SidecarProcess(config=file) as process:
        file.write_text('[[limit]]\nrole = "ops"\nresources = "cpus:5"\n')
        process.process.send_signal(signal.SIGHUP)
        process.await_said("configuration reloaded")
        (change,) = history(process)
        assert (change["by"], told(change)) == (
            "configuration",
            [("limit", "role ops", "cpus:4", "cpus:5")],
        )
        ask(process, "limit", "set", "ops", "cpus:6")
        ask(process, "settings", "revert", "2")
        row = settings(process)["limit", "role ops"]
        assert (row["value"], row["source"]) == ("cpus:5", "file"), "the configuration counts again"
