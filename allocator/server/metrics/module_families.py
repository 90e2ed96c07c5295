"""The families of metrics about the master's module, as it says them in its session."""

from collections.abc import Callable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from allocator.core import Reason
from allocator.server.engine.session_info import SessionInfo
from allocator.server.metrics.collecting import Part
from allocator.server.metrics.metric_building import counted_by, counter, gauge, labelled
from allocator.wire import MODULE_ENDS, ModuleFigures

_TOTALS = {
    "cycles": "Cycles that the module began, since its master began to lead.",
    "fallback_cycles": "Cycles that the module decided by itself, without a sidecar.",
    "fallback_offers": "Offers that the module made by itself.",
    "breaker_trips": "Times that the module ended a session because of bad decisions.",
    "barren_turns": "Turns that the module took because the sidecar left lie what is wanted.",
    "misfits": "Facts of the master that did not fit the module's books.",
    "attempts": "Times that the module called a sidecar.",
    "sessions": "Sessions in which a sidecar decided.",
    "resyncs": "Snapshots that the module sent after its first one.",
    "shadow_offers": "Offers of Mesos's own allocator, while the module was in its shadow.",
}
_NOW = {
    "queue_messages": "Messages that wait in the module to be sent.",
    "queue_bytes": "What waits in the module to be sent, in bytes.",
    "barren_intervals": "Intervals in a row without offers, though somebody would take some.",
    "unanswered": "Batches of the module that wait for their answer.",
}
_ROUND_TRIPS = ("p50", "p99", "max")
_COMPARED = ("same", "other", "none")


class ModuleCollector:
    """Says what the module of the present session said last; nothing where it says nothing."""

    def __init__(self, session: Callable[[], SessionInfo | None]) -> None:
        """Ask for the session with this."""
        self._session = session

    def parts(self) -> list[Part]:
        """Say what there is."""
        return [Part("module", self._collect)]

    def _collect(self) -> Iterator[Metric]:
        """Give all families."""
        session = self._session()
        if session is not None and session.figures is not None:
            yield from _families(session.figures, session.clock_ms)


def _families(figures: ModuleFigures, clock_ms: int) -> Iterator[Metric]:
    for name, text in _TOTALS.items():
        yield counter(f"module_{name}", text, getattr(figures, name))
    for name, text in _NOW.items():
        yield gauge(f"module_{name}", text, getattr(figures, name))
    text = "1 while the module takes no session because of bad decisions."
    yield gauge("module_breaker_open", text, figures.breaker_open)
    text = "1 while Mesos's own allocator decides, and decisions are only compared."
    yield gauge("module_shadow", text, figures.shadow)
    text = "Decisions in shadow, by whom Mesos's own allocator gave of the agent to meanwhile."
    decided = {each: getattr(figures, f"shadow_{each}") for each in _COMPARED}
    yield counted_by("module_shadow_decisions", text, "given", decided, _COMPARED)
    since_ms, until_ms = figures.fallback_since_ms, figures.fallback_until_ms
    text = "1 while the module decides by itself, though a session lasts."
    yield gauge("module_fallback_active", text, bool(since_ms) and not until_ms)
    text = "How long the module decided by itself the last time, in seconds; 0: it never did."
    lasted_ms = (until_ms or clock_ms) - since_ms if since_ms else 0
    yield gauge("module_fallback_last_seconds", text, max(lasted_ms, 0) / 1000)
    text = "Sessions and attempts to have one that ended, by how, as the module saw it."
    yield counted_by("module_session_ends", text, "end", figures.ends, MODULE_ENDS.values())
    text = "Decisions by what the module made of them, of all sidecars that it had."
    known = [each.name.lower() for each in Reason]
    yield counted_by("module_outcomes", text, "reason", figures.outcomes, known)
    text = "From a batch to its answer, as the module saw the latest ones, in seconds."
    rows = [([each], getattr(figures, f"round_trip_{each}_us") / 1e6) for each in _ROUND_TRIPS]
    yield labelled(GaugeMetricFamily, "module_round_trip_seconds", text, ["part"], rows)
