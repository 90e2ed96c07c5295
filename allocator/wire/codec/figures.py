"""A module's report about itself, for display.

No decision depends on it, so invalid values are not errors: values out of range are clamped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from allocator.core import Reason
from allocator.v1 import session_pb2 as pb

TOTAL_MAX = 2**53
"""Largest integer that a float represents exactly; real counts stay below."""

MODULE_ENDS: Mapping[int, str] = {
    int(number): name.removeprefix("SESSION_END_").lower()
    for name, number in pb.SessionEnd.items()
    if number
}

_OUTCOMES: Mapping[int, str] = {each.value: each.name.lower() for each in Reason}


@dataclass(frozen=True)
class ModuleFigures:
    """A module's state; totals count from when its master began to lead.

    `cycles`, `fallback_cycles`, `fallback_offers`: all cycles; those that the module decided
        itself; the offers in these.
    `fallback_since_ms`, `fallback_until_ms`: the last time span in which the module decided itself,
        on its clock; since 0: never; until 0: it still does.
    `round_trip_p50_us`, `round_trip_p99_us`, `round_trip_max_us`: time from a batch to its answer.
    `set_aside`: inputs of frameworks and agents that the module ignored.
    `barren_intervals`: consecutive intervals in which a responding sidecar did not offer resources
        that a framework would take. `barren_turns`: cycles that the module decided itself because
        of that.
    `shadow`: whether Mesos's own allocator decides and the module only compares.
    `shadow_offers`: offers of Mesos's allocator during sessions, one per framework and agent.
    `shadow_same`, `shadow_other`, `shadow_none`: the sidecar's decisions that Mesos's allocator
        made as well; those whose agent it offered only to others; those that it did not make.
    """

    cycles: int = 0
    fallback_cycles: int = 0
    fallback_offers: int = 0
    fallback_since_ms: int = 0
    fallback_until_ms: int = 0
    breaker_open: bool = False
    breaker_trips: int = 0
    misfits: int = 0
    attempts: int = 0
    sessions: int = 0
    resyncs: int = 0
    ends: Mapping[str, int] = field(default_factory=dict)
    outcomes: Mapping[str, int] = field(default_factory=dict)
    queue_messages: int = 0
    queue_bytes: int = 0
    unanswered: int = 0
    round_trip_p50_us: int = 0
    round_trip_p99_us: int = 0
    round_trip_max_us: int = 0
    set_aside: int = 0
    barren_intervals: int = 0
    barren_turns: int = 0
    shadow: bool = False
    shadow_offers: int = 0
    shadow_same: int = 0
    shadow_other: int = 0
    shadow_none: int = 0


_NUMBERS = tuple(
    each.name
    for each in pb.ModuleFigures.DESCRIPTOR.fields
    if each.name not in {"breaker_open", "ends", "outcomes", "shadow"}
)


def read_figures(message: pb.ModuleFigures) -> ModuleFigures:
    return ModuleFigures(
        breaker_open=message.breaker_open,
        shadow=message.shadow,
        ends=_named(message.ends, MODULE_ENDS),
        outcomes=_named(message.outcomes, _OUTCOMES),
        **{name: _bounded(getattr(message, name)) for name in _NUMBERS},
    )


def write_figures(figures: ModuleFigures) -> pb.ModuleFigures:
    return pb.ModuleFigures(
        breaker_open=figures.breaker_open,
        shadow=figures.shadow,
        ends=_numbered(figures.ends, MODULE_ENDS),
        outcomes=_numbered(figures.outcomes, _OUTCOMES),
        **{name: getattr(figures, name) for name in _NUMBERS},
    )


def _bounded(number: int) -> int:
    return min(max(number, 0), TOTAL_MAX)


def _named(counts: Sequence[int], names: Mapping[int, str]) -> dict[str, int]:
    """Name the counts that this version knows; those missing from a short list are left out."""
    return {
        names[number]: _bounded(count)
        for number, count in enumerate(counts[: max(names) + 1])
        if number in names
    }


def _numbered(counts: Mapping[str, int], names: Mapping[int, str]) -> list[int]:
    return [counts.get(names.get(number, ""), 0) for number in range(max(names) + 1)]
