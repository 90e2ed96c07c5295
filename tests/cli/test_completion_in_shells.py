"""Completion of untrusted names in operators' shells: real shells, a real sidecar."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from allocator.cli.app import app
from allocator.cli.remote import completing
from allocator.core import AddFramework, FrameworkInfo
from tests.integration.sessions.two_frameworks import CLUSTER
from tests.server.sidecar_process import GrpcModule, SidecarProcess

pytestmark = pytest.mark.long

PROGRAM = Path(sys.executable).with_name("mesos-allocator")
MARK = "stranger-was-here"
"""A file that exists only if a shell executed a framework's name."""

HONEST = "zz-honest_1.2:a/b@c"
ALONE = f"yy$(touch${{IFS}}{MARK})"
"""No other name has this prefix, so that a shell completes it after one key."""

HOSTILE = (
    f"zz$(touch${{IFS}}{MARK})",
    f"zz`touch\t{MARK}`",
    f"zz;touch {MARK};",
    f"zz|touch {MARK}",
    f"zz&touch {MARK}&",
    f"zz\ntouch {MARK}\n",
    f"zz'$(touch {MARK})'",
    f'zz"$(touch {MARK})"',
    # A shell that escapes dollars but not backslashes would turn this into a dollar.
    f"zz\\$(touch${{IFS}}{MARK})",
    f"zz<(touch {MARK})",
    f"zz{{a,$(touch {MARK})}}",
    f"zz>{MARK}",
    "zz*",
    "zz!!",
    "zz#",
    "zz \x1b]0;title\x07",
    "zz\u202egnp.exe",
    "zz" + "z" * 300,
    "~root",
    "=ls",
    "-zz",
    "--target=elsewhere:5056",
)
SHELLS = ("bash", "zsh", "fish")
KILL_LINE = "\x15"


@pytest.fixture(scope="module")
def sidecar() -> Iterator[SidecarProcess]:
    with SidecarProcess() as process, process.channel() as channel:
        names = [*HOSTILE, ALONE, HONEST]
        more = [
            AddFramework(3 + row, FrameworkInfo(f"id-{3 + row}", name=name), (1,))
            for row, name in enumerate(names)
        ]
        module = GrpcModule(channel).begin((*CLUSTER, *more))
        module.batch()
        yield process
        module.leave()


@pytest.mark.parametrize("begun", ["", "zz", "~", "--t"])
@pytest.mark.parametrize("shell", SHELLS)
def test_only_harmless_names_are_completed(sidecar, monkeypatch, shell, begun):
    monkeypatch.setattr(completing, "TIMEOUT_S", 60.0)
    line = f"mesos-allocator explain framework {begun}"
    environment = {
        "_MESOS_ALLOCATOR_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": "3",
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "MESOS_ALLOCATOR_TARGET": sidecar.targets[0],
    }
    done = CliRunner().invoke(app, [], env=environment, prog_name="mesos-allocator")
    said = done.stdout.replace(r"\\:", ":").removeprefix("_arguments '*: :")
    assert (HONEST in said) == (begun in {"", "zz"}), said
    for hostile in (
        MARK,
        "*",
        "!!",
        "zz#",
        "\x1b",
        "\u202e",
        "zzzz",
        "root",
        "=ls",
        "-zz",
        "elsew",
    ):
        assert hostile not in said


@pytest.mark.parametrize(("begun", "found"), [("cpus:2\\;m", []), ("'cpus:2;m", ["cpus:2;mem:"])])
def test_bash_is_given_a_semicolon_only_in_quotes(sidecar, monkeypatch, begun, found):
    """It separates amounts, and ends a command: the rest could be ``PATH=/elsewhere``."""
    monkeypatch.setattr(completing, "TIMEOUT_S", 60.0)
    environment = {
        "_MESOS_ALLOCATOR_COMPLETE": "complete_bash",
        "COMP_WORDS": f"mesos-allocator limit set ops {begun}",
        "COMP_CWORD": "4",
        "MESOS_ALLOCATOR_TARGET": sidecar.targets[0],
    }
    done = CliRunner().invoke(app, [], env=environment, prog_name="mesos-allocator")
    assert done.stdout.split() == found


class Terminal:
    """A shell on a terminal of its own."""

    def __init__(self, shell: str, path: str, setsid: str, directory: Path, target: str) -> None:
        words = {
            "bash": [path, "--norc", "--noprofile", "-i"],
            "zsh": [path, "-f", "-i"],
            "fish": [path, "--no-config", "-i"],
        }
        self.shown = ""
        main, side = pty.openpty()
        self._terminal = main
        environment = {
            **os.environ,
            "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(directory),
            "TERM": "dumb",
            "MESOS_ALLOCATOR_TARGET": target,
        }
        self._process = subprocess.Popen(
            [setsid, "--ctty", *words[shell]],
            stdin=side,
            stdout=side,
            stderr=side,
            cwd=directory,
            env=environment,
        )
        os.close(side)

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def await_shown(self, wanted: str, again: str = "", within_s: float = 120.0) -> None:
        """Wait until the terminal shows something; press a key again from time to time."""
        until_s = time.monotonic() + within_s
        while wanted not in self.shown:
            assert time.monotonic() < until_s, self.shown
            if select.select([self._terminal], [], [], 3.0)[0]:
                try:
                    self.shown += os.read(self._terminal, 65536).decode(errors="replace")
                except OSError:
                    raise AssertionError(f"the shell is gone: {self.shown}") from None
            else:
                self.type(again)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)


@contextmanager
def on_terminal(
    shell: str, path: str, setsid: str, directory: Path, target: str
) -> Iterator[Terminal]:
    """Start a shell that completes our commands."""
    source = {"_MESOS_ALLOCATOR_COMPLETE": f"source_{shell}"}
    script = subprocess.run(
        [PROGRAM], env={**os.environ, **source}, capture_output=True, text=True, check=True
    )
    (directory / "complete").write_text(script.stdout)
    terminal = Terminal(shell, path, setsid, directory, target)
    try:
        prepare = "autoload -U compinit; compinit -u; " if shell == "zsh" else ""
        terminal.type(f"{prepare}source ./complete; echo pre''pared\n")
        terminal.await_shown("prepared")
        yield terminal
    finally:
        terminal.end()


@pytest.mark.parametrize("shell", SHELLS)
def test_no_shell_runs_what_a_framework_is_named(sidecar, tmp_path, tool, shell):
    path = tool("bash") if shell == "bash" else found_or_skipped(shell)
    with on_terminal(shell, path, tool("setsid"), tmp_path, sidecar.targets[0]) as terminal:
        # Only the honest one is left as a completion, so the typed word becomes its name.
        terminal.type("mesos-allocator explain framework zz-\t")
        terminal.await_shown("zz-honest_1.2", again="\t")
        # The key may have been pressed once more while the shell still completed, which adds words.
        terminal.type(f"{KILL_LINE}mesos-allocator explain framework {HONEST} --timeout 120\n")
        terminal.await_shown("in the role eng")
        for number in range(3):
            terminal.type("mesos-allocator explain framework yy\t\n")
            terminal.type(f"echo over-{number}''-\n")
            terminal.await_shown(f"over-{number}-")
        assert not (tmp_path / MARK).exists()


def found_or_skipped(shell: str) -> str:
    """Find a shell that only some machines have."""
    return shutil.which(shell) or pytest.skip(f"{shell} is not installed: not tried")
