"""The audit log: who changed what, with the old value and the new one.

Its lines have ``"logger": "mesos_allocator.audit"``, and are written at every ``log.level``.
"""

import logging
import threading
from collections import Counter
from contextlib import suppress

import structlog

from allocator.core import OperatorChange
from allocator.server.operators.setting_rows import scope_of, value_of

LOGGER = "mesos_allocator.audit"

RESULTS = ("done", "refused", "dry_run")

_audit_log = structlog.wrap_logger(
    None, wrapper_class=structlog.make_filtering_bound_logger(logging.INFO)
)


class Audit:
    """Writes the lines, and counts them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()

    def counts(self) -> dict[tuple[str, str], int]:
        with self._lock:
            return dict(self._counts)

    def of_change(
        self,
        who: str,
        change: OperatorChange,
        before: OperatorChange | None = None,
        *,
        result: str = "done",
        **more: object,
    ) -> None:
        """Write the line of a change; `before`: what it replaces; others as for `note`."""
        more = {"old": value_of(before), "new": value_of(change), **more}
        self.note(who, change.key[0], scope_of(change.key), result=result, **more)

    def note(
        self, who: str, setting: str, scope: str, *, result: str = "done", **more: object
    ) -> None:
        """Write one line. Never raises, because the change is in force in any case.

        `result`: one of `RESULTS`.
        `more`: further fields: ``old``, ``new``, ``error``.
        """
        with self._lock:
            self._counts[setting, result] += 1
        said = {"who": who, "setting": setting, "scope": scope, "result": result, **more}
        with suppress(OSError, ValueError):  # the log's disk is full, or its reader is gone
            _audit_log.info("setting", logger=LOGGER, **said)
