"""What a scrape is put together from: a part that fails is missing, and all others are there."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

import structlog
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from allocator.server.metrics.metric_building import labelled

_log = structlog.get_logger()


class Part(NamedTuple):
    """Some families that are missing together."""

    name: str
    collect: Callable[[], Iterable[Metric]]


class InParts(Protocol):
    """A collector of which a part may be missing."""

    def parts(self) -> Iterable[Part]:
        """Say what it gives; asked at each scrape."""


class Parts(Collector):
    """Collects part by part.

    `errors`: times that a part failed, by its name.
    """

    def __init__(self, sources: Iterable[InParts]) -> None:
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
            for part in source.parts():
                yield from self._collected(part)
        rows = [([name], float(times)) for name, times in sorted(self.errors.items())]
        text = "Times that a part of a scrape could not be given, since the process began."
        yield labelled(CounterMetricFamily, "scrape_errors", text, ["part"], rows)

    def _collected(self, part: Part) -> list[Metric]:
        self.errors[part.name] += 0  # its series is there from the beginning
        try:
            return list(part.collect())
        except Exception as error:  # noqa: BLE001 - whatever it is, the rest is given.
            self.errors[part.name] += 1
            if self._told.get(part.name) != repr(error):  # once, not at each scrape
                self._told[part.name] = repr(error)
                _log.exception("a part of the metrics could not be given", part=part.name)
            return []
