"""Writes a sidecar's answers to files."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from allocator.cli.tree import Exit, fail


def write_whole(output: Path, parts: Iterable[bytes], mode: int | None = None) -> None:
    """Write a file under a temporary name, and rename it when complete; end if that fails.

    `mode`: permissions of the file; None: the default ones.
    """
    if output.exists() and not output.is_file():  # such as /dev/null, or a FIFO
        unfinished = output
    else:
        unfinished = output.with_name(f"{output.name}.part")
    try:
        with unfinished.open("wb") as file:
            if mode is not None and unfinished is not output:
                unfinished.chmod(mode)
            for part in parts:
                file.write(part)
        if unfinished is not output:
            unfinished.replace(output)
    except OSError as error:
        fail(Exit.FAILURE, f"{output}: {error.strerror}")
    finally:
        if unfinished is not output:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
