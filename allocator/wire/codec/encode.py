"""Converts the core's decisions to the answer.

An answer larger than the module accepts is split into parts. Row sizes are computed in advance, so
that each part is written once.
"""

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np

from allocator.core import Decisions, Holdings, Ints
from allocator.v1 import session_pb2 as pb
from allocator.wire.codec import proto_types

BYTES_MAX = 4 * 2**20
"""Maximum message size for a module that does not state one: gRPC's default."""

BYTES_LEAST = 64 * 2**10
"""Smallest limit that a module may state: enough for a decision about thousands of kinds."""

_FRAME_BYTES = 128
_GROUP_BYTES = 64
"""Upper bound of the size of a group without its kinds and rows: tags and lengths of six fields."""

GANG_DECISIONS_MAX = 8192
"""Maximum number of decisions that the module offers together, see `Gangs` in the protocol."""


def write_decisions(
    sequence: int, decisions: Decisions, bytes_max: int = BYTES_MAX
) -> list[pb.DecisionBatch]:
    """Write the answer to a batch, in parts that stay an eighth below `bytes_max`.

    A part is larger only if it has a single decision that is larger.
    """
    room = bytes_max - bytes_max // 8 - _FRAME_BYTES
    parts = [pb.DecisionBatch()]
    first, rows, used = decisions.first_decision, 0, 0
    for group in decisions.groups:
        for piece, size in _pieces(group, room):
            # The part is full: set its first decision, and start another part.
            if used and used + size > room:
                parts[-1].first_decision = first
                parts.append(pb.DecisionBatch())
                first, rows, used = first + rows, 0, 0
            parts[-1].grants.append(proto_types.write_holdings(piece))
            rows += len(piece.framework)
            used += size
    reclaims = decisions.reclaims
    if len(reclaims.framework):
        # Reclaims are few, so they fit in the spare eighth.
        parts[-1].reclaims.framework.extend(reclaims.framework.tolist())
        parts[-1].reclaims.agent.extend(reclaims.agent.tolist())
    parts[-1].first_decision = first
    parts[-1].holds_back = decisions.holds_back
    for part in parts:
        part.sequence, part.cycle, part.more = sequence, decisions.cycle, part is not parts[-1]
    _write_gangs(decisions, parts)
    return parts


def _write_gangs(decisions: Decisions, parts: list[pb.DecisionBatch]) -> None:
    """Write which decisions are offered together.

    A gang with too many decisions, or with decisions in two parts, is left out: the module then
    offers its decisions separately.
    """
    begins = [part.first_decision - decisions.first_decision for part in parts]
    for first, count in decisions.gangs:
        at = bisect_right(begins, first) - 1
        end = begins[at + 1] if at + 1 < len(parts) else len(decisions)
        if first + count <= end and count <= GANG_DECISIONS_MAX:
            parts[at].gangs.first.append(first - begins[at])
            parts[at].gangs.count.append(count)


def _pieces(group: Holdings, room: int) -> Iterator[tuple[Holdings, int]]:
    """Cut a group into pieces that fit; yield each with an upper bound of its size in bytes."""
    head = _GROUP_BYTES + int(_bytes_of(group.kind).sum())
    # The size of each row: its amounts and its three handles.
    size = _bytes_of(group.amount).sum(axis=1)
    for column in (group.framework, group.role, group.agent):
        size += _bytes_of(column)
    total = np.cumsum(size)
    first = 0
    while first < len(size):
        # Take as many rows as fit after the head, but at least one.
        before = int(total[first - 1]) if first else 0
        end = max(int(np.searchsorted(total, before + room - head, "right")), first + 1)
        yield group.cut(slice(first, end)), head + int(total[end - 1]) - before
        first = end


def _bytes_of(values: Ints) -> Ints:
    """Size of each number (>= 0) as a varint, in bytes."""
    size = np.ones(values.shape, np.int64)
    for bits in range(7, 63, 7):
        size += values >= 1 << bits
    return size
