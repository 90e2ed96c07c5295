"""What decides a cycle: the policy in force, or a replacement by the host.

A host that knows the decisions of another process uses them in place of the policy; the rest of the
cycle is the same.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from allocator.core.books.state import State
from allocator.core.cycle import cycle as cycles
from allocator.core.policy import Policy
from allocator.core.raised import describe
from allocator.core.snapshot import Grants, Snapshot


class Question(NamedTuple):
    """The input of a decision; read-only, and valid only until the decision.

    `policy`: the one in force.
    `cycle`: number of the cycle.
    `seed`: unsigned 64 bits; the only source of chance.
    `overruled`: why the policy must not decide; empty if it may.
    """

    state: State
    snapshot: Snapshot
    policy: Policy
    cycle: int
    seed: int
    overruled: str = ""


class Decided(NamedTuple):
    """The result of a decision.

    `grants`: as they are charged, in terms of the cycle's snapshot.
    `policy_error`: why the policy could not decide; empty if it did.
    """

    grants: Grants
    policy_error: str = ""


Decide: TypeAlias = Callable[[Question], Decided]
"""Decides a cycle; an exception ends the cycle."""


def decide_by(substitute: Policy | None) -> Decide:
    """Let the policy decide; if it fails, the substitute; if there is none, grant nothing."""

    def decide(question: Question) -> Decided:
        state, snapshot, policy, _, seed, error = question
        if not error:
            try:
                return Decided(cycles.run_policy(state, snapshot, policy, seed))
            except Exception as problem:  # noqa: BLE001 - whatever a policy does, offers go on.
                error = describe(problem)
        if substitute is None:
            return Decided(Grants.none(len(snapshot.resources)), error)
        return Decided(cycles.run_policy(state, snapshot, substitute, seed), error)

    return decide


def check_told(question: Question, grants: Grants) -> None:
    """Raise `BadGrantError` if grants that were decided elsewhere do not fit this cycle.

    Their values are untrusted: compiled loops do not check indexes.
    """
    state, snapshot = question.state, question.snapshot
    special_grant, special, amount = grants.special_grant, grants.special, grants.special_amount
    if not len(special_grant) == len(special) == len(amount):
        raise cycles.BadGrantError("columns of special kinds of unequal length")
    for index, count in ((special_grant, len(grants)), (special, len(snapshot.specials.kind))):
        if len(index) and not 0 <= index.min() <= index.max() < count:
            raise cycles.BadGrantError("a special part of no grant, or of no kind")
    if (special_grant[1:] < special_grant[:-1]).any():
        raise cycles.BadGrantError("special parts that are not in the order of the grants")
    cycles.check_grants(state.eligibility.excluded, snapshot.handle, snapshot, grants)
