"""Shell completion, requested as shells do; a real sidecar provides the names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from allocator.cli.remote import completing
from allocator.policies import POLICIES, SELECTIONS
from tests.cli.command_tree import LAB, invoke
from tests.integration.sessions.two_frameworks import CLUSTER
from tests.server.sidecar_process import GrpcModule, SidecarProcess

UNREACHABLE = "unix:/nowhere/none"


@pytest.fixture(scope="module")
def sidecar():
    with SidecarProcess() as process:
        channel = process.channel()
        module = GrpcModule(channel).begin(CLUSTER)
        module.batch()
        yield process
        module.leave()
        channel.close()


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Disable the time limit of completion, for slow machines."""
    monkeypatch.setattr(completing, "TIMEOUT_S", 60.0)


def asking(line: str, target: str, **more: str) -> dict[str, str]:
    """Make the environment that bash sets, the cursor at the end of the line."""
    return {
        f"_{line.split(maxsplit=1)[0].upper().replace('-', '_')}_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
        "MESOS_ALLOCATOR_TARGET": target,
        **more,
    }


def completed(line: str, target: str, **more: str) -> list[str]:
    program = line.split()[:1]
    done = invoke(program if program == [LAB] else [], env=asking(line, target, **more))
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout.split()


def test_the_program_itself_answers_a_shell():
    program = Path(sys.executable).with_name("mesos-allocator")
    line = "mesos-allocator policy set --mode ch"
    environment = {**os.environ, **asking(line, UNREACHABLE)}
    done = subprocess.run([program], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "characterised\n", "")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("explain framework ", ["id-1", "id-2", "kafka", "spark"]),
        ("explain framework k", ["kafka"]),
        ("explain role ", ["eng", "ops"]),
        ("explain agent ", ["a1", "a2"]),
        ("drain set a1 a", ["a1", "a2"]),
        ("limit set o", ["ops"]),
        ("limit set ops c", ["cpus:"]),
        ("limit set ops 'cpus:2;m", ["cpus:2;mem:"]),
        ("demand set cpus:1 --framework-name s", ["spark"]),
        ("constraint set ssd --role e", ["eng"]),
        ("shares --role o", ["ops"]),
        ("policy set ps", ["ps-dsf", "ps-dsf-exact"]),
        ("policy set --subtree e", ["eng="]),
        ("policy set --subtree eng=ts", ["eng=tsf"]),
        ("explain framework nobody", []),
    ],
)
def test_names_are_asked_of_the_sidecar(sidecar, line, found):
    assert completed("mesos-allocator " + line, sidecar.targets[0]) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("pol", ["policy"]),
        ("policy ", ["show", "set"]),
        ("explain framework ", []),
        ("policy set ", list(POLICIES)),
        ("policy set --mode ", ["oblivious", "characterised"]),
        ("policy set --selection ", list(SELECTIONS)),
        ("settings reset s", ["shadow"]),
        ("shares --sort ", ["waiting", "share", "name"]),
    ],
)
def test_other_completions_need_no_sidecar(line, found):
    assert completed("mesos-allocator " + line, UNREACHABLE) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("sim", ["simulate"]),
        ("demo --modes oblivious,", ["oblivious,characterised"]),
        ("demo --policies drf,ts", ["drf,tsf"]),
        ("demo --trace s", ["section-v", "swim"]),
        ("replay x --policy rps", ["rps-dsf"]),
        ("simulate x --policy rps", ["rps-dsf"]),
        ("reproduce quincy-so", ["quincy-solver"]),
    ],
)
def test_the_laboratory_completes_too(line, found):
    assert completed(f"{LAB} {line}", UNREACHABLE) == found


@pytest.mark.parametrize("option", ["--token-file /none", "--tls-ca /none.pem", "--tls-cert /none"])
def test_an_unreachable_sidecar_completes_nothing_silently(option):
    assert completed(f"mesos-allocator explain role {option} e", "127.0.0.1:9") == []


def test_the_token_is_sent_to_a_sidecar_that_requires_it(tmp_path):
    token = tmp_path / "token"
    token.write_text("a-long-secret\n")
    with SidecarProcess(f"access.admin_read_token={token}") as process:
        target = process.targets[0]
        line = "mesos-allocator shares --sort name --role "
        channel = process.channel()
        module = GrpcModule(channel).begin(CLUSTER)
        module.batch()
        assert completed(line, target) == []
        given = {"MESOS_ALLOCATOR_TOKEN_FILE": str(token)}
        assert completed(line, target, **given) == ["eng", "ops"]
        module.leave()
        channel.close()
