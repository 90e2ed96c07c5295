"""How every command ends, and how those begin that play or replay.

Whatever a command line is wrong about is one line on standard error, or JSON under ``--json``.
"""

import errno
import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from enum import IntEnum
from itertools import pairwise, takewhile
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NoReturn, TextIO

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from allocator.near import suggestion
from allocator.plain import json_text, printable
from allocator.server.system import loop_cache


class Exit(IntEnum):
    """Exit codes of `mesos-allocator`."""

    OK = 0
    FAILURE = 1
    """Anything that has no code of its own."""
    USAGE = 2
    """The command line does not parse."""
    UNREACHABLE = 3
    """No sidecar at the target, or no answer in time; of several none leads."""
    REFUSED = 4
    """The sidecar says that the request is wrong, or cannot be met now."""
    NOT_SAVED = 5
    """The change counts, and could not be saved: it ends with the sidecar's process."""
    CONFIG = 78
    """The configuration is wrong (EX_CONFIG of sysexits.h)."""


class Check(IntEnum):
    """What `status --check` ends with: the codes that monitoring plugins have."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    """The sidecar does not answer, or decides nothing."""
    UNKNOWN = 3
    """The question could not be asked."""


CHECKING = ContextVar("CHECKING", default=False)
"""Whether the command is a check of monitoring, which reads the first line of what is printed."""

JSON_WANTED = ContextVar("JSON_WANTED", default=False)
"""Whether answers are wanted as JSON, and so errors."""


def fail(code: Exit, *lines: str) -> NoReturn:
    """Print errors and end; as JSON where answers are, on the stream that errors go to."""
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
    except OSError:  # where nobody reads it, the code must do
        _drop(sys.stderr)
    sys.exit(code)


def _drop(stream: TextIO) -> None:
    """Let what is left go nowhere, or the interpreter would try, and complain, at its end."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


SIMULATOR_ONLY = {"joblib", "matplotlib", "pyarrow", "scipy"}
"""What the extra `sim` installs."""

PLAIN: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
"""What makes the help of each group look the same."""


def choose(unknown: Sequence[str], known: Iterable[str]) -> str:
    """Say what could be written instead of the first unknown word.

    >>> choose(["ps_dsf"], ["drf", "ps-dsf"])
    "choose from drf, ps-dsf; did you mean 'ps-dsf'?"
    """
    words = list(known)
    return f"choose from {', '.join(words)}{suggestion(unknown[0], words) if unknown else ''}"


def expect(option: str, word: str, known: Iterable[str]) -> None:
    """End where a word is none of those that an option may have."""
    if word not in known:
        fail(Exit.USAGE, f"{option}: {word!r}; {choose([word], known)}")


def check_there(path: Path | None) -> None:
    """End where a file to read is not there, with the same code in every command."""
    if path is None:
        return
    try:
        path.stat()
    except FileNotFoundError as error:
        fail(Exit.USAGE, f"{path}: {error.strerror}; name a file that is there")
    except OSError:
        pass  # What is wrong with it is said where it is read.


def directory(context: typer.Context, path: Path | None) -> Path | None:
    """Refuse where nothing can be written, before anything is played for it.

    A directory is made on trial and removed again: whatever else is wrong leaves none behind.
    """
    if path is None or context.resilient_parsing:
        return None
    try:
        there = next(each for each in (path, *path.absolute().parents) if each.exists())
    except OSError as error:  # such as a name that is too long
        raise typer.BadParameter(f"{str(path)[:80]}: {error.strerror}") from None
    if not there.is_dir():
        raise typer.BadParameter(f"{path}: {there} is no directory")
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
            with suppress(OSError):  # as where it could not be made
                each.rmdir()
    return path


def shown_example(words: str) -> str | None:
    """Make what stands below the help of a command."""
    return f"Example: mesos-allocator {words}" if words else None


_CANNOT_WRITE = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}

CLOSED_PIPE = 128 + 13
"""What a shell says of a process that ended because nobody read on (SIGPIPE)."""


class _CannotWriteError(Exception):
    """What was printed cannot be written."""


class Root(TyperGroup):
    """All commands; ends the process with the code and the line that an error stands for."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        try:
            return super().invoke(ctx)
        except OSError as error:
            if error.errno in _CANNOT_WRITE and error.filename is None:
                raise _CannotWriteError from error
            raise

    def main(self, args: Any = None, *_positional: Any, **options: Any) -> Any:  # noqa: ANN401
        """Run the command line and end, with all that was printed written."""
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
        # gRPC's library in C writes lines of a form of its own to standard error, such as of each
        # handshake that fails; it looks at this when it is loaded. Whoever wants them sets it.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        try:
            code = super().main(words, **options)
        except TyperException as error:
            _misused(error)
        except typer.Abort:
            fail(Exit.FAILURE, "aborted")
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing not in SIMULATOR_ONLY:
                raise
            mend = "pip install 'mesos-allocator[sim]' brings it"
            fail(Exit.FAILURE, f"{missing} is not installed, which {words[0]} needs; {mend}")
        sys.exit(code if isinstance(code, int) else Exit.OK)


def _wants_json(words: Sequence[str]) -> bool:
    """Whether answers are wanted for programs, and so errors; JSON is YAML, too."""
    forms = ("json", "yaml")
    wanted = {"--json", *(f"{option}{form}" for option in ("--output=", "-o") for form in forms)}
    return not wanted.isdisjoint(words) or any(
        option in {"--output", "-o"} and form in forms for option, form in pairwise(words)
    )


def _stand_in_for_closed_streams() -> None:
    """Have standard output and error where we were started without them.

    Else the first socket takes their place. What is printed there fails as for any closed file.
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
    """End where something cannot be written: in silence where nobody reads on."""
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
    """Say what is wrong with the command line; where no command is given, print the help."""
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
    **dict.fromkeys(("unset", "clear", "delete", "del", "rm"), ("remove", "reset", "stop")),
    **dict.fromkeys(("list", "ls", "show", "get"), ("show", "list")),
    **dict.fromkeys(("add", "create", "change", "replace"), ("set",)),
}
"""Words that people try for commands, and what these are called here."""


def _meant(text: str, context: Any) -> str:  # noqa: ANN401 - Typer's
    """Say what is meant by words that are common elsewhere."""
    command = context.command
    if found := re.search(r"No such command '([\w-]+)'", text):
        word, known = found[1], getattr(command, "commands", {})
        if word == "help":
            return f"{found[0]}; give --help behind a command"
        ours = next((each for each in _MEANT.get(word, ()) if each in known), None)
        return f"{found[0]}; did you mean {ours!r}?" if ours else text
    if found := re.search(r"unexpected extra argument(?:\(s\)|s)? \((\S+)\)", text):
        options = {each for option in command.params for each in option.opts}
        hint = next((each for each in ("--role", "--framework-name") if each in options), None)
        return f"{text}; did you mean {hint} {found[1]}?" if hint else text
    return text


class _Prepared:
    """Says where the compiled loops are kept, before they are imported."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        if note := loop_cache.prepare():
            typer.echo(note, err=True)
        return super().invoke(ctx)  # type: ignore[misc]  # Typer's, which stands behind


class Playing(_Prepared, TyperCommand):
    """A command that runs the compiled loops in this process."""


class PlayingGroup(_Prepared, TyperGroup):
    """Commands that run the compiled loops in this process."""
