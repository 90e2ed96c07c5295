"""`allocator-lab replay`: a recorded day is played under other policies."""

import json
from itertools import takewhile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from allocator.v1 import journal_pb2
from allocator.wire.journal.framing import MAGIC, frame, read_records
from laboratory.cli.app import app
from laboratory.links.stream import StreamLink
from laboratory.resources import AgentSpec
from laboratory.workloads.play import play
from laboratory.workloads.traces import Arrival, Replay
from tests.server.engine.test_loop_journal import long_play
from tests.server.sidecar_process import SidecarProcess


def replay(*arguments: object):
    return CliRunner().invoke(app, ["replay", *map(str, arguments)])


def replay_json(*arguments: object) -> dict:
    done = replay(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def worked(tmp_path_factory) -> Path:
    """The journal of a real sidecar, on whose offers two frameworks ran their tasks."""
    directory = tmp_path_factory.mktemp("worked")
    agents = ((0, AgentSpec("one", {"cpus": 4000, "mem": 4_096_000})),)
    arrivals = tuple(
        Arrival(0, role, role, {"cpus": 1000, "mem": 512_000}, (20_000,) * 6)
        for role in ("red", "blue")
    )
    socket = f"unix:{directory}/sidecar.sock"
    flag = f"journal.path={directory}/journals/journal"
    (directory / "journals").mkdir()
    with SidecarProcess(flag, listen=[socket]) as sidecar:
        play(Replay(("cpus", "mem"), agents, arrivals), StreamLink(socket, 1), tell_demand=True)
        # In order: a sidecar that is killed may not have written down what it answered last.
        assert sidecar.terminate() == 0
    return directory / "journals"


def test_another_policy_is_played_beside_the_one_in_force(worked, tmp_path):
    asked = ["--policy", "ps-dsf", "--policy", "drf", "--mode", "characterised"]
    done = replay(worked, *asked, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    for name in ("as recorded", "in force", "ps-dsf characterised", "drf characterised"):
        assert name in done.stdout
    assert "A journal does not say" in done.stdout
    kept = json.loads((tmp_path / "out" / "what-if.json").read_text())
    assert [each["name"] for each in kept][2:] == ["ps-dsf characterised", "drf characterised"]
    recorded, *played = (each["tasks"] for each in kept)
    assert [recorded, *played] == [12] * 4
    assert (tmp_path / "out" / "what-if.png").read_bytes().startswith(b"\x89PNG")
    data = replay_json(worked, "--policy", "tsf")
    assert [each["name"] for each in data["what_if"]][2:] == ["tsf oblivious"]
    assert (data["differing"], data["checkpoints_differing"]) == (0, 0)


@pytest.mark.parametrize("closed", [True, False])
def test_running_tasks_count_alike_with_and_without_the_end_of_the_session(
    worked, closed, tmp_path
):
    """Whether the sidecar heard of the end of its last session before its own end is chance."""
    with (worked / "journal").open("rb") as file:
        # There is one session. What its end is answered with goes with its end.
        records = list(takewhile(lambda each: not each.HasField("closed"), read_records(file)))
    if closed:
        session = max(each.session for each in records)
        end = journal_pb2.JournalRecord(session=session, closed=journal_pb2.JournalClosed())
        records.append(end)
    with (worked / "journal").open("rb") as file:
        start = file.read(len(MAGIC) + 1)
    (tmp_path / "journal").write_bytes(start + b"".join(frame(each) for each in records))
    what_if = replay_json(tmp_path, "--policy", "drf")["what_if"]
    assert {each["tasks"] for each in what_if} == {12}


def test_where_nothing_ran_nothing_can_be_played(tmp_path):
    long_play(tmp_path / "journal", 2)
    done = replay(tmp_path, "--policy", "drf")
    assert done.exit_code == 1
    assert "no resources in use; nothing to play" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--policy", "best"], "--policy: 'best'; choose from"),
        (
            ["--policy", "drf", "--mode", "some"],
            "'some' is not one of 'oblivious', 'characterised'",
        ),
        (["--mode", "oblivious"], "--policy"),
    ],
)
def test_invalid_options_are_named(worked, options, said):
    done = replay(worked, *options)
    assert done.exit_code == 2
    assert said in done.stderr
