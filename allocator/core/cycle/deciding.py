"""Decides a cycle, by the policy in force or by a function of the host.

A host that follows another process supplies that process's decisions in place of the policy's.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from allocator.core.books.state import State
from allocator.core.cycle import cycle as cycles
from allocator.core.policy import Policy
from allocator.core.raised import describe
from allocator.core.snapshot import Grants, Snapshot


class Question(NamedTuple):
    """The input of a decision; read-only, and valid only until the decision is made.

    `seed`: unsigned, 64 bits; the only source of randomness.
    `overruled`: why the policy must not decide; empty: it decides.
    """

    state: State
    snapshot: Snapshot
    policy: Policy
    cycle: int
    seed: int
    overruled: str = ""


class Decided(NamedTuple):
    """The result of a decision.

    `grants`: rows and columns are those of the cycle's snapshot.
    `policy_error`: why the policy did not decide; empty if it did.
    """

    grants: Grants
    policy_error: str = ""


Decide: TypeAlias = Callable[[Question], Decided]
"""A function that decides a cycle; an exception from it ends the cycle."""


def decide_by(substitute: Policy | None) -> Decide:
    """Make a function that lets the policy decide, or the substitute if the policy fails.

    Without a substitute, nothing is granted if the policy fails.
    """

    def decide(question: Question) -> Decided:
        state, snapshot, policy, _, seed, error = question
        if not error:
            try:
                return Decided(cycles.run_policy(state, snapshot, policy, seed))
            except Exception as problem:  # noqa: BLE001 - offers continue whatever a policy raises.
                error = describe(problem)
        if substitute is None:
            return Decided(Grants.none(len(snapshot.resources)), error)
        return Decided(cycles.run_policy(state, snapshot, substitute, seed), error)

    return decide


def check_told(question: Question, grants: Grants) -> None:
    """Raise `BadGrantError` if another process's grants do not fit this cycle.

    The grants are untrusted, and compiled loops do not check indices.
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
