"""What operators set and what the configuration says, as the process that decides tells it."""

from collections import Counter
from functools import lru_cache

import structlog

from allocator.server.config import Loaded
from allocator.server.config.exchange import read_loaded
from allocator.server.following.books import FollowedBooks
from allocator.v1 import settings_pb2
from allocator.wire.settings.overlay import Overlay, read_overlay

_log = structlog.get_logger()


class FollowedSettings:
    """Settings, their origins, and where they are kept."""

    def __init__(self, books: FollowedBooks, loaded: Loaded) -> None:
        """Begin with the configuration that this process read itself."""
        self._books = books
        self._loaded = loaded
        self._read = ""

    @property
    def loaded(self) -> Loaded:
        """The configuration in force, and where each value of it comes from."""
        text = self._books.figures.configuration
        if text and text != self._read:
            self._read = text
            try:
                self._loaded = read_loaded(text)
            except ValueError as error:  # such as a policy that only the other process has loaded
                _log.warning("the other process's configuration cannot be read", error=str(error))
        return self._loaded

    @property
    def overlay(self) -> Overlay:
        """What operators set over it."""
        return _overlay(self._books.figures.overlay.SerializeToString(deterministic=True))

    @property
    def directory(self) -> str:
        """Where that is kept; empty: nowhere."""
        return self._books.figures.state.directory

    @property
    def problem(self) -> str:
        """Why it cannot be kept; empty where it can."""
        return self._books.figures.state.problem

    @property
    def reloads(self) -> Counter[str]:
        """How often the configuration was read again, by result."""
        return Counter(self._books.figures.reloads)


@lru_cache(maxsize=2)
def _overlay(data: bytes) -> Overlay:
    return read_overlay(settings_pb2.KeptSettings.FromString(data))
