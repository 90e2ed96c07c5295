"""Users' policies, kept from holding the sidecar up or changing its books.

A policy of a user runs on a thread of its own, with a deadline, on arrays that it cannot write.
What it may cost: a thread cannot be ended from outside, so one that never returns goes on beside
us until the process ends, and shares the interpreter with us meanwhile; and code that never lets
the interpreter go (an endless loop in C) stops the whole process. Whoever runs code that is not
trusted so far must not run it here.
"""

import threading
from collections.abc import Callable
from dataclasses import fields
from typing import TypeVar

import numpy as np

from allocator import policies
from allocator.core import (
    Floats,
    Grants,
    Policy,
    PolicySpec,
    ScoringPolicy,
    Snapshot,
    Subtree,
    frozen,
)
from allocator.testing import static_snapshot

TRIAL_S = 20.0
"""How long a policy may take for the first time, on a cluster of two agents: it may compile."""

_T = TypeVar("_T")


class PolicyTooSlowError(RuntimeError):
    """A policy did not decide in time; others decide until it is set again."""


class BadAnswerError(TypeError):
    """A policy answered something that is no grants."""


class GuardedPolicy:
    """A user's policy with a deadline; after it overran once, it is not asked any more."""

    def __init__(self, name: str, policy: Policy, deadline_s: float) -> None:
        """Guard a policy.

        Parameters
        ----------
        name : str
            For messages.
        policy : Policy
        deadline_s : float
            For each cycle.
        """
        self._name = name
        self._policy = policy
        self._deadline_s = deadline_s
        self._overran = False

    def try_out(self, within_s: float) -> None:
        """Let it decide about a small cluster, so that what is wrong shows before it is in force.

        Raises
        ------
        Exception
            Whatever it raises, and our own errors.
        """
        cluster = static_snapshot([[4, 8], [2, 16]], [[1, 1], [0, 0]])
        self._grants(frozen(cluster), 1, within_s)

    def allocate(self, snapshot: Snapshot, seed: int) -> Grants:
        """Decide one cycle.

        Raises
        ------
        PolicyTooSlowError
            Where it does not, in time.
        BadAnswerError
            Where what it answers is no grants.
        """
        return self._grants(snapshot, seed, self._deadline_s)

    def scores(self, snapshot: Snapshot) -> Floats:
        """Score the clients, where the policy does; nan where not."""
        policy = self._policy
        if not isinstance(policy, ScoringPolicy):
            return np.full(len(snapshot.held), np.nan)
        scores = self._in_time(lambda: policy.scores(snapshot), self._deadline_s)
        return np.asarray(scores, np.float64)

    def _grants(self, snapshot: Snapshot, seed: int, deadline_s: float) -> Grants:
        return _checked(self._in_time(lambda: self._policy.allocate(snapshot, seed), deadline_s))

    def _in_time(self, work: Callable[[], _T], deadline_s: float) -> _T:
        if self._overran:
            raise PolicyTooSlowError(
                f"the policy {self._name!r} took too long before and is not asked any more; set it"
                " again when it is quicker"
            )
        # Lists, for the thread may still write to them after we gave up; nobody looks then.
        found: list[_T] = []
        raised: list[BaseException] = []

        def run() -> None:
            try:
                found.append(work())
            except BaseException as error:  # noqa: BLE001 - it is raised where it was asked for.
                raised.append(error)

        thread = threading.Thread(target=run, name=f"policy {self._name}", daemon=True)
        thread.start()
        # The thread ended, or the time is up; a thread cannot be stopped from outside.
        thread.join(deadline_s)
        if raised:
            raise RuntimeError(f"{type(raised[0]).__name__}: {raised[0]}") from raised[0]
        if not found:
            self._overran = True
            raise PolicyTooSlowError(
                f"the policy {self._name!r} did not decide within {1000 * deadline_s:g} ms; it is"
                " not asked any more before it is set again"
            )
        return found[0]


class GuardedRegistry:
    """Makes policies by their specifications: ours as they are, users' guarded."""

    def __init__(self, deadline_s: float) -> None:
        """Guard with this deadline for each cycle."""
        self._deadline_s = deadline_s
        self._guarded: dict[str, GuardedPolicy] = {}
        # Policies that were tried out on other threads and are not in force yet.
        self._tried: dict[str, GuardedPolicy] = {}

    def build(self, spec: PolicySpec) -> Policy:
        """Make a policy; a guarded one only once, so that it stays known which took too long.

        One that was not tried out before is tried out now, by `TRIAL_S`.

        Raises
        ------
        ValueError
            Where the specification is wrong, or a user's policy fails on a small cluster.
        """
        policy = policies.build(spec)
        if not _is_of_a_user(spec):
            return policy
        if repr(spec) not in self._guarded:
            self._guarded[repr(spec)] = guarded(spec, policy, self._deadline_s)
        return self._guarded[repr(spec)]

    def build_apart(self, spec: PolicySpec) -> Policy:
        """Make a policy that shares nothing with any other; of a user it is guarded by itself.

        Raises
        ------
        ValueError
            As `build`.
        """
        policy = policies.build(spec)
        return guarded(spec, policy, self._deadline_s) if _is_of_a_user(spec) else policy

    def try_out(self, spec: PolicySpec, within_s: float = TRIAL_S) -> None:
        """Try a policy out that is about to be set; any thread may, while the core goes on.

        Raises
        ------
        ValueError
            As `build`.
        """
        policy = policies.build(spec)
        if _is_of_a_user(spec):
            within_s = min(within_s, TRIAL_S)
            self._tried[repr(spec)] = guarded(spec, policy, self._deadline_s, within_s)

    def renew(self, spec: PolicySpec) -> None:
        """Put a policy in force that was tried out; ask others again that took too long."""
        self._guarded.clear()
        tried = self._tried.pop(repr(spec), None)
        if tried is not None:
            self._guarded[repr(spec)] = tried


def _is_of_a_user(spec: PolicySpec) -> bool:
    """Whether one of the policies, of subtrees as well, comes from a user."""
    names = {spec.name, *(Subtree.read(text).name for text in spec.subtrees.values())}
    entries = map(policies.POLICIES.get, names)  # one may have gone since it was built
    return any(entry is None or entry.origin for entry in entries)


def guarded(
    spec: PolicySpec, policy: Policy, deadline_s: float, trial_s: float = TRIAL_S
) -> GuardedPolicy:
    """Guard a user's policy, and try it out.

    Raises
    ------
    ValueError
        Where it fails.
    """
    result = GuardedPolicy(spec.name, policy, deadline_s)
    try:
        result.try_out(trial_s)
    except Exception as error:
        entry = policies.POLICIES.get(spec.name)
        origin = entry.origin if entry else "a user"
        message = f"name: the policy {spec.name!r} of {origin} fails on a small cluster: {error}"
        raise ValueError(message) from error
    return result


def _checked(grants: object) -> Grants:
    """Take an answer only where it has the form of grants; the core checks what they say."""
    if not isinstance(grants, Grants):
        raise BadAnswerError(f"allocate() gave {type(grants).__name__}; it must give Grants")
    # Other types would fail later, or be compiled for anew in the loops over the books.
    for each in fields(Grants):
        array = getattr(grants, each.name)
        axes = 2 if each.name == "amount" else 1
        if not isinstance(array, np.ndarray) or array.dtype != np.int64 or array.ndim != axes:
            raise BadAnswerError(f"Grants.{each.name} must be an array of int64 with {axes} axes")
    return grants
