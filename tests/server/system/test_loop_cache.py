"""Where a process looks for compiled loops: in a checkout, an installed package, an image."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from allocator.server.system import loop_cache

ROOT = Path(__file__).resolve().parents[3]

_ASK = (
    "import os; from allocator.server.system import loop_cache;"
    " print(loop_cache.prepare()); print(os.environ['NUMBA_CACHE_DIR'])"
)
_FINISH = (
    "import os, pathlib; from allocator.server.system import loop_cache; loop_cache.prepare();"
    " pathlib.Path(os.environ['NUMBA_CACHE_DIR'], 'a-loop').touch(); loop_cache.mark_complete()"
)


class Copy:
    """A copy of the package, and a home directory; the process sees nothing else."""

    def __init__(self, place: Path) -> None:
        self.place, self.home = place / "place", place / "home"
        self.package = self.place / "allocator"
        self.as_user: list[str] = []
        self.caches = self.home / ".cache" / "mesos-allocator"
        without = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "allocator", self.package, ignore=without)
        self.home.mkdir()

    def python(self, *words: str, **more: str) -> list[str]:
        """Run Python with the copy; returns the lines that it printed."""
        ours = {"NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONPATH"}
        environment = {name: value for name, value in os.environ.items() if name not in ours}
        environment |= {"HOME": str(self.home), "PYTHONPATH": str(self.place), **more}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        command = [*self.as_user, sys.executable, *words]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment, cwd=self.home
        )
        return done.stdout.splitlines()

    def directory(self, **more: str) -> Path:
        """The directory of compiled loops of a process without warnings."""
        note, directory = self.python("-c", _ASK, **more)
        assert note == ""
        return Path(directory)


@pytest.fixture
def installed(tmp_path) -> Copy:
    return Copy(tmp_path)


@pytest.fixture
def checkout(tmp_path) -> Copy:
    copy = Copy(tmp_path)
    (copy.place / "pyproject.toml").touch()
    return copy


def _closed(directory: Path) -> None:
    """Prevent even root from creating anything in a directory: a file has its name."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.touch()


def test_a_checkout_has_loops_of_its_own(checkout):
    directory = checkout.directory()
    assert directory.parent == checkout.place / ".cache" / "numba"
    checkout.python("-c", _FINISH)
    said = checkout.python("-m", "allocator", "warm")
    assert said == [f"already compiled: {directory}"]
    assert list(checkout.home.iterdir()) == []


def test_an_installed_package_keeps_loops_beside_its_bytecode(installed):
    directory = installed.directory()
    assert directory.parent == installed.package / "__pycache__"
    installed.python("-c", _FINISH)
    assert installed.python("-m", "allocator", "warm") == [f"already compiled: {directory}"]
    assert list(installed.home.iterdir()) == []


@pytest.mark.parametrize("kind", ["checkout", "installed"])
def test_where_it_cannot_be_written_loops_are_in_the_users_cache(kind, request):
    copy = request.getfixturevalue(kind)
    _closed(copy.place / ".cache")
    _closed(copy.package / "__pycache__")
    assert copy.directory().parent == copy.caches


def test_a_variable_names_another_directory(installed, tmp_path):
    named = {"NUMBA_CACHE_DIR": str(tmp_path / "named")}
    directory = installed.directory(**named)
    assert directory.parent == tmp_path / "named"
    # As a child process that was given the directory itself.
    assert installed.directory(NUMBA_CACHE_DIR=str(directory)) == directory
    assert not (installed.package / "__pycache__").exists()


def test_complete_loops_that_cannot_be_written_fill_the_users_cache(installed, tool):
    """Example: root compiled the loops, and another user may not write beside the package."""
    installed.python("-c", _FINISH)
    complete = installed.directory()
    (complete / "books").mkdir()
    for each in (complete / "books", complete):
        each.chmod(0o555)
    if os.geteuid() == 0:
        caps = ("--inh-caps=-dac_override", "--bounding-set=-dac_override")
        installed.as_user = [tool("setpriv"), *caps]
    directory = installed.directory()
    assert directory == installed.caches / complete.name
    kept = {each.name for each in directory.iterdir()}
    assert kept == {"a-loop", "books", loop_cache.COMPLETE}
    assert os.access(directory / "books", os.W_OK)
    assert list(directory.parent.iterdir()) == [directory], "nothing else is left there"
    assert installed.python("-m", "allocator", "warm") == [f"already compiled: {directory}"]
