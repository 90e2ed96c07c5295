"""Common start and end of all commands.

An error is one line on standard error, or JSON with ``--json``.
"""

import errno
import gc
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from enum import IntEnum
from itertools import pairwise, takewhile
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Any, ClassVar, NoReturn, TextIO

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from allocator import __version__
from allocator.near import suggestion
from allocator.plain import json_text, printable
from allocator.server.system import loop_cache, threads


class Exit(IntEnum):
    """Exit codes of all commands."""

    OK = 0
    FAILURE = 1
    """Any other error."""
    USAGE = 2
    """The command line does not parse."""
    UNREACHABLE = 3
    """No sidecar at the target, no answer in time, or several targets and none leads."""
    REFUSED = 4
    """The sidecar rejects the request as invalid, or cannot satisfy it now."""
    NOT_SAVED = 5
    """The change is in force but could not be saved: it is lost when the sidecar's process ends."""
    CONFIG = 78
    """The configuration is invalid (EX_CONFIG of sysexits.h)."""


class Check(IntEnum):
    """Exit codes of `status --check`: those of monitoring plugins."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    """The sidecar does not answer, or makes no decisions."""
    UNKNOWN = 3
    """The check could not be run."""


CHECKING = ContextVar("CHECKING", default=False)
"""Whether the command is `status --check`: monitoring reads the first line of standard output."""

JSON_WANTED = ContextVar("JSON_WANTED", default=False)
"""Whether to print answers and errors as JSON."""


def fail(code: Exit, *lines: str) -> NoReturn:
    """Print errors to standard error, as JSON if answers are JSON, and exit with a code."""
    if CHECKING.get():
        found = Check.CRITICAL if code is Exit.UNREACHABLE else Check.UNKNOWN
        sys.stdout.write(f"{found.name}: {printable('; '.join(lines))}\n")
        sys.exit(found)
    if JSON_WANTED.get():
        error = {"code": int(code), "reason": code.name.lower(), "message": "; ".join(lines)}
        lines = (json_text({"error": error}),)
    else:
        lines = tuple(f"error: {printable(line)}" for line in lines)
    try:
        sys.stderr.write("".join(f"{line}\n" for line in lines))
        sys.stderr.flush()
    except OSError:  # standard error is closed: the exit code has to suffice
        _drop(sys.stderr)
    sys.exit(code)


def _drop(stream: TextIO) -> None:
    """Discard buffered output, or the interpreter would report an error when it flushes it."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


PLAIN: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
"""Options of Typer that make the help of all groups look the same."""


def choose(unknown: Sequence[str], known: Iterable[str]) -> str:
    """List the valid words, and suggest one instead of the first unknown word.

    >>> choose(["ps_dsf"], ["drf", "ps-dsf"])
    "choose from drf, ps-dsf; did you mean 'ps-dsf'?"
    """
    words = list(known)
    return f"choose from {', '.join(words)}{suggestion(unknown[0], words) if unknown else ''}"


def expect(option: str, word: str, known: Iterable[str]) -> None:
    if word not in known:
        fail(Exit.USAGE, f"{option}: {word!r}; {choose([word], known)}")


def check_there(path: Path | None) -> None:
    """End the command, with the same code everywhere, if a file to read does not exist."""
    if path is None:
        return
    try:
        path.stat()
    except FileNotFoundError as error:
        fail(Exit.USAGE, f"{path}: {error.strerror}; name an existing file")
    except OSError:
        pass  # Reported when the file is read.


def directory(context: typer.Context, path: Path | None) -> Path | None:
    """Reject a directory that cannot be created or written, before any work is done."""
    if path is None or context.resilient_parsing:
        return None
    try:
        there = next(each for each in (path, *path.absolute().parents) if each.exists())
    except OSError as error:  # such as a name that is too long
        raise typer.BadParameter(f"{str(path)[:80]}: {error.strerror}") from None
    if not there.is_dir():
        raise typer.BadParameter(f"{path}: {there} is not a directory")
    missing = list(takewhile(lambda each: each != there, (path, *path.absolute().parents)))
    try:
        for each in reversed(missing):
            each.mkdir()
        with TemporaryFile(dir=path):
            pass
    except OSError as error:
        text = f"{there} cannot be written: {error.strerror}"
        raise typer.BadParameter(f"{path}: {text}") from None
    finally:
        for each in missing:
            with suppress(OSError):  # for example if it could not be created
                each.rmdir()
    return path


def shown_example(words: str, program: str = "mesos-allocator") -> str | None:
    return f"Example: {program} {words}" if words else None


_CANNOT_WRITE = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}

CLOSED_PIPE = 128 + 13
"""The exit code that a shell reports for a process ended by SIGPIPE."""


class _CannotWriteError(Exception):
    """Standard output cannot be written."""


class Root(TyperGroup):
    """The group of all commands; translates exceptions into error lines and exit codes.

    `installed_by`: what to install if a library is missing.
    """

    installed_by: ClassVar[Mapping[str, str]] = {"matplotlib": "mesos-allocator[plots]"}

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        try:
            return super().invoke(ctx)
        except OSError as error:
            if error.errno in _CANNOT_WRITE and error.filename is None:
                raise _CannotWriteError from error
            raise

    def main(self, args: Any = None, *_positional: Any, **options: Any) -> Any:  # noqa: ANN401
        """Run the command line, flush its output and exit."""
        _stand_in_for_closed_streams()
        try:
            try:
                self._run(args, **options)
            finally:
                sys.stdout.flush()
        except (_CannotWriteError, OSError) as error:
            _unwritten(error)

    def _run(self, args: Sequence[str] | None, **options: Any) -> NoReturn:  # noqa: ANN401
        words = sys.argv[1:] if args is None else list(args)
        JSON_WANTED.set(_wants_json(words))
        CHECKING.set(words[:1] == ["status"] and "--check" in words)
        options["standalone_mode"] = False
        # gRPC's C core logs to standard error in its own format, for example each failed handshake.
        # It reads this variable when it is loaded; operators can set it to see these lines.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        try:
            code = super().main(words, **options)
        except TyperException as error:
            _misused(error)
        except typer.Abort:
            fail(Exit.FAILURE, "aborted")
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing not in self.installed_by:
                raise
            mend = f"pip install '{self.installed_by[missing]}' installs it"
            fail(Exit.FAILURE, f"{missing} is not installed, which {words[0]} needs; {mend}")
        sys.exit(code if isinstance(code, int) else Exit.OK)


def _wants_json(words: Sequence[str]) -> bool:
    """Whether errors must be JSON because answers are JSON or YAML; JSON is valid YAML."""
    forms = ("json", "yaml")
    wanted = {"--json", *(f"{option}{form}" for option in ("--output=", "-o") for form in forms)}
    return not wanted.isdisjoint(words) or any(
        option in {"--output", "-o"} and form in forms for option, form in pairwise(words)
    )


def _stand_in_for_closed_streams() -> None:
    """Replace standard output and error if this process was started without them.

    Otherwise the first socket would take their descriptors. The replacements are read-only, so that
    printing fails as it does for any closed file.
    """
    if sys.stdout is not None and sys.stderr is not None:
        return
    while (descriptor := os.open(os.devnull, os.O_RDONLY)) <= 2:
        pass
    os.close(descriptor)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def _unwritten(error: Exception) -> NoReturn:
    """Exit because output cannot be written; print no error if the reader closed the pipe."""
    cause = error.__cause__ if isinstance(error, _CannotWriteError) else error
    assert isinstance(cause, OSError)
    try:
        sys.stdout.flush()
    except OSError:
        _drop(sys.stdout)
    if cause.errno == errno.EPIPE:
        sys.exit(CLOSED_PIPE)
    if cause.errno not in _CANNOT_WRITE:
        raise cause
    fail(Exit.FAILURE, f"output cannot be written: {cause.strerror}")


def _misused(error: TyperException) -> None:
    """Report a usage error and exit; without a command, print the help."""
    text, context = error.format_message(), getattr(error, "ctx", None)
    for theirs, ours in (("Input should be", "must be"), ("Value error, ", "")):
        text = text.replace(theirs, ours)
    if "\n" in text:
        typer.echo(text, err=True)
        sys.exit(error.exit_code)
    text = text.rstrip(".")
    if context is not None:
        text = _meant(text, context)
        text += (" See" if text.endswith("?") else "; see") + f" {context.command_path} --help"
    fail(Exit(error.exit_code), text)


_MEANT = {
    **dict.fromkeys(
        ("unset", "clear", "remove", "delete", "del", "rm"), ("remove", "reset", "stop", "clear")
    ),
    **dict.fromkeys(("list", "ls", "show", "get"), ("show", "list", "agents, frameworks or roles")),
    **dict.fromkeys(("add", "create", "change", "replace"), ("set",)),
    **dict.fromkeys(("node", "nodes", "hosts"), ("agents",)),
    **dict.fromkeys(("apps", "jobs"), ("frameworks",)),
    **dict.fromkeys(("queues", "namespaces"), ("roles",)),
    **dict.fromkeys(("describe", "why"), ("explain",)),
    "cordon": ("drain set",),
    "uncordon": ("drain remove",),
    **dict.fromkeys(("rollback", "undo", "rollout"), ("settings revert",)),
    "edit": ("settings export",),
}
"""Names of commands in other programs, and the names of ours that do the same."""

_ADVICE = {
    "help": "append --help to a command",
    "logs": "journalctl --unit mesos-allocator shows the log",
    "version": "did you mean '--version'?",
}


def _meant(text: str, context: Any) -> str:  # noqa: ANN401 - Typer's
    """Add the name of our command or option to an error about one common in other programs."""
    command = context.command
    if found := re.search(r"No such command '([^']+)'", text):
        word, known = found[1], getattr(command, "commands", {})
        if word in _ADVICE:
            return f"{found[0]}; {_ADVICE[word]}"
        ours = [each for each in _MEANT.get(word, ()) if re.split(r"\W", each)[0] in known]
        if not ours and "Did you mean" not in text:
            # Such as `drain HOST` or `explain NAME`.
            ours = [f"{each} {word}" for each in ("set", "framework") if each in known]
        return f"{found[0]}; did you mean {ours[0]!r}?" if ours else text
    if found := re.search(r"unexpected extra argument(?:\(s\)|s)? \((\S+)\)", text):
        options = {each for option in command.params for each in option.opts}
        hint = next((each for each in ("--role", "--framework-name") if each in options), None)
        return f"{text}; did you mean {hint} {found[1]}?" if hint else text
    return text


class _Prepared:
    """Sets the directory of the compiled loops before they are imported."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        if note := loop_cache.prepare():
            typer.echo(note, err=True)
        return super().invoke(ctx)  # type: ignore[misc]  # Typer's class is the other base


class Playing(_Prepared, TyperCommand):
    """A command that runs the compiled loops in this process."""


class PlayingGroup(_Prepared, TyperGroup):
    """Commands that run the compiled loops in this process."""


def add_version(app: typer.Typer) -> None:
    app.callback()(_root)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def run_program(app: typer.Typer) -> None:
    try:
        app()
    except SystemExit as end:
        # The interpreter must not shut down while a user's policy still runs in a thread.
        threads.end_with(end.code if isinstance(end.code, int) else bool(end.code))
        # Otherwise the final garbage collection takes longer than the command.
        gc.freeze()
        raise
