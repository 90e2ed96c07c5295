"""Learnt demands and durations, read and written, so that they outlive the process."""

from collections.abc import Mapping
from typing import NamedTuple

from allocator.core import BUCKETS, EDGES_MS, DemandMemory, Lasted, Remembered
from allocator.v1 import settings_pb2 as pb
from allocator.wire.codec import proto_types
from allocator.wire.codec.validation import reject

TOPICS = ("name", "principal", "user")
"""Kinds of keys under which learnt demands are remembered."""


_EDGES_MS = (*EDGES_MS, 0)
_COUNT_MAX = 2**31


class Learnt(NamedTuple):
    """A copy of the remembered demands and durations."""

    entries: Mapping[tuple[str, str, str], Remembered]
    durations: Mapping[tuple[str, str, str], Lasted]
    elapsed_ms: int
    """The memory's own clock."""


def copy_learnt(memory: DemandMemory) -> Learnt:
    """Copy what is remembered; on the thread that updates it."""
    return Learnt(dict(memory.entries), dict(memory.durations.entries), memory.elapsed_ms)


def write_learnt(learnt: Learnt, now_ms: int) -> pb.KeptDemands:
    """Write what is remembered; `now_ms` is since 1970."""
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
    )


def read_learnt(message: pb.KeptDemands, now_ms: int, most: int) -> DemandMemory:
    """Read remembered demands and durations, aged by the time that has passed since.

    `now_ms` is since 1970. Of more than `most` of either, those learnt last are kept.

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
    return memory


def _read_ends(message: pb.KeptDuration, place: str) -> tuple[int, ...]:
    """Read how many tasks ended within which time, (BUCKETS,)."""
    counts = [0] * BUCKETS
    for each in message.ends:
        if each.within_ms not in _EDGES_MS or not 0 < each.count <= _COUNT_MAX:
            reject(place, "is not a valid learnt duration")
        counts[_EDGES_MS.index(each.within_ms)] = each.count
    if message.age_ms < 0 or not any(counts):
        reject(place, "is not a valid learnt duration")
    return tuple(counts)
