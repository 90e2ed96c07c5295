"""Operators' settings and learned demands survive a kill of the process."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from allocator.cli.app import app
from allocator.cli.tree import Exit
from allocator.core import AddFramework, FrameworkInfo, Release, RemoveFramework, Transition
from allocator.server.operators.state_store import VERSION
from allocator.v1 import session_pb2
from tests.integration.sessions.two_frameworks import CLUSTER
from tests.server.sidecar_process import GrpcModule, SidecarProcess, await_true
from tests.world.rows import holdings

NO_FRAMEWORKS = tuple(each for each in CLUSTER if not isinstance(each, AddFramework))


def command(process: SidecarProcess, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, because the sidecar is a separate one."""
    target = {"MESOS_ALLOCATOR_TARGET": process.targets[0]}
    done = CliRunner().invoke(app, words, env=target)
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)


def ask(process: SidecarProcess, *words: str) -> dict:
    done = command(process, *words, "--json", "--timeout", "60")  # a busy disk may be slow
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def begun(directory: Path, *flags: str) -> SidecarProcess:
    return SidecarProcess(f"state.directory={directory}", *flags)


def settings(process: SidecarProcess) -> dict[tuple[str, str], dict]:
    found = ask(process, "settings", "show")["settings"]
    return {(each["key"], each["scope"]): each for each in found}


def test_operators_settings_survive_a_kill(tmp_path):
    with begun(tmp_path) as process:
        for words in (
            ["policy", "set", "ps-dsf", "--mode", "characterised"],
            ["demand", "set", "cpus:2;mem:2048", "--role", "eng", "--override"],
            ["demand", "set", "cpus:1", "--role", "ops"],
            ["demand", "remove", "--role", "ops"],
            ["constraint", "set", "zone=a", "--framework-name", "kaf*"],
            ["limit", "set", "ops", "cpus:4"],
            ["shadow", "set", "tsf"],
            ["drain", "set", "a9", "--force"],
            ["weight", "set", "2.5", "--role", "eng"],
            ["policy", "set", "--subtree", "x=choosy:unit=tasks,mode=characterised"],
        ):
            assert ask(process, *words)["change"]["lasts"], words
        before = settings(process)
        process.process.kill()
        process.process.wait()
    with begun(tmp_path) as process:
        assert settings(process) == before
        kept = before["demand", "role eng"]
        assert kept["value"] == "cpus:2;mem:2048, overrides what frameworks state"
        assert (kept["source"], kept["set_at_ms"] > 0) == ("operator", True)
        assert before["policy.name", ""]["source"] == "operator"
        assert ("demand", "role ops") not in before
        assert before["weight", "role eng"]["value"] == "2.5"
        assert before["drain", "agent a9"]["value"] == "drained"
        text = command(process, "status").stdout
        assert f"what operators set: saved in {tmp_path}" in text
        assert "zone=a" in text
        channel = process.channel()
        module = GrpcModule(channel).begin(CLUSTER)
        decisions = module.batch(cycle=True)
        rows = decisions.framework.tolist(), decisions.agent.tolist(), decisions.amount.tolist()
        for framework, agent, amount in zip(*rows, strict=True):
            assert (framework, agent) != (2, 2), "kafka may use zone a only"
            assert framework == 2 or (amount[0] % 2000, amount[1] % 2_048_000) == (0, 0)
        of_kafka = decisions.amount[decisions.framework == 2]
        assert of_kafka[:, 0].sum() <= 4000, "the limit of ops holds"
        channel.close()


def test_learnt_demands_survive_a_restart(tmp_path):
    flags = ("policy.mode=characterised", "state.save_s=1", "learn.acceptances=2")
    with begun(tmp_path, *flags) as process:
        channel = process.channel()
        module = GrpcModule(channel).begin(NO_FRAMEWORKS)
        for handle in (3, 4):
            info = FrameworkInfo(f"job-{handle}", name=f"job-{handle}")
            module.batch(AddFramework(handle, info, (1,)))
            accept_one_task(module, handle, [2000, 4_096_000])
            module.batch(RemoveFramework(handle))
        process.terminate()
        channel.close()
    kept = json.loads((tmp_path / "learnt.json").read_text())["content"]["demands"]
    names = [(each["role"], each["kind"], each["who"]) for each in kept]
    assert ("eng", "name", "job-#") in names
    with begun(tmp_path, *flags) as process:
        channel = process.channel()
        module = GrpcModule(channel).begin(NO_FRAMEWORKS)
        module.batch(AddFramework(5, FrameworkInfo("job-5", name="job-5"), (1,)))
        (job,) = [
            each for each in ask(process, "shares")["clients"] if each["framework_name"] == "job-5"
        ]
        assert (job["demand_source"], job["demand"]) == ("prior", {"cpus": 2, "mem": 4096})
        channel.close()


def accept_one_task(module: GrpcModule, framework: int, amount: list[int]) -> None:
    """Run a cycle; the framework uses one task of its offers, the others release theirs."""
    decisions = module.batch(cycle=True)
    none = np.empty(0, np.int64)
    reasons = np.full(len(decisions), session_pb2.OUTCOME_REASON_OFFERED)
    module.batch(module.client.outcomes(reasons, none, np.empty((0, 0), np.int64)))
    taken = False
    rows = decisions.framework.tolist(), decisions.role.tolist(), decisions.agent.tolist()
    for one, role, agent, offered in zip(*rows, decisions.amount.tolist(), strict=True):
        left = offered
        if one == framework and not taken:
            taken = True
            module.batch(Transition(holdings((one, role, agent, *amount))))
            left = [has - took for has, took in zip(offered, amount, strict=True)]
        if any(left):
            module.batch(
                Release(holdings((one, role, agent, *left)), np.array([-1]), np.array([False]))
            )
    assert taken


def test_a_rule_of_the_file_that_an_operator_took_back_stays_away_until_it_is_reset(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text(
        f'[state]\ndirectory = "{tmp_path}/state"\n'
        '[[constraint]]\nrole = "eng"\nagents = "zone=a"\n'
        '[[demand]]\nrole = "eng"\nresources = "cpus:1"\n'
    )

    def begin() -> SidecarProcess:
        return SidecarProcess(config=file)

    with begin() as process:
        place = settings(process)["constraint", "role eng"]
        assert (place["source"], place["place"]) == ("file", f"{file}:3")
        ask(process, "constraint", "remove", "--role", "eng")
        process.process.kill()
        process.process.wait()
    with begin() as process:
        assert ask(process, "constraint", "list")["constraints"] == []
        row = settings(process)["constraint", "role eng"]
        assert (row["source"], row["value"]) == ("operator", "taken back")
        assert settings(process)["demand", "role eng"]["source"] == "file"
        before = settings(process)
        tried = ask(process, "settings", "reset", "--all", "--dry-run")
        assert {each["key"] for each in tried["settings"]} == {"constraint"}
        assert settings(process) == before
        ask(process, "settings", "reset", "constraint")
        (rule,) = ask(process, "constraint", "list")["constraints"]
        assert rule["expression"] == "zone=a"
        process.process.kill()
        process.process.wait()
    with begin() as process:
        assert settings(process)["constraint", "role eng"]["source"] == "file"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"version": 2, "checksum": "00000000", "content": {"changes": []}}', "its checksum"),
        pytest.param("", "it is not JSON", marks=pytest.mark.long),
        pytest.param(
            '{"version": 7, "checksum": "", "content": {}}',
            f"has version 7; {VERSION} can be read",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_broken_file_is_set_aside_and_said_in_one_line(tmp_path, text, why):
    (tmp_path / "settings.json").write_text(text)
    with begun(tmp_path) as process:
        said = [entry for entry in process.log if entry["level"] == "error"]
        assert len(said) == 1
        assert why in said[0]["error"]
        assert Path(said[0]["set_aside"]).read_text() == text
        assert ask(process, "demand", "set", "cpus:1", "--all")["change"]["lasts"]
    assert json.loads((tmp_path / "settings.json").read_text())["version"] == VERSION


def test_a_setting_that_is_not_possible_any_more_is_left_out_and_said(tmp_path):
    with begun(tmp_path) as process:
        ask(process, "limit", "set", "a/b/c", "cpus:1")
        ask(process, "limit", "set", "a", "cpus:2")
    with begun(tmp_path, "limits.role_depth=2") as process:
        said = process.await_said("an operator's setting is no longer valid and was left out")
        assert (said["setting"], "raise limits.role_depth" in said["error"]) == (
            "limit a/b/c",
            True,
        )
        (limit,) = ask(process, "limit", "list")["limits"]
        assert limit == {"role": "a", "limit": {"cpus": 2}}


@pytest.mark.long
def test_two_sidecars_do_not_share_a_directory(tmp_path):
    with begun(tmp_path):
        other = begun(tmp_path)
        assert other.process.wait(120) == 1
        other.__exit__()
        (said,) = other.said("cannot start")
        assert f"{tmp_path} is used by another process" in said["error"]


def test_without_a_directory_every_change_says_that_it_does_not_last():
    with SidecarProcess() as process:
        done = command(process, "demand", "set", "cpus:1", "--role", "eng")
        assert done.returncode == 0
        assert "this is lost when the sidecar's process ends: no state directory" in done.stdout
        assert "what operators set: lost when the process ends" in command(process, "status").stdout


def test_a_directory_that_cannot_be_written_any_more_is_said_and_the_change_is_in_force(tmp_path):
    directory = tmp_path / "state"
    with begun(directory) as process:
        # Same effect as a full disk: the new file cannot be created.
        (directory / "settings.json.new").mkdir()
        words = ("demand", "set", "cpus:1", "--role", "eng")
        done = command(process, *words, "--json", "--timeout", "60")  # a busy disk may be slow
        change = json.loads(done.stdout)["change"]
        assert (change["lasts"], "cannot be written" in change["lasts_not"]) == (False, True)
        assert (done.returncode, done.stderr) == (Exit.NOT_SAVED, "")
        done = command(process, *words)
        assert done.returncode == Exit.NOT_SAVED
        assert done.stderr.startswith("warning: the change is in force but not saved: ")
        assert "note:" not in done.stdout
        assert len(ask(process, "demand", "list")["demands"]) == 1
        await_true(lambda: "NOT SAVED" in command(process, "status").stdout)
        process.await_said("operators' settings cannot be saved")
        (directory / "settings.json.new").rmdir()
        assert ask(process, "demand", "set", "cpus:2", "--role", "eng")["change"]["lasts"]
        process.await_said("operators' settings can be saved again")
