"""Learnt demands, read and written, so that they outlive the process."""

from collections.abc import Mapping
from typing import NamedTuple

from allocator.core import DemandMemory, Remembered
from allocator.v1 import settings_pb2 as pb
from allocator.wire.codec import proto_types
from allocator.wire.codec.validation import reject

TOPICS = ("name", "principal", "user")
"""Kinds of keys under which learnt demands are remembered."""


class Learnt(NamedTuple):
    """A copy of the remembered demands."""

    entries: Mapping[tuple[str, str, str], Remembered]
    elapsed_ms: int
    """The memory's own clock."""


def copy_learnt(memory: DemandMemory) -> Learnt:
    """Copy the remembered demands; on the thread that updates them."""
    return Learnt(dict(memory.entries), memory.elapsed_ms)


def write_learnt(learnt: Learnt, now_ms: int) -> pb.KeptDemands:
    """Write the remembered demands; `now_ms` is since 1970."""
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
    )


def read_learnt(message: pb.KeptDemands, now_ms: int, most: int) -> DemandMemory:
    """Read remembered demands, aged by the time that has passed since.

    `now_ms` is since 1970. Of more than `most`, those learnt last are kept.

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
    return memory
