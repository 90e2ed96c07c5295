"""A starved machine makes tests slow, and ends no run; a test that hangs ends alone."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

TESTS = """
import ast
import time

import pytest

SOURCE = "x = [1]\\n" * 2000


def parse_for(seconds):
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        ast.parse(SOURCE)


@pytest.fixture
def slow():
    parse_for(1.0)


def test_what_is_set_up_slowly_is_only_slow(slow):
    pass


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    if call.when == "call":
        parse_for(1.0)
    return (yield)


def test_that_hangs():
    parse_for(600)


def test_after_it():
    pass
"""


def test_what_pytest_does_itself_is_not_cut_off(tmp_path):
    """Nor are fixtures; the bound is half a second here."""
    file = tmp_path / "test_theirs.py"
    file.write_text(TESTS)
    (tmp_path / "conftest.py").write_text("from test_theirs import pytest_runtest_makereport\n")
    words = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), "--timeout", "0.5"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words, str(file)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert "INTERNALERROR" not in said, said
    (last,) = re.findall(r"=+ (.* in [\d.]+s.*) =+\n\Z", said)
    assert last.startswith("1 failed, 2 passed"), said
    assert "test_that_hangs" in said
