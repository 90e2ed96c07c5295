"""Shared set-up: Hypothesis profiles, the cache of compiled loops, required tools."""

import contextvars
import functools
import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer.testing
from hypothesis import HealthCheck, settings

from allocator.server.system import loop_cache
from tests.simulation.brain import LIBRARY, library_path

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parent.parent


# A shell ignores Ctrl-C for background jobs, and children inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Otherwise each of hundreds of processes started by tests would compile the package's source.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The runner rebuilds the tree of commands for each call, which takes longer than most calls.
_once = functools.cache(typer.testing._get_command)  # type: ignore[attr-defined]
typer.testing._get_command = _once  # type: ignore[attr-defined]

_invoke = typer.testing.CliRunner.invoke


@functools.wraps(_invoke)
def _invoke_apart(*args: Any, **options: Any) -> typer.testing.Result:
    """Run a command in a context of its own: its context variables end with it, as in a process."""
    return contextvars.copy_context().run(_invoke, *args, **options)


typer.testing.CliRunner.invoke = _invoke_apart  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Disable garbage collection during imports, and exempt their objects from it.

    Later collections are rare: a worker has enough memory, and little time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        gc.enable()


# Before anything imports numba, and inherited by the processes that tests start.
loop_cache.prepare()


def pytest_configure(config: pytest.Config) -> None:
    """Compile once before tests run in parallel; otherwise each worker would."""
    if getattr(config.option, "numprocesses", None) and not loop_cache.is_complete():
        subprocess.run([sys.executable, "-m", "allocator", "warm"], check=True, cwd=ROOT)


# A first call compiles, so examples have no deadline; pytest-timeout bounds the test.
_common = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
# `make test`: the same examples in every run of continuous integration.
settings.register_profile("quick", _common, max_examples=10, derandomize="CI" in os.environ)
# `make test-all`: random ones.
settings.register_profile("all", _common, max_examples=100)
settings.register_profile("nightly", _common, max_examples=3000, stateful_step_count=200)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


TOOLS = ROOT / ".ci" / "tools.txt"


def declared_tools() -> dict[str, str]:
    """The programs that tests may start, each with its Debian package."""
    rows = (line.split() for line in TOOLS.read_text("utf-8").splitlines())
    return {row[0]: row[1] for row in rows if row and row[0] != "#"}


@pytest.fixture(scope="session")
def tool() -> Callable[[str], str]:
    """Give a function that finds a program, or skips the test: in CI a missing one is a failure."""
    known = declared_tools()

    def find(name: str) -> str:
        assert name in known, f"{name} has no line in {TOOLS.name}: `make tools` installs those"
        here = str(Path(sys.executable).parent)
        path = shutil.which(name, path=os.pathsep.join([here, os.environ.get("PATH", "")]))
        if path is None:
            fail_or_skip = pytest.fail if os.environ.get("CI") else pytest.skip
            fail_or_skip(f"{name} is not here: apt-get install {known[name]}, or `make tools`")
        return path

    return find


@pytest.fixture(scope="module")
def browser(tool) -> "Iterator[Browser]":
    from playwright.sync_api import sync_playwright

    program = tool("chromium")
    with sync_playwright() as playwright:
        # The tests may run as root, for which Chromium has no sandbox.
        running = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="session")
def brain_library() -> Path:
    """The module's brain as a shared library."""
    found = library_path()
    if found is None:
        fail_or_skip = pytest.fail if os.environ.get("CI") else pytest.skip
        fail_or_skip(f"`make module` builds the brain, and {LIBRARY} names it")
    return found
