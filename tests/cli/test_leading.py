"""Of several sidecars, commands ask the leader: the one with a master's session."""

import json

import pytest
from typer.testing import CliRunner, Result

from allocator.cli.app import app
from tests.server.sidecar_process import GrpcModule, SidecarProcess

NOWHERE = "127.0.0.1:1"


@pytest.fixture(scope="module")
def sidecars():
    """Two sidecars; a master has a session with the second."""
    with SidecarProcess() as first, SidecarProcess() as second, second.channel() as channel:
        module = GrpcModule(channel).begin()
        module.batch()
        yield first.targets[0], second.targets[0]


def run(targets: str, *words: str) -> Result:
    return CliRunner().invoke(app, list(words), env={"MESOS_ALLOCATOR_TARGET": targets})


def test_the_one_that_leads_is_asked(sidecars):
    first, second = sidecars
    for given in ([f"--target={first},{second}"], ["--target", second, "--target", first]):
        done = CliRunner().invoke(app, ["agents", "--output", "name", *given])
        assert (done.exit_code, done.stdout, done.stderr) == (0, "agent-1\nagent-2\n", "")
    done = run(f"{first},{second},{first}", "limit", "set", "eng", "cpus:1", "--force")
    assert done.exit_code == 0, done.stderr
    assert "eng" in run(second, "limit", "list").stdout
    assert "eng" not in run(first, "limit", "list").stdout
    # A single one is asked, whether or not it leads.
    assert run(first, "limit", "list").exit_code == 0
    done = run(first, "agents", "--output", "name")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith("note: no master has a session with this sidecar")
    assert run(second, "agents", "--state", "drained").stderr == ""


def test_the_status_says_which_one_leads(sidecars):
    first, second = sidecars
    lines = run(f"{first},{second},{NOWHERE}", "status").stdout.splitlines()
    assert lines[0].split() == ["sidecar", "leads", "session"]
    assert lines[1].split(maxsplit=2) == [first, "-", "no session"]
    assert lines[2].split(maxsplit=2)[:2] == [second, "leads"]
    assert f"no sidecar answers at {NOWHERE}" in lines[3]
    assert f"{second}:" in lines
    found = json.loads(run(f"{first},{second}", "status", "--json").stdout)["sidecars"]
    assert [(each["target"], each["leads"]) for each in found] == [(first, False), (second, True)]
    assert [each["status"]["in_session"] for each in found] == [False, True]


def test_monitoring_hears_of_the_one_that_leads_and_of_those_that_do_not_answer(sidecars):
    first, second = sidecars
    done = run(f"{first},{second}", "status", "--check")
    assert done.stdout.startswith(f"OK: {second} leads; in session with master master | "), done
    assert done.exit_code == 0
    done = run(f"{first},{second},{NOWHERE}", "status", "--check")
    assert (done.exit_code, done.stdout.split(":")[0]) == (1, "WARNING")
    assert f"no sidecar answers at {NOWHERE}" in done.stdout.partition(" | ")[0]
    done = run(f"{first},{NOWHERE}", "status", "--check")
    assert done.exit_code == 2
    assert done.stdout.startswith("CRITICAL: none of 2 sidecars leads; no sidecar answers at")


def test_that_none_leads_is_said_with_what_each_says(sidecars):
    first, _ = sidecars
    done = run(f"{first},{NOWHERE}", "agents")
    assert (done.exit_code, done.stdout) == (3, "")
    none, no_session, unreachable = done.stderr.splitlines()
    assert none == "error: none of 2 sidecars leads"
    assert no_session == f"error: {first}: no master's session"
    assert unreachable.startswith(f"error: no sidecar answers at {NOWHERE}")
    done = run(f"127.0.0.1:2,{NOWHERE}", "status")
    assert done.exit_code == 3
    assert [line.split(";")[0] for line in done.stderr.splitlines()] == [
        "error: no sidecar answers at 127.0.0.1:2",
        f"error: no sidecar answers at {NOWHERE}",
    ]


def test_with_two_leaders_one_must_be_named(sidecars):
    first, second = sidecars
    with SidecarProcess() as other, other.channel() as channel:
        module = GrpcModule(channel).begin()
        module.batch()
        done = run(f"{first},{second},{other.targets[0]}", "agents")
        assert done.exit_code == 1
        told = f"masters have sessions with {second}, {other.targets[0]}; name one of them"
        assert done.stderr == f"error: {told} by --target\n"


def test_a_wrong_address_among_several_is_named(sidecars):
    done = run(f"{sidecars[1]},elsewhere", "agents")
    assert done.exit_code == 2
    assert "--target 'elsewhere': must be host:port" in done.stderr
