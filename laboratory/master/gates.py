"""The gates that a decision passes before it becomes an offer, including the quotas.

They are the module's (`mesos-module/DESIGN.md`): evaluated against the books when the decision
arrives, so that no late or wrong answer can over-commit an agent.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from allocator.core import AMOUNT_MAX, Reason
from laboratory.master.ledger import AgentRow, FrameworkRow, Ledger
from laboratory.resources import (
    Amount,
    allocatable,
    in_quota,
    lineage,
    same,
    take,
    understood,
)

# Quotas over the decisions of one batch: limits, and headroom for guarantees.
#
# The rules are the module's. A role consumes what is reserved for its subtree, allocated or not,
# and the unreserved, non-revocable scalars allocated to its subtree. Of free resources it may have
# its own unsatisfied guarantee, plus what the unsatisfied guarantees of all roles leave; or
# everything, if no other role's guarantee is unsatisfied. Guarantees belong to top-level roles,
# limits to any.


@dataclass(frozen=True, slots=True)
class Bounded:
    """The part of an amount that quotas permit.

    by_limit: whether a limit reduced the amount.
    by_headroom: whether room kept for another role's guarantee reduced it.
    """

    amount: Amount
    by_limit: bool = False
    by_headroom: bool = False


class QuotaBook:
    """What each role consumes of its quota: counted once, then updated with each offer."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._quotas = ledger.quotas
        self.consumed: dict[str, Counter[str]] = {path: Counter() for path in self._quotas}
        self._free: Counter[str] = Counter()
        if self._quotas:
            self._count()

    def _count(self) -> None:
        """Count reservations and holdings, and the free amounts that quotas apply to."""
        resources = self._ledger.table.resources
        for each, amount in zip(resources, self._ledger.total, strict=False):
            if in_quota(each):
                self._free[each.name] += amount
            elif each.scalar and each.reservations:
                for role in self._above(each.role):
                    self.consumed[role][each.name] += amount
        for _, handle, _, holding in self._ledger.rows():
            self.charge(self._ledger.path[handle], holding.both())

    def charge(self, path: str, amount: Amount) -> None:
        """Charge an amount to a role and its ancestors; does nothing if no quota is set."""
        if not self._quotas:
            return
        roles = list(self._above(path))
        for row, value in enumerate(amount):
            if value and in_quota(self._ledger.table[row]):
                name = self._ledger.table[row].name
                self._free[name] -= value
                for role in roles:
                    self.consumed[role][name] += value

    def bounded(self, path: str, amount: Amount) -> Bounded:
        """Reduce an amount to what quotas permit the role."""
        if not self._quotas:
            return Bounded(amount)
        table = self._ledger.table
        counted = [row for row, value in enumerate(amount) if value and in_quota(table[row])]
        wanted: Counter[str] = Counter()
        for row in counted:
            wanted[table[row].name] += amount[row]
        # The remaining allowance of the role, for each resource name.
        limit = {name: self._limit(path, name) for name in wanted}
        headroom = {name: self._headroom(path, name) for name in wanted}
        most = {name: min(limit[name], headroom[name]) for name in wanted}
        # Spend the allowance on one resource after another; skip an indivisible one that is too
        # large, because a later one may fit.
        left = list(amount)
        for row in counted:
            name = table[row].name
            left[row] = take(table[row], amount[row], int(min(most[name], amount[row])))
            most[name] -= left[row]
        return Bounded(
            tuple(left),
            any(limit[name] < some for name, some in wanted.items()),
            any(headroom[name] < some for name, some in wanted.items()),
        )

    def _limit(self, path: str, name: str) -> float:
        """The amount that the role may still consume under its limits and its ancestors'."""
        rooms = [
            max(0, self._quotas[role].limits[name] - self.consumed[role][name])
            for role in self._above(path)
            if name in self._quotas[role].limits
        ]
        return min(rooms, default=float("inf"))

    def _headroom(self, path: str, name: str) -> float:
        """The amount that other roles' unsatisfied guarantees leave; infinite if there are none."""
        required = sum(self._unsatisfied(role, name) for role in self._quotas)
        own = self._unsatisfied(lineage(path)[0], name)
        if required <= own:
            return float("inf")
        return own + max(0, self._free[name] - required)

    def _unsatisfied(self, role: str, name: str) -> int:
        """The unsatisfied part of a top-level role's guarantee."""
        if role not in self._quotas or "/" in role:
            return 0
        return max(0, self._quotas[role].guarantees.get(name, 0) - self.consumed[role][name])

    def _above(self, path: str) -> Iterator[str]:
        """Yield the role and its ancestors, without those that have no quota."""
        return (role for role in lineage(path) if role in self._quotas)


GPUS = "gpus"
GPU_CAPABILITY = "GPU_RESOURCES"
REGION_AWARE = "REGION_AWARE"
MULTI_ROLE = "MULTI_ROLE"
HIERARCHICAL_ROLE = "HIERARCHICAL_ROLE"


@dataclass(frozen=True, slots=True)
class Decision:
    """One row of the sidecar's decisions.

    framework, role, agent: handles.
    kinds: handles of the amounts' kinds.
    amounts: thousandths
    """

    framework: int
    role: int
    agent: int
    kinds: tuple[int, ...]
    amounts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The outcome of a decision.

    amount: what to offer, by resource; empty if the decision yields no offer.
    """

    reason: Reason
    amount: Amount = ()


def judge(
    ledger: Ledger,
    decision: Decision,
    sequence: int,
    now_ms: int,
    quotas: QuotaBook | None = None,
) -> GateVerdict:
    """Pass a decision through the gates; the books are not changed.

    sequence: the batch that the decision answers. A handle bound later now means another object.
    quotas: consumption that includes the earlier decisions of the batch; None: count it now.
    """
    # Do the handles still refer to what the sidecar meant?
    reason = _named(ledger, decision, sequence)
    # Kinds are distinct: a decision with more kinds than are bound names an unknown one.
    if reason is None and len(decision.kinds) > len(ledger.kinds):
        reason = Reason.MALFORMED
    # May the framework get offers of the agent at all?
    reason = reason or _who(ledger, decision) or _where(ledger, decision)
    if reason is not None:
        return GateVerdict(reason)
    # How much of it is free and permitted for this framework? At most what was decided.
    wanted = _wanted(ledger, decision)
    if wanted is None:
        return GateVerdict(Reason.MALFORMED)
    taken = ledger.kinds.chop(_pool(ledger, decision), wanted)
    if not any(taken):
        return GateVerdict(Reason.NOTHING_AVAILABLE)
    # Quotas may reduce it; the remainder must reach the minimum.
    bounded = (quotas or QuotaBook(ledger)).bounded(_path(ledger, decision), taken)
    given = bounded.amount
    if not offerable(ledger, decision, given):
        if bounded.by_limit:
            return GateVerdict(Reason.LIMIT)
        return GateVerdict(Reason.HEADROOM if bounded.by_headroom else Reason.BELOW_MINIMUM)
    # The framework may have refused this amount since the sidecar decided.
    filters = ledger.filters[decision.framework].get((decision.role, decision.agent), ())
    if any(f.expires_ms >= now_ms and f.covers(given) for f in filters):
        return GateVerdict(Reason.FILTERED)
    exactly = same(ledger.kinds.by_kind(given), wanted)
    return GateVerdict(Reason.OFFERED if exactly else Reason.PARTIAL, given)


def allows(framework: FrameworkRow, agent: AgentRow) -> bool:
    """Whether the agent has an allowed value of each constrained attribute."""
    return all(
        agent.info.attributes.get(name) in values for name, values in framework.allowed.items()
    )


def offerable(ledger: Ledger, decision: Decision, amount: Amount) -> bool:
    """Whether the amount reaches one of the framework's minimums, or of the master's."""
    own = ledger.frameworks[decision.framework].minimum.get(decision.role)
    minimum = ledger.minimum if own is None else own
    if not minimum or not any(amount):
        return any(amount)  # an empty amount is never offered
    there = ledger.by_name(amount)
    return any(all(there[name] >= some for name, some in least.items()) for least in minimum)


def _path(ledger: Ledger, decision: Decision) -> str:
    return ledger.path.get(decision.role, "")


def _pool(ledger: Ledger, decision: Decision) -> Amount:
    """Free resources that can be allocated to the role and that the framework understands."""
    path = _path(ledger, decision)
    capabilities = ledger.frameworks[decision.framework].capabilities
    free = ledger.available(decision.agent)
    return tuple(
        amount if amount and allocatable(each, path) and understood(each, capabilities) else 0
        for each, amount in zip(ledger.table.resources, free, strict=False)
    )


def _named(ledger: Ledger, decision: Decision, sequence: int) -> Reason | None:
    """Name an unknown or stale handle; None if all are valid."""
    framework = ledger.frameworks.get(decision.framework)
    agent = ledger.agents.get(decision.agent)
    if framework is None:
        return Reason.UNKNOWN_FRAMEWORK
    if decision.role not in ledger.path:
        return Reason.BAD_ROLE
    if agent is None:
        return Reason.UNKNOWN_AGENT
    # If a handle was bound again after the decision's batch, the decision means its previous owner.
    stale = max(framework.bound_sequence, agent.bound_sequence) > sequence
    return Reason.STALE if stale else None


def _who(ledger: Ledger, decision: Decision) -> Reason | None:
    """Say why the framework cannot get offers in the role; None if it can."""
    if ledger.holds_back:
        return Reason.PAUSED
    framework = ledger.frameworks[decision.framework]
    if not framework.active:
        return Reason.INACTIVE_FRAMEWORK
    if decision.role not in framework.roles:
        return Reason.BAD_ROLE
    return Reason.SUPPRESSED if decision.role in framework.suppressed else None


def _where(ledger: Ledger, decision: Decision) -> Reason | None:
    """Say why the agent cannot be offered to the framework; None if it can."""
    agent = ledger.agents[decision.agent]
    if not agent.active or not _listed(ledger, agent):
        return Reason.INACTIVE_AGENT
    framework = ledger.frameworks[decision.framework]
    excluded = (decision.role, decision.agent) in ledger.excluded[decision.framework]
    if excluded or not allows(framework, agent):
        return Reason.CONSTRAINT
    capable = _capable(ledger, framework, agent, _path(ledger, decision))
    return None if capable else Reason.CAPABILITY


def _listed(ledger: Ledger, agent: AgentRow) -> bool:
    return ledger.whitelist is None or agent.info.hostname in ledger.whitelist


def _capable(ledger: Ledger, framework: FrameworkRow, agent: AgentRow, path: str) -> bool:
    """Whether the capabilities of framework and agent permit offers."""
    region = agent.info.region
    remote = bool(ledger.region and region and region != ledger.region)
    has, knows = framework.capabilities, agent.info.capabilities
    return (
        (GPU_CAPABILITY in has or not ledger.filter_gpus or not _gpus(ledger, agent))
        and (REGION_AWARE in has or not remote)
        and (MULTI_ROLE in knows or MULTI_ROLE not in has)
        and (HIERARCHICAL_ROLE in knows or "/" not in path)
    )


def _gpus(ledger: Ledger, agent: AgentRow) -> int:
    return ledger.by_name(tuple(agent.capacity))[GPUS]


def _wanted(ledger: Ledger, decision: Decision) -> Amount | None:
    """The amounts decided, by kind; None if they are malformed."""
    if len(decision.kinds) != len(decision.amounts):
        return None
    wanted = [0] * len(ledger.kinds)
    for kind, amount in zip(decision.kinds, decision.amounts, strict=True):
        if not (0 <= amount <= AMOUNT_MAX and 0 <= kind < len(wanted)):
            return None
        wanted[kind] += amount
    return tuple(wanted) if any(wanted) else None
