"""Logs rules that name something no agent has, when a session has agents to compare with.

The status always shows the same, but operators look at the log first after a start.
"""

from concurrent.futures import Future
from itertools import islice

import structlog

from allocator.server.following.books import FollowedBooks
from allocator.server.operators.rule_checks import Cluster, copy_cluster, rules_with_unknown_names
from allocator.server.operators.setting_rows import MISTYPED_LOGGED

_log = structlog.get_logger()

_NEVER = (-1, -1)


class NamesWatch:
    """Checks names once in each session, and once after each reload of the configuration."""

    def __init__(self, books: FollowedBooks) -> None:
        self._books = books
        self._looked = _NEVER
        self._pending: Future[Cluster | None] | None = None
        self._told: set[str] = set()

    def look(self) -> None:
        """Request a check, or log its result; called periodically, and never waits."""
        if self._pending is None:
            said = self._books.figures
            now = (self._books.counts.sessions_opened, said.reloads["done"])
            if self._books.session is not None and now != self._looked:
                self._looked = now
                self._pending = self._books.ask(self._copy)
            return
        if not self._pending.done():
            return
        pending, self._pending = self._pending, None
        cluster = pending.result()
        if cluster is None:
            self._looked = _NEVER
            return
        new = (text for text in rules_with_unknown_names(cluster) if text not in self._told)
        for text in islice(new, MISTYPED_LOGGED):
            self._told.add(text)
            _log.warning("a rule names a resource or attribute that no agent has", rule=text)

    def _copy(self) -> Cluster | None:
        """Copy the cluster for the check; None: not all agents have been reported yet."""
        state = self._books.allocator.state
        return (
            None if state.paused or not len(state.agents) else copy_cluster(self._books.allocator)
        )
