"""The audit log: who changed what, with the old value and the new one.

Its lines have ``"logger": "mesos_allocator.audit"``, and are written whatever ``log.level`` says.
"""

import logging
import threading
from collections import Counter

import structlog

LOGGER = "mesos_allocator.audit"

RESULTS = ("done", "refused", "dry_run")

_log = structlog.wrap_logger(
    None, wrapper_class=structlog.make_filtering_bound_logger(logging.INFO)
)


class Audit:
    """Writes the lines, and counts them."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()

    def counts(self) -> dict[tuple[str, str], int]:
        """How many changes of each kind had each result."""
        with self._lock:
            return dict(self._counts)

    def note(
        self, who: str, setting: str, scope: str, *, result: str = "done", **more: object
    ) -> None:
        """Write one line.

        Parameters
        ----------
        who : str
        setting : str
            Such as ``demand``.
        scope : str
            What the rule is for.
        result : str
            One of `RESULTS`.
        more
            What else is to be said: ``old``, ``new``, ``error``.
        """
        with self._lock:
            self._counts[setting, result] += 1
        said = {"who": who, "setting": setting, "scope": scope, "result": result, **more}
        _log.info("setting", logger=LOGGER, **said)
