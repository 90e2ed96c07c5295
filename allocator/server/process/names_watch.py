"""Logs rules that name something no agent has, when a session has agents to compare with.

The status always shows the same, but operators look at the log first after a start.
"""

from itertools import islice

import structlog

from allocator.server.following.books import FollowedBooks
from allocator.server.operators.rule_checks import Cluster, rules_with_unknown_names
from allocator.server.operators.setting_rows import MISTYPED_LOGGED

ANSWER_S = 1.0

_log = structlog.get_logger()


class NamesWatch:
    """Checks names once in each session, and once after each reload of the configuration."""

    def __init__(self, books: FollowedBooks) -> None:
        self._books = books
        self._looked = (-1, -1)
        self._told: set[str] = set()

    def look(self) -> None:
        """Check names, if that is due; called periodically. Raises TimeoutError."""
        books = self._books
        now = books.counts.sessions_opened, books.figures.reloads["done"]
        if books.session is None or now == self._looked:
            return
        cluster = books.read(self._copy, ANSWER_S)
        if cluster is None:
            return
        self._looked = now
        new = (text for text in rules_with_unknown_names(cluster) if text not in self._told)
        for text in islice(new, MISTYPED_LOGGED):
            self._told.add(text)
            _log.warning("a rule names a resource or attribute that no agent has", rule=text)

    def _copy(self) -> Cluster | None:
        """Copy the cluster for the check; None: not all agents have been reported yet."""
        allocator = self._books.allocator
        there = len(allocator.state.agents) > 0 and not allocator.state.paused
        return Cluster(allocator) if there else None
