"""Reads and writes demands, durations, averages and use of budgets that outlive the process."""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, NamedTuple

from allocator.core import (
    AGENTS,
    BUCKETS,
    EDGES_MS,
    HOUR_MS,
    PERIODS,
    DemandMemory,
    Lasted,
    Remembered,
    Spent,
    State,
    budget_rows,
    period_of,
    usage_of,
)
from allocator.v1 import settings_pb2 as pb
from allocator.wire.codec import proto_types
from allocator.wire.codec.validation import reject

TOPICS = ("name", "principal", "user")
"""Kinds of topics for which demands are remembered."""


_EDGES_MS = (*EDGES_MS, 0)
_COUNT_MAX = 2**31
_TIME_MS_MAX = 2**47


class Learnt(NamedTuple):
    """A copy of what is remembered."""

    entries: Mapping[tuple[str, str, str], Remembered]
    durations: Mapping[tuple[str, str, str], Lasted]
    usage: Mapping[tuple[str, str], Mapping[str, float]]
    """Average amounts in thousandths by resource, by role and framework id."""
    budgets: Mapping[str, Spent]
    elapsed_ms: int
    """The memory's own clock."""

    @property
    def content(self) -> tuple[Mapping[Any, Any], ...]:
        return self.entries, self.durations, self.usage, self.budgets


NOTHING_LEARNT: tuple[Mapping[Any, Any], ...] = ({}, {}, {}, {})


def copy_learnt(state: State) -> Learnt:
    """Copy what is remembered; on the thread that updates it."""
    memory = state.memory
    return Learnt(
        entries=dict(memory.entries),
        durations=dict(memory.durations.entries),
        usage=usage_of(state),
        budgets={row.rule.role: row.spent for row in budget_rows(state)},
        elapsed_ms=memory.elapsed_ms,
    )


def write_learnt(learnt: Learnt, now_ms: int) -> pb.KeptDemands:
    """`now_ms`: current time since 1970."""
    return pb.KeptDemands(
        saved_at_ms=now_ms,
        demands=(
            pb.KeptDemand(
                role=role,
                kind=kind,
                who=who,
                demand=proto_types.write_quantities(entry.amounts),
                weight=entry.weight,
                age_ms=learnt.elapsed_ms - entry.taught_ms,
            )
            for (role, kind, who), entry in learnt.entries.items()
        ),
        durations=(
            pb.KeptDuration(
                role=role,
                who=who,
                age_ms=learnt.elapsed_ms - lasted.taught_ms,
                ends=(
                    pb.KeptEnds(within_ms=edge, count=count)
                    for edge, count in zip(_EDGES_MS, lasted.counts, strict=True)
                    if count
                ),
            )
            for (role, _, who), lasted in learnt.durations.items()
        ),
        usage=(
            pb.KeptUsage(
                role=role,
                framework_id=framework_id,
                average=proto_types.write_quantities(
                    {name: int(amount) for name, amount in amounts.items() if name}
                ),
                agents=amounts.get(AGENTS, 0.0),
            )
            for (role, framework_id), amounts in learnt.usage.items()
        ),
        budgets=(
            pb.KeptBudget(
                role=role,
                per=spent.per,
                begin_ms=spent.begin_ms,
                used=_write_hours(spent.used),
                carried=_write_hours(spent.carried),
            )
            for role, spent in learnt.budgets.items()
        ),
    )


def _write_hours(amounts: Mapping[str, int]) -> Iterator[pb.KeptHours]:
    for name, amount in amounts.items():
        yield pb.KeptHours(name=name, hours=amount // HOUR_MS, rest=amount % HOUR_MS)


def read_learnt(message: pb.KeptDemands, now_ms: int, most: int) -> DemandMemory:
    """Read what is remembered; demands and durations are aged by the time since they were saved.

    `now_ms`: current time since 1970.
    `most`: maximum number of demands, and of durations; those learnt last are kept.

    Raises WireError if one of them is invalid.
    """
    memory = DemandMemory()
    away_ms = max(now_ms - message.saved_at_ms, 0)
    kept = message.demands[max(len(message.demands) - most, 0) :]
    for index, each in enumerate(kept):
        place = f"demands[{index}]"
        amounts = proto_types.part(each.demand, proto_types.read_quantities, f"{place}.demand")
        positive = amounts and all(amounts.values()) and each.weight and each.age_ms >= 0
        if each.kind not in TOPICS or not positive:
            reject(place, "is not a valid learnt demand")
        taught_ms = -(each.age_ms + away_ms)
        memory.entries[each.role, each.kind, each.who] = Remembered(amounts, each.weight, taught_ms)
    kept_durations = message.durations[max(len(message.durations) - most, 0) :]
    for index, lasted in enumerate(kept_durations):
        counts = _read_ends(lasted, f"durations[{index}]")
        taught_ms = -(lasted.age_ms + away_ms)
        topic = (lasted.role, "name", lasted.who)
        memory.durations.entries[topic] = Lasted(counts, sum(counts), taught_ms)
    for index, used in enumerate(message.usage):
        place = f"usage[{index}]"
        average = proto_types.part(used.average, proto_types.read_quantities, f"{place}.average")
        if not 0 <= used.agents < inf:
            reject(f"{place}.agents", "is not a number of agents")
        named = {name: float(amount) for name, amount in average.items()}
        memory.usage.leave(used.role, used.framework_id, {**named, AGENTS: used.agents})
    for index, budget in enumerate(message.budgets):
        memory.budgets.spent[budget.role] = _read_budget(budget, f"budgets[{index}]")
    return memory


def _read_budget(message: pb.KeptBudget, place: str) -> Spent:
    if message.per not in PERIODS or abs(message.begin_ms) > _TIME_MS_MAX:
        reject(place, "is not a period")
    begin_ms, end_ms = period_of(message.per, message.begin_ms)
    if begin_ms != message.begin_ms:
        reject(f"{place}.begin_ms", "is not the beginning of a period")
    for each in (*message.used, *message.carried):
        if each.hours < 0 or not 0 <= each.rest < HOUR_MS:
            reject(place, "is not a valid use of a budget")
    used, carried = (
        {each.name: each.hours * HOUR_MS + each.rest for each in hours}
        for hours in (message.used, message.carried)
    )
    return Spent(message.per, begin_ms, end_ms, used, carried)


def _read_ends(message: pb.KeptDuration, place: str) -> tuple[int, ...]:
    """Read the number of tasks that ended within each time, (BUCKETS,)."""
    counts = [0] * BUCKETS
    for each in message.ends:
        if each.within_ms not in _EDGES_MS or not 0 < each.count <= _COUNT_MAX:
            reject(place, "is not a valid learnt duration")
        counts[_EDGES_MS.index(each.within_ms)] = each.count
    if message.age_ms < 0 or not any(counts):
        reject(place, "is not a valid learnt duration")
    return tuple(counts)
