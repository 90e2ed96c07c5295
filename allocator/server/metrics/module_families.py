"""The families of metrics about the master's module, as it says them in its session."""

from collections.abc import Callable

from allocator.core import Reason
from allocator.server.engine.session_info import SessionInfo
from allocator.server.metrics.collecting import Part
from allocator.server.metrics.family import Numbers, counter, gauge, with_zeros
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
    "breaker_open": "1 while the module takes no session because of bad decisions.",
    "shadow": "1 while Mesos's own allocator decides, and decisions are only compared.",
}

MODULE = (
    *(counter(f"module_{name}", text) for name, text in _TOTALS.items()),
    *(gauge(f"module_{name}", text) for name, text in _NOW.items()),
    counter(
        "module_shadow_decisions{given}",
        "Decisions in shadow, by whom Mesos's own allocator gave of the agent to meanwhile.",
    ),
    gauge(
        "module_fallback_active", "1 while the module decides by itself, though a session lasts."
    ),
    gauge(
        "module_fallback_last_seconds",
        "How long the module decided by itself the last time, in seconds; 0: it never did.",
    ),
    counter(
        "module_session_ends{end}",
        "Sessions and attempts to have one that ended, by how, as the module saw it.",
    ),
    counter(
        "module_outcomes{reason}",
        "Decisions by what the module made of them, of all sidecars that it had.",
    ),
    gauge(
        "module_round_trip_seconds{part}",
        "From a batch to its answer, as the module saw the latest ones, in seconds.",
    ),
)

_REASONS = [each.name.lower() for each in Reason]


def module_parts(session: Callable[[], SessionInfo | None]) -> list[Part]:
    """Say what the module of the present session said last; nothing where it says nothing."""

    def numbers() -> Numbers | None:
        now = session()
        return _module(now.figures, now.clock_ms) if now and now.figures is not None else None

    return [Part("module", MODULE, numbers)]


def _module(figures: ModuleFigures, clock_ms: int) -> Numbers:
    since_ms, until_ms = figures.fallback_since_ms, figures.fallback_until_ms
    lasted_ms = (until_ms or clock_ms) - since_ms if since_ms else 0
    return {
        **{f"module_{name}": getattr(figures, name) for name in (*_TOTALS, *_NOW)},
        "module_shadow_decisions": {
            "same": figures.shadow_same,
            "other": figures.shadow_other,
            "none": figures.shadow_none,
        },
        "module_fallback_active": bool(since_ms) and not until_ms,
        "module_fallback_last_seconds": max(lasted_ms, 0) / 1000,
        "module_session_ends": with_zeros(MODULE_ENDS.values(), figures.ends),
        "module_outcomes": with_zeros(_REASONS, figures.outcomes),
        "module_round_trip_seconds": {
            "p50": figures.round_trip_p50_us / 1e6,
            "p99": figures.round_trip_p99_us / 1e6,
            "max": figures.round_trip_max_us / 1e6,
        },
    }
