"""Structured logs: one event per line, with its context as fields.

Each line has ``timestamp`` (ISO 8601, UTC), ``level`` and ``event``. Logs of libraries that use the
standard library have the same form.
"""

import errno
import io
import logging
import os
import sys
from pathlib import Path
from typing import TextIO, cast

import structlog
from structlog.typing import Processor

from allocator.plain import printable


def configure(level: str = "info", style: str = "auto", stream: TextIO = sys.stderr) -> None:
    """Set up logging for the process; called once, at start.

    `level`: ``debug``, ``info``, ``warning`` or ``error``.
    `style`: ``json``, ``console``, or ``auto``: console on a terminal, otherwise JSON.
    """
    stream = cast("TextIO", _Lenient(stream))
    threshold = logging.getLevelNamesMapping()[level.upper()]
    console = style == "console" or (style == "auto" and stream.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    last = _console(stream) if console else _json()
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
    _adopt_standard_library(threshold, stream, [*shared, _add_logger_name], last)


class _Lenient:
    """A stream that drops text instead of raising: logging must not fail if nothing reads it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.isatty = stream.isatty

    def write(self, text: str) -> None:
        try:
            self._stream.write(text)
        except OSError as error:
            self._lose(error)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        """If the reader is gone, drop buffered text, too, which would raise again at the end."""
        if error.errno == errno.EPIPE:
            with Path(os.devnull).open("wb") as nothing:
                os.dup2(nothing.fileno(), self._stream.fileno())


def _json() -> list[Processor]:
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]


def _console(stream: TextIO) -> list[Processor]:
    colors = stream.isatty()
    return [_printed, structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=_traceback)]


def _printed(
    _logger: logging.Logger | None, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Escape control characters in untrusted text; texts in lists are quoted anyway."""
    return {
        key: printable(value, also="\n") if isinstance(value, str) else value
        for key, value in event.items()
    }


def _traceback(stream: TextIO, error: structlog.typing.ExcInfo) -> None:
    """Write a traceback; escape control characters, since messages may contain untrusted text."""
    text = io.StringIO()
    structlog.dev.plain_traceback(text, error)
    stream.write(printable(text.getvalue(), also="\n"))


def _add_logger_name(
    _logger: logging.Logger | None, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    record = event.get("_record")
    if record is not None:
        event["logger"] = record.name
    return event


def _adopt_standard_library(
    threshold: int, stream: TextIO, shared: list[Processor], last: list[Processor]
) -> None:
    handler = logging.StreamHandler(stream)
    remove_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[remove_meta, *last]
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(threshold, logging.INFO))  # libraries write too many debug records
    logging.captureWarnings(capture=True)
