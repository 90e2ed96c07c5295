"""How every command ends, and how those begin that play or replay.

Whatever a command line is wrong about is one line on standard error, or JSON under ``--json``.
"""

import os
import sys
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from allocator.cli.exits import CHECKING, JSON_WANTED, Exit, fail
from allocator.server.system import loop_cache

SIMULATOR_ONLY = {"joblib", "matplotlib", "pyarrow", "scipy"}
"""What the extra `sim` installs."""

PLAIN: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
"""What makes the help of each group look the same."""


def shown_example(words: str) -> str | None:
    """Make what stands below the help of a command."""
    return f"Example: mesos-allocator {words}" if words else None


class Root(TyperGroup):
    """All commands; ends the process with the code and the line that an error stands for."""

    def main(self, args: Any = None, *_positional: Any, **options: Any) -> Any:  # noqa: ANN401
        """Run the command line and end."""
        words = sys.argv[1:] if args is None else list(args)
        JSON_WANTED.set("--json" in words)
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


def _misused(error: TyperException) -> None:
    """Say what is wrong with the command line; where no command is given, print the help."""
    text, context = error.format_message(), getattr(error, "ctx", None)
    if "\n" in text:
        typer.echo(text, err=True)
        sys.exit(error.exit_code)
    text = text.rstrip(".")
    if context is not None:
        text += (" See" if text.endswith("?") else "; see") + f" {context.command_path} --help"
    fail(Exit(error.exit_code), text)


class _Prepared:
    """Says where the compiled loops are kept, before they are imported."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Run the command."""
        if note := loop_cache.prepare():
            typer.echo(note, err=True)
        return super().invoke(ctx)  # type: ignore[misc]  # Typer's, which stands behind


class Playing(_Prepared, TyperCommand):
    """A command that runs the compiled loops in this process."""


class PlayingGroup(_Prepared, TyperGroup):
    """Commands that run the compiled loops in this process."""
