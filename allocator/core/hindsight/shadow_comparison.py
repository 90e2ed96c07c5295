"""What another policy would have decided in a cycle, beside what was decided.

Both are asked about the same frozen snapshot, with the same seed. Nothing comes of what the other
one says: so it is compared cycle by cycle, always from the books as the policy in force left them.
"""

from dataclasses import dataclass

import numpy as np

from allocator.core.cycle.cycle import check_grants, offers_of
from allocator.core.cycle.snapshot_builder import FULL_MODE
from allocator.core.hindsight.other_mode import in_mode
from allocator.core.hindsight.trail import CycleRecord, Names
from allocator.core.policy import Policy, PolicySpec
from allocator.core.snapshot import Floats, Grants, Ints, Snapshot


@dataclass(frozen=True, slots=True)
class Comparison:
    """One cycle, decided twice: by the policy in force, and by the one that looks on.

    `names`: whom the rows of clients meant.
    `offered`, `offered_beside` (C,): dominant share of the cluster that each client was, or would
        have been, offered.
    `of_both`, `of_policy`, `of_beside`: offers (a client and an agent) that both made; that only
        one of them made.
    """

    names: Names
    offered: Floats
    offered_beside: Floats
    of_both: int
    of_policy: int
    of_beside: int


def compare_beside(record: CycleRecord, spec: PolicySpec, policy: Policy) -> Comparison | None:
    """Let a policy decide a cycle that was decided, and compare.

    `record`: with what was seen.
    `spec`: its mode counts.
    `policy`: what `spec` names.
    Returns None where the cycle cannot be shown in that mode.
    Raises Exception: whatever the policy raises, and `BadGrantError` where it grants what it must
        not.
    """
    assert record.seen is not None
    assert record.probed is not None
    snapshot = in_mode(record.seen, record.probed, whole_tasks=spec.mode == FULL_MODE)
    if snapshot is None:
        return None
    grants = policy.allocate(snapshot, record.seed)
    rows = np.arange(len(snapshot.free))
    check_grants(snapshot.excluded, rows, snapshot, grants)
    one, other = (_offers(snapshot, each) for each in (record.grants, grants))
    both = len(np.intersect1d(one.pairs, other.pairs, assume_unique=True))
    return Comparison(
        names=record.names,
        offered=one.share,
        offered_beside=other.share,
        of_both=both,
        of_policy=len(one.pairs) - both,
        of_beside=len(other.pairs) - both,
    )


@dataclass(frozen=True, slots=True)
class _Offers:
    """What grants come to: pairs of client and agent, each once; dominant shares, (C,)."""

    pairs: Ints
    share: Floats


def _offers(snapshot: Snapshot, grants: Grants) -> _Offers:
    merged, columns, enough = offers_of(snapshot, grants)
    client = merged.client[enough]
    given = np.zeros((len(snapshot.leaf_of_client), columns.shape[1]), np.int64)
    np.add.at(given, client, columns[enough])
    counted = np.flatnonzero(snapshot.counted & (snapshot.total > 0))
    share = (given[:, counted] / snapshot.total[counted]).max(axis=1, initial=0.0)
    pairs = np.sort((merged.agent[enough] << np.int64(32)) | client)
    return _Offers(pairs, share)
