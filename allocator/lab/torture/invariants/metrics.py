"""What the metrics say is what the state says."""

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping

import grpc
from prometheus_client.parser import text_string_to_metric_families

from allocator.lab.torture.rig import ANSWER_S, Rig
from allocator.v1 import admin_pb2 as pb

LINES_MAX = 20_000
"""Of a page, whatever anybody is called and however many there are."""

QUEUE_MAX = 200
"""Commands that may wait for the core's thread: a few from each stream and operator."""

_PREFIX = "mesos_allocator_"

Samples = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]


class Metrics:
    """Scrapes, asks for the status before and after, and compares what did not change meanwhile."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._life = 0
        self._counters: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}

    def look(self) -> None:
        """Look once; a process that is frozen, stopped or full is looked at the next time."""
        rig, life = self._rig, self._rig.sidecar.lives
        try:
            before = rig.status()
            samples = self._scrape()
            after = rig.status()
        except (OSError, http.client.HTTPException, urllib.error.URLError, grpc.RpcError):
            return
        if rig.sidecar.lives != life or not rig.sidecar.wanted:
            return
        if life != self._life:
            self._life, self._counters = life, {}
        wrong = self._falling(samples)
        if _moment(before) == _moment(after):
            wrong += _differing(samples, after)
            rig.findings.counts["scrapes_compared"] += 1
        rig.findings.check("metrics are those of the state", wrong)
        depth = samples.get(("core_queue_depth", ()), 0.0)
        most = max(rig.findings.counts["core_queue_max"], int(depth))
        rig.findings.counts["core_queue_max"] = most
        wrong = [f"{depth:.0f} commands wait for the core"] if depth > QUEUE_MAX else []
        rig.findings.check("bounded queues", wrong)

    def _scrape(self) -> Samples:
        text = self._page("metrics")
        lines = {"/metrics": text.count("\n"), "/": self._page("").count("\n")}
        wrong = [f"{page} has {n} lines" for page, n in lines.items() if n > LINES_MAX]
        self._rig.findings.check("pages stay short", wrong)
        return {
            (sample.name.removeprefix(_PREFIX), tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def _page(self, name: str) -> str:
        url = f"http://127.0.0.1:{self._rig.ports.http}/{name}"
        with urllib.request.urlopen(url, timeout=ANSWER_S) as answer:
            return answer.read().decode()

    def _falling(self, samples: Samples) -> list[str]:
        """Counters only grow while a process lives."""
        now = {
            (name, labels): value
            for (name, labels), value in samples.items()
            # What a module counts begins anew with the next master.
            if name.endswith("_total") and not name.startswith("module_")
        }
        wrong = [
            f"{name}{dict(labels)} fell from {self._counters[name, labels]} to {value}"
            for (name, labels), value in now.items()
            if value < self._counters.get((name, labels), 0.0)
        ]
        self._counters = now
        return wrong


def _moment(status: pb.GetStatusResponse) -> tuple[object, ...]:
    """What changes with whatever the core was told."""
    return (status.sidecar_id, status.sessions, status.sequence, status.events, status.cycles)


def _differing(samples: Samples, status: pb.GetStatusResponse) -> list[str]:
    """Compare what both speak of."""
    if samples.get(("report_age_seconds", ()), 0.0) > 0.0:
        return []  # the core was busy: these are older numbers, and say so

    def summed(name: str) -> float:
        return sum(value for (each, _), value in samples.items() if each == name)

    both = {
        "agents": (summed("agents"), status.agents),
        "frameworks": (summed("frameworks"), status.frameworks),
        "filters": (summed("filters"), status.filters),
        "decisions_outstanding": (
            summed("decisions_outstanding"),
            status.outstanding_decisions,
        ),
        "in_session": (summed("in_session"), float(status.in_session)),
        "cycles_total": (summed("cycles_total"), status.cycles),
        "decisions_total": (summed("decisions_total"), status.decisions),
    }
    return [
        f"{name}: {scraped} in the metrics, {asked} in the status"
        for name, (scraped, asked) in both.items()
        if scraped != asked
    ]
