"""Users' own policies, by `--plugin`, in every command that plays."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from allocator.cli.tree import Exit
from allocator.core import UserCodeError, describe
from allocator.policies import POLICIES
from tests.cli.command_tree import LAB, invoke
from tests.tiers import long

EXAMPLE = str(Path(__file__).resolve().parents[2] / "examples" / "busy_first.py")

SCENARIO = """
about = "A small one."
[[agents]]
name = "agent"
capacity = "cpus:4;mem:8192"
[[frameworks]]
name = "job"
role = "r"
tasks = 4
task = "cpus:1;mem:512"
duration = { law = "constant", mean_s = 10.0 }
"""

FAILING = """
from allocator.policies import Entry
from allocator.policies.drf import drf
from allocator.policies.filling import Filling


class Mine:
    def __init__(self):
        self.filling = Filling(drf, "listed")

    def allocate(self, snapshot, seed):
        if {when}:
            self.pick()
        return self.filling.allocate(snapshot, seed)

    def pick(self):
        raise KeyError("too many")


POLICIES = {{"mine": Entry(lambda spec: {made})}}
"""


@pytest.fixture(autouse=True)
def registry():
    """Restore the registry afterwards."""
    before = dict(POLICIES)
    yield
    POLICIES.replace(before)


@pytest.fixture
def scenario(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(SCENARIO)
    return str(file)


def failing(tmp_path: Path, when: str = "True", made: str = "Mine()") -> str:
    """A policy that fails; its trial has the seed 1."""
    file = tmp_path / "mine.py"
    file.write_text(FAILING.format(when=when, made=made))
    return str(file)


def simulate(scenario: str, tmp_path: Path, *words: str):
    out = ("--out", str(tmp_path / "out"), "--seeds", "1", "--mode", "oblivious")
    return invoke([LAB, "simulate", scenario, *out, *words])


@pytest.mark.parametrize("jobs", ["2", *long("1")])
def test_a_policy_of_one_s_own_is_simulated_in_workers_too(scenario, tmp_path, jobs):
    done = simulate(
        scenario, tmp_path, "--plugin", EXAMPLE, "--policy", "drf,busy-first", "--jobs", jobs
    )
    assert done.exit_code == 0, done.output
    assert "busy-first" in done.stdout


PLACE = r"KeyError: 'too many' at {file}:17 in pick, called from line 13 in allocate"


def test_a_failing_policy_is_reported_before_anything_is_played(scenario, tmp_path):
    file = failing(tmp_path)
    done = simulate(scenario, tmp_path, "--plugin", file, "--policy", "mine")
    assert done.exit_code == Exit.USAGE
    (line,) = done.stderr.splitlines()
    assert f"the policy 'mine' of {file} fails on a small cluster: " in line
    assert PLACE.format(file=file) in line


def test_a_policy_that_fails_later_ends_the_simulation(scenario, tmp_path):
    file = failing(tmp_path, when="seed != 1")
    done = simulate(scenario, tmp_path, "--plugin", file, "--policy", "mine", "--jobs", "1")
    assert done.exit_code == Exit.FAILURE, done.output
    *_, line = done.stderr.splitlines()
    assert line.startswith("error: the policy 'mine' failed: ")
    assert PLACE.format(file=file) in line


@pytest.mark.parametrize("command", ["simulate", "advise", "demo", "demo soak"])
def test_a_file_that_is_wrong_is_named_by_every_command(scenario, tmp_path, command):
    file = tmp_path / "wrong.py"
    file.write_text("def made():\n    raise OSError('no luck')\n\n\nmade()\n")
    words = {"simulate": [scenario], "advise": [str(tmp_path)], "demo": [], "demo soak": []}
    done = invoke([LAB, *command.split(), *words[command], "--plugin", str(file)])
    assert done.exit_code == Exit.USAGE
    said = "fails at line 2, called from line 5: OSError: no luck; fix it"
    assert done.stderr == f"error: --plugin {file}: {said}\n"


def test_an_error_of_build_is_reported_with_its_place(scenario, tmp_path):
    file = failing(tmp_path, made="{}['nothing']")
    done = simulate(scenario, tmp_path, "--plugin", file, "--policy", "mine")
    assert done.exit_code == Exit.USAGE
    (line,) = done.stderr.splitlines()
    assert re.search(
        r"the policy 'mine' of \S+ cannot be built: KeyError: 'nothing' at \S+:20", line
    )


def test_a_soak_plays_it_on_a_sidecar_of_its_own():
    words = ("--seconds", "6", "--size", "2", "--policy", "busy-first", "--plugin", EXAMPLE)
    done = subprocess.run(
        [sys.executable, "-m", "laboratory", "demo", "soak", *words],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "0 differences" in done.stdout


def test_only_code_of_users_has_a_place():
    assert describe(UserCodeError("as it is")) == "as it is"
    try:
        POLICIES["drf"].build("nothing")  # type: ignore[arg-type]
    except AttributeError as error:
        text = describe(error)
    assert re.match(r"AttributeError: .* at .*/test_plugins_everywhere\.py:\d+ in test_only", text)
