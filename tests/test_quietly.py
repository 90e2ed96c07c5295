"""Set-up prints the output of its programs only if they fail, and then all of it."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def quietly(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ROOT / ".ci" / "quietly"), *words], capture_output=True, text=True, check=False
    )


def test_a_successful_command_prints_nothing():
    done = quietly("sh", "-c", "seq 100; echo warning >&2")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_failed_command_prints_everything_and_keeps_its_code():
    done = quietly("sh", "-c", "seq 100; echo why >&2; exit 3")
    assert (done.returncode, done.stdout) == (3, "")
    lines = done.stderr.splitlines()
    assert lines[:100] == [str(number) for number in range(1, 101)]
    assert lines[100] == "why"
    assert lines[101].startswith("quietly: ended with 3: sh -c")


def test_set_up_has_pip_and_apt_say_nothing():
    _, begun, rest = (ROOT / "Makefile").read_text().partition("\n$(BIN)/pip:\n")
    recipes, end, _ = rest.partition("\ntools:")
    assert begun
    assert end
    installs = [line for line in recipes.splitlines() if re.search(r"pip install|-m venv", line)]
    assert len(installs) == 4
    assert all(".ci/quietly" in line and line.startswith("\t@") for line in installs)
    assert 'quietly" env' in (ROOT / ".ci" / "debian-packages").read_text()
