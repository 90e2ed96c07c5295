"""Isolates users' policies, so that they neither block the sidecar nor change its books.

A user's policy runs in a separate thread, with a deadline, on read-only arrays. The isolation has
limits. A thread cannot be ended from outside, so one that never returns continues until the process
ends, and competes for the interpreter. Code that never releases the interpreter (an endless loop in
C) stops the whole process.
"""

import threading
from collections.abc import Callable
from dataclasses import fields
from typing import TypeVar

import numpy as np
import structlog

from allocator import policies
from allocator.core import (
    Floats,
    Grants,
    Policy,
    PolicySpec,
    ScoringPolicy,
    Snapshot,
    Subtree,
    UserCodeError,
    describe,
    frozen,
)
from allocator.core.numba.compiled import interpreted_here
from allocator.server.system import threads
from allocator.testing import static_snapshot

TRIAL_S = 20.0
"""Maximum time for a policy's first decision, on a cluster of two agents, without compilation."""

_T = TypeVar("_T")

_log = structlog.get_logger()


class PolicyTooSlowError(RuntimeError):
    """A policy did not decide in time; it is not called again until it is set again."""


class BadAnswerError(TypeError):
    """A policy returned something other than grants."""


class GuardedPolicy:
    """A user's policy with a deadline; after one timeout it is no longer called."""

    def __init__(self, name: str, policy: Policy, deadline_s: float) -> None:
        """Guard a policy; `name`: for messages; `deadline_s`: maximum time per cycle."""
        self._name = name
        self._policy = policy
        self._deadline_s = deadline_s
        self._overran = False

    def try_out(self, within_s: float) -> None:
        """Let the policy decide about a small cluster, to find errors before it is in force.

        Only the policy's own time counts, without compilation or waiting for it.

        Raises what the policy raises, and the errors of `allocate`.
        """
        cluster = frozen(static_snapshot([[4, 8], [2, 16]], [[1, 1], [0, 0]]))

        def wait(thread: threading.Thread) -> None:
            threads.wait_for(thread, f"the policy {self._name!r}", "its decision", within_s)

        _checked(self._in_time(lambda: self._policy.allocate(cluster, 1), within_s, wait))

    def allocate(self, snapshot: Snapshot, seed: int) -> Grants:
        """Decide one cycle. Raises PolicyTooSlowError or BadAnswerError."""
        work = self._in_time(lambda: self._policy.allocate(snapshot, seed), self._deadline_s)
        return _checked(work)

    def scores(self, snapshot: Snapshot) -> Floats:
        """Score the clients; nan if the policy has no scores."""
        policy = self._policy
        if not isinstance(policy, ScoringPolicy):
            return np.full(len(snapshot.held), np.nan)
        scores = self._in_time(lambda: policy.scores(snapshot), self._deadline_s)
        return np.asarray(scores, np.float64)

    def _in_time(
        self,
        work: Callable[[], _T],
        deadline_s: float,
        wait: Callable[[threading.Thread], None] | None = None,
    ) -> _T:
        if self._overran:
            raise PolicyTooSlowError(
                f"the policy {self._name!r} took too long before and is no longer called; set it"
                " again when it is quicker"
            )

        def wait_here(thread: threading.Thread) -> None:
            thread.join(deadline_s)

        try:
            found = threads.apart(f"policy {self._name}", work, wait or wait_here)
        except BaseException as error:  # any error, also one that is meant to end the process
            raise UserCodeError(describe(error)) from error
        if found is None:
            self._overran = True
            raise PolicyTooSlowError(
                f"the policy {self._name!r} did not decide within {1000 * deadline_s:g} ms; it is"
                " not called until it is set again"
            )
        return found[0]


class GuardedRegistry:
    """Builds policies from their specifications; users' policies are guarded."""

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._guarded: dict[str, GuardedPolicy] = {}
        # Policies that were tried on other threads and are not in force yet.
        self._tried: dict[str, GuardedPolicy] = {}

    def build(self, spec: PolicySpec) -> Policy:
        """Build a policy; a guarded one is kept, so that its timeouts are remembered.

        The core builds policies on its thread, so no policy is tried here. If a policy was tried
        before, that object is used.

        Raises ValueError if the specification is invalid.
        """
        tried = self._tried.pop(repr(spec), None)
        if tried is not None:
            self._guarded[repr(spec)] = tried
        known = self._guarded.get(repr(spec))
        if known is not None:
            return known
        policy = self.build_apart(spec)
        if isinstance(policy, GuardedPolicy):
            self._guarded[repr(spec)] = policy
        return policy

    def build_apart(self, spec: PolicySpec) -> Policy:
        """Build a policy that shares nothing with others, with its own guard. Raises ValueError."""
        policy = policies.build(spec)
        if not _is_of_a_user(spec):
            return policy
        return GuardedPolicy(spec.name, policy, self._deadline_s)

    def try_out(self, spec: PolicySpec, within_s: float = TRIAL_S) -> None:
        """Try a policy that is about to be set; on any thread but the core's. Raises ValueError."""
        policy = self.build_apart(spec)
        if not isinstance(policy, GuardedPolicy):
            return
        try:
            policy.try_out(min(within_s, TRIAL_S))
        except Exception as error:
            entry = policies.POLICIES.get(spec.name)
            origin = entry.origin if entry else "a user"
            message = (
                f"name: the policy {spec.name!r} of {origin} fails on a small cluster: {error}"
            )
            raise ValueError(message) from error
        self._tried[repr(spec)] = policy

    def check(self, spec: PolicySpec) -> None:
        """Check quickly whether a policy can be set. Raises ValueError as `try_out` does."""
        # Run loops as plain Python, which is faster for a small cluster than loading them.
        with interpreted_here():
            self.try_out(spec)

    def begin_with(self, spec: PolicySpec) -> None:
        """Try the first policy, because its file may have changed; log if it fails."""
        try:
            self.try_out(spec)
        except ValueError as error:
            _log.error("the policy in force fails; the substitute decides", error=str(error))

    def renew(self, _spec: PolicySpec) -> None:
        """Before a policy is set, forget all timeouts, so that policies are called again."""
        self._guarded.clear()


def _is_of_a_user(spec: PolicySpec) -> bool:
    names = {spec.name, *(Subtree.read(text).name for text in spec.subtrees.values())}
    entries = map(policies.POLICIES.get, names)  # one may have been removed since it was built
    return any(entry is None or entry.origin for entry in entries)


def _checked(grants: object) -> Grants:
    """Check that a result has the form of grants; the core checks their values."""
    if not isinstance(grants, Grants):
        raise BadAnswerError(f"allocate() gave {type(grants).__name__}; it must give Grants")
    # Other types would fail later, or cause a recompilation of the core's loops.
    for each in fields(Grants):
        array = getattr(grants, each.name)
        axes = 2 if each.name == "amount" else 1
        if not isinstance(array, np.ndarray) or array.dtype != np.int64 or array.ndim != axes:
            raise BadAnswerError(f"Grants.{each.name} must be an array of int64 with {axes} axes")
    return grants
