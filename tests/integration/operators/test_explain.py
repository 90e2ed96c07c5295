"""A starving framework on a real sidecar and an emulated master: the explanation, and the fix.

The commands run during an experiment.
"""

import json
import shlex
from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

from allocator.cli.app import app
from allocator.core import PolicySpec
from laboratory.links.borrowed import set_policy
from laboratory.links.stream import StreamLink
from laboratory.workloads.play import Played, play
from laboratory.workloads.spark_experiment import experiment
from tests.plain_loops import plain_sidecar
from tests.server.sidecar_process import await_true

Command = Callable[..., Result]

RULE_MS, LOOK_MS, LATER_MS = 5_000, 60_000, 90_000


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory):
    with plain_sidecar(tmp_path_factory.mktemp("s")) as process:
        yield process


@pytest.fixture
def command(sidecar) -> Command:
    def run(*words: str) -> Result:
        return CliRunner().invoke(app, [*words, "--target", sidecar.target], env={"COLUMNS": "200"})

    return run


def asked(command: Command, *words: str) -> dict:
    done = command("explain", *words, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


class Story:
    """An experiment during which commands are run."""

    def __init__(self, jobs: int) -> None:
        self.scenario = experiment(7, jobs=jobs)
        self.kinds, self.agents = self.scenario.kinds, self.scenario.agents
        self.jobs = self.scenario.jobs
        self._steps: list[tuple[int, Callable[[], None]]] = []

    def at(self, when_ms: int, step: Callable[[], None]) -> None:
        self._steps.append((when_ms, step))

    def begin(self, stage) -> None:
        self.master = stage.master
        self.scenario.begin(stage)
        for when_ms, step in self._steps:
            stage.at(when_ms, self._settled(step))

    def _settled(self, step: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            self.master.settle()
            step()

        return run

    def play(self, target: str) -> Played:
        return play(self, StreamLink(target), tell_demand=False)


def test_a_starving_framework_is_explained_and_fixed(sidecar, command):
    """A rule with a typo excludes a role from all agents; the explanation names it and the fix."""
    set_policy(sidecar.target, PolicySpec("drf"))
    story = Story(jobs=2)
    heard: dict[str, dict] = {}
    told: list[str] = []

    def misread() -> None:
        words = ("constraint", "set", "rack=r9", "--role", "WordCount")
        assert command(*words).exit_code == 4, "probably a mistake"
        done = command(*words, "--force")
        assert done.exit_code == 0, done.stderr

    def wonder() -> None:
        answer = asked(command, "role", "WordCount")
        heard["starving"] = answer
        framework = answer["clients"][0]["framework_id"]
        told.append(command("explain", "framework", framework).stdout)
        (blocker,) = [
            each for each in answer["clients"][0]["blockers"] if each["reason"] == "constraint"
        ]
        heard["blocker"] = blocker
        done = command(*unquoted(blocker["mend"]))
        assert done.exit_code == 0, done.stderr

    def see() -> None:
        heard["mended"] = asked(command, "role", "WordCount")

    for when_ms, step in ((RULE_MS, misread), (LOOK_MS, wonder), (LATER_MS, see)):
        story.at(when_ms, step)
    played = story.play(sidecar.target)

    starving = heard["starving"]["clients"][0]
    assert starving["open_agents"] == 0
    assert "rack=r9, an operator's rule for" in heard["blocker"]["cause"]
    assert heard["blocker"]["agents"] == starving["agents"] == 6
    assert starving["blockers"][0]["reason"] == "constraint"
    assert "every agent (constraint): rack=r9" in told[0]
    assert "mesos-allocator constraint remove --role 'WordCount'" in told[0]
    # Offers before the rule are listed with their outcomes; there are none after it.
    later = heard["mended"]["clients"]
    assert not any(
        each["reason"] == "constraint" for client in later for each in client["blockers"]
    )
    assert max(client["offered_ms"] for client in later) > LOOK_MS
    assert {each["then"] for client in later for each in client["offers"]} >= {"accepted"}
    assert len(played.progress.ended_ms) == story.jobs
    assert not played.record.rejected


def unquoted(mend: str) -> list[str]:
    """The words of a command, as a shell splits them, without the program's name."""
    program, *words = shlex.split(mend)
    assert program == "mesos-allocator"
    return words


def test_cycles_won_by_another_framework_name_it(sidecar, command):
    set_policy(sidecar.target, PolicySpec("drf"))
    story = Story(jobs=2)
    answers: list[dict] = []

    def look() -> None:
        found = [asked(command, "role", role, "--cycles", "30") for role in ("Pi", "WordCount")]
        given = [each["agent"] for answer in found for each in given_in(answer)]
        answers.extend([*found, asked(command, "agent", given[0])])

    for when_ms in (20_000, 30_000, 40_000):
        story.at(when_ms, look)
    story.play(sidecar.target)
    roles = [answer for answer in answers if answer["kind"] == "role"]
    losses = [
        loss
        for answer in roles
        for client in answer["clients"]
        for cycle in client["cycles"]
        for loss in cycle["losses"]
    ]
    assert losses
    for loss in losses:
        assert loss["agents"] == 0 or loss["winner_framework"] or loss["winner"]["name"]
        winner, loser = loss["winner"]["score"], loss["loser"]["score"]
        if loss["why"] == "the smaller score comes first":
            assert winner < loser
    agents = [answer for answer in answers if answer["kind"] == "agent"]
    assert all(answer["capacity"]["cpus"] > 0 for answer in agents)
    assert any(answer["holders"] for answer in agents)


def given_in(answer: dict) -> list[dict]:
    return [
        given
        for client in answer["clients"]
        for cycle in client["cycles"]
        for given in cycle["given"]
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("framework", "sparc"), "framework = 'sparc': there is no such framework; no master has"),
        (("role", "nobody"), "role = 'nobody': there is no such role; no master has a session"),
        (("agent", ""), "nothing is given; name one framework, role or agent"),
    ],
)
def test_an_unknown_framework_is_an_error(command, words, message):
    await_true(lambda: "session          none" in command("status").stdout)
    done = command("explain", *words)
    assert done.exit_code == 4
    assert done.stderr.startswith(f"error: {message}")
    assert len(done.stderr.splitlines()) == 1
    done = command("explain", *words, "--json")
    assert (done.exit_code, done.stdout) == (4, "")
    error = json.loads(done.stderr)["error"]
    assert (error["code"], error["reason"]) == (4, "refused")
    assert error["message"].startswith(message)


def test_a_name_that_is_nearly_right_is_answered_with_those_that_are(sidecar, command):
    story = Story(jobs=1)
    said: list[str] = []

    def ask() -> None:
        known = json.loads(command("shares", "--json").stdout)["clients"][0]["framework_id"]
        said.append(command("explain", "framework", known[:-1]).stderr)
        said.append(known)

    story.at(10_000, ask)
    story.play(sidecar.target)
    assert "there is no such framework; did you mean" in said[0]
    assert repr(said[1]) in said[0]
