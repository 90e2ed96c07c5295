"""Operators' settings and the configuration, as reported by the deciding process."""

from collections import Counter
from collections.abc import Sequence

import structlog

from allocator.server.config import Loaded
from allocator.server.config.exchange import read_loaded
from allocator.server.following.books import FollowedBooks
from allocator.v1 import settings_pb2
from allocator.wire.settings.overlay import KeptChange, Overlay, read_overlay

_log = structlog.get_logger()


class FollowedSettings:
    """Settings, their origins, and where they are saved."""

    def __init__(self, books: FollowedBooks, loaded: Loaded) -> None:
        """Start with the configuration that this process has read itself."""
        self._books = books
        self._said = books.settings
        self._read = loaded, Overlay(), tuple(loaded.config.scheduled())

    @property
    def scheduled(self) -> tuple[KeptChange, ...]:
        return self._latest()[2]

    @property
    def loaded(self) -> Loaded:
        return self._latest()[0]

    @property
    def overlay(self) -> Overlay:
        return self._latest()[1]

    @property
    def history(self) -> Sequence[settings_pb2.PastChange]:
        return self._books.settings.history.changes

    def _latest(self) -> tuple[Loaded, Overlay, tuple[KeptChange, ...]]:
        if (said := self._books.settings) is not self._said:
            loaded, overlay = self._read[0], read_overlay(said.overlay)
            try:
                loaded = read_loaded(said.configuration, elsewhere=bool(self._books.source()))
            except ValueError as error:  # such as a policy that only the other process has loaded
                _log.warning("the other process's configuration cannot be read", error=str(error))
            scheduled = tuple(overlay.scheduled(loaded.config.scheduled()).values())
            self._read, self._said = (loaded, overlay, scheduled), said
        return self._read

    @property
    def directory(self) -> str:
        return self._books.figures.state.directory

    @property
    def problem(self) -> str:
        """Why settings cannot be saved; empty if they can."""
        return self._books.figures.state.problem

    @property
    def reloads(self) -> Counter[str]:
        return Counter(self._books.figures.reloads)
