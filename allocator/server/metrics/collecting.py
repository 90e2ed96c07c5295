"""What a scrape is put together from: a part that fails is missing, and all others are there."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import structlog
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from allocator.server.metrics.family import Family, Numbers, counter

_log = structlog.get_logger()


class Part(NamedTuple):
    """Some families that are missing together.

    `numbers`: gives those of these families; None: there are none now.
    """

    name: str
    families: Sequence[Family]
    numbers: Callable[[], Numbers | None]

    def collect(self) -> list[Metric]:
        """Give the families."""
        numbers = self.numbers()
        if numbers is None:
            return []
        assert numbers.keys() == {each.name for each in self.families}, self.name
        return [each.metric(numbers[each.name]) for each in self.families]


PartsNow: TypeAlias = Callable[[], Iterable[Part]]
"""Says what a scrape is made of; asked at each scrape."""

SCRAPE_ERRORS = counter("scrape_errors{part}", "Times that a part of a scrape could not be given.")


class Parts(Collector):
    """Collects part by part.

    `errors`: times that a part failed, by its name.
    """

    def __init__(self, sources: Iterable[PartsNow]) -> None:
        """Collect from these."""
        self.errors: Counter[str] = Counter()
        self._sources = tuple(sources)
        self._told: dict[str, str] = {}

    def describe(self) -> Iterable[Metric]:
        """Say nothing ahead; else the registry would scrape at registration."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Give all families that can be had."""
        for source in self._sources:
            for part in source():
                yield from self._collected(part)
        yield SCRAPE_ERRORS.metric(self.errors)

    def _collected(self, part: Part) -> list[Metric]:
        self.errors[part.name] += 0  # its series is there from the beginning
        try:
            return part.collect()
        except Exception as error:  # noqa: BLE001 - whatever it is, the rest is given.
            self.errors[part.name] += 1
            if self._told.get(part.name) != repr(error):  # once, not at each scrape
                self._told[part.name] = repr(error)
                _log.exception("a part of the metrics could not be given", part=part.name)
            return []
