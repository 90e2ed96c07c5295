"""What the records of a journal say; `framing` says how they stand in a file.

A file begins with how the core was set up, and a checkpoint of what it knew; so it can be replayed
without those before it.
"""

import hashlib
import struct
from collections.abc import Iterable

import numpy as np

from allocator.core import (
    AdoptPlan,
    Limits,
    Plan,
    SetConstraint,
    SetDemand,
    SetDrain,
    SetLimit,
    SetPolicy,
    SetShadow,
    Settings,
    SetWeight,
)
from allocator.v1 import journal_pb2, settings_pb2, types_pb2
from allocator.v1 import session_pb2 as pb
from allocator.wire.codec import proto_types
from allocator.wire.codec.errors import WireError
from allocator.wire.journal.framing import JournalError
from allocator.wire.session.sidecar import Answer
from allocator.wire.settings.operator_settings import (
    OperatorEvent,
    read_constraint,
    read_demand,
    read_policy,
    read_weight,
    write_constraint,
    write_demand,
    write_drain,
    write_limit,
    write_policy,
    write_shadow,
    write_weight,
)

_NUMBERS = struct.Struct("<QQ")


def start_record(
    settings: Settings,
    limits: Limits,
    welcome: pb.Welcome,
    *,
    sessions_before: int = 0,
    file: int = 1,
    records_before: int = 0,
) -> journal_pb2.JournalRecord:
    """Say how the core is set up."""
    start = _write_settings(settings)
    start.MergeFrom(
        journal_pb2.JournalStart(
            sidecar_version=welcome.sidecar_version,
            sidecar_id=welcome.sidecar_id,
            welcome=welcome,
            limits=journal_pb2.JournalLimits(
                agents=limits.agents,
                frameworks=limits.frameworks,
                roles=limits.roles,
                role_depth=limits.role_depth,
                clients=limits.clients,
                kinds=limits.kinds,
                filters=limits.filters,
            ),
            sessions_before=sessions_before,
            file=file,
            records_before=records_before,
        )
    )
    return journal_pb2.JournalRecord(start=start)


def _write_settings(settings: Settings) -> journal_pb2.JournalStart:
    demands = (write_demand(rule).demand for rule in settings.demands.values())
    constraints = (write_constraint(rule).constraint for rule in settings.constraints.values())
    return journal_pb2.JournalStart(
        policy=write_policy(settings.policy),
        seed=settings.seed,
        learn_demand=settings.learn_demand,
        learn_after=settings.learn_after,
        probe_after=settings.probe_after,
        priors_max=settings.priors_max,
        prior_half_life_ms=settings.prior_half_life_ms,
        learn_patience_cycles=settings.learn_patience_cycles,
        patience_cycles=settings.patience_cycles,
        outstanding_max=settings.outstanding_max,
        limits_of_roles=(
            types_pb2.Quota(role=role, limits=proto_types.write_quantities(limits))
            for role, limits in settings.limits.items()
        ),
        demands=demands,
        constraints=constraints,
        drains=(settings_pb2.Drain(agent=agent) for agent in sorted(settings.drains)),
        weights=(write_weight(rule).weight for rule in settings.weights.values()),
        shadow=None if settings.shadow is None else write_policy(settings.shadow),
    )


def read_settings(start: journal_pb2.JournalStart) -> Settings:
    """Read what operators had set."""
    settings = Settings(
        policy=read_policy(start.policy),
        seed=start.seed,
        learn_demand=start.learn_demand,
        learn_after=start.learn_after,
        probe_after=start.probe_after,
        priors_max=start.priors_max,
        prior_half_life_ms=max(start.prior_half_life_ms, 1),
        learn_patience_cycles=start.learn_patience_cycles,
        patience_cycles=start.patience_cycles,
        outstanding_max=start.outstanding_max,
        limits={
            limit.role: proto_types.read_quantities(limit.limits) for limit in start.limits_of_roles
        },
    )
    for demand in start.demands:
        rule = read_demand(settings_pb2.SetDemandRequest(demand=demand))
        settings.demands[rule.role, rule.framework_name] = rule
    for constraint in start.constraints:
        only = read_constraint(settings_pb2.SetConstraintRequest(constraint=constraint))
        settings.constraints[only.role, only.framework_name] = only
    for weight in start.weights:
        own = read_weight(settings_pb2.SetWeightRequest(weight=weight))
        settings.weights[own.role, own.framework_name] = own
    settings.drains = frozenset(drain.agent for drain in start.drains)
    if start.HasField("shadow"):
        settings.shadow = read_policy(start.shadow)
    return settings


def read_start(start: journal_pb2.JournalStart) -> tuple[Settings, Limits]:
    """Read how the core was set up."""
    limits = start.limits
    return read_settings(start), Limits(
        agents=limits.agents,
        frameworks=limits.frameworks,
        roles=limits.roles,
        role_depth=limits.role_depth or limits.roles,  # older journals know no bound
        clients=limits.clients,
        kinds=limits.kinds,
        filters=limits.filters,
    )


def opened_record(session: int) -> journal_pb2.JournalRecord:
    """Say that a session began."""
    return journal_pb2.JournalRecord(session=session, opened=journal_pb2.JournalOpened())


def request_record(session: int, data: bytes) -> journal_pb2.JournalRecord:
    """Keep a message as it came."""
    return journal_pb2.JournalRecord(session=session, request=data)


def closed_record(session: int, error: WireError | None = None) -> journal_pb2.JournalRecord:
    """Say that a session ended, and what its peer was told."""
    closed = journal_pb2.JournalClosed()
    if error is not None:
        closed = journal_pb2.JournalClosed(
            code=error.code, field=error.field, message=error.message
        )
    return journal_pb2.JournalRecord(session=session, closed=closed)


def read_closed(closed: journal_pb2.JournalClosed) -> WireError | None:
    """Read what the peer of a session that ended was told; None: it left by itself."""
    return WireError(closed.code, closed.field, closed.message) if closed.code else None


def looked_record() -> journal_pb2.JournalRecord:
    """Say that an operator asked for scores."""
    return journal_pb2.JournalRecord(looked=journal_pb2.JournalLooked())


def answered_record(answers: Iterable[Answer], policy_error: str = "") -> journal_pb2.JournalRecord:
    """Keep a digest of the answers to the record before, for a replay to compare.

    With it stands why the policy could not decide a cycle of them.
    """
    digest = hashlib.blake2b(digest_size=8)
    for session, response in answers:
        data = response.SerializeToString(deterministic=True)
        digest.update(_NUMBERS.pack(session, len(data)))
        digest.update(data)
    answered = journal_pb2.JournalAnswered(digest=digest.digest(), policy_error=policy_error)
    return journal_pb2.JournalRecord(answered=answered)


def operator_record(event: OperatorEvent) -> journal_pb2.JournalRecord:
    """Keep what an operator set, or a plan."""
    match event:
        case SetPolicy():
            return journal_pb2.JournalRecord(policy=write_policy(event.spec))
        case SetDemand():
            return journal_pb2.JournalRecord(demand=write_demand(event))
        case SetConstraint():
            return journal_pb2.JournalRecord(constraint=write_constraint(event))
        case SetLimit():
            return journal_pb2.JournalRecord(limit=write_limit(event))
        case SetDrain():
            return journal_pb2.JournalRecord(drain=write_drain(event))
        case SetWeight():
            return journal_pb2.JournalRecord(weight=write_weight(event))
        case SetShadow():
            return journal_pb2.JournalRecord(shadow=write_shadow(event))
        case Settings():
            return journal_pb2.JournalRecord(settings=_write_settings(event))
        case AdoptPlan():
            return journal_pb2.JournalRecord(plan=write_plan(event.plan))


def write_plan(plan: Plan) -> journal_pb2.JournalPlan:
    """Keep a plan."""
    return journal_pb2.JournalPlan(
        target=plan.target.astype("<f8").tobytes(),
        group=plan.group.astype("<i8").tobytes(),
        allowed=plan.allowed.astype("<u8").tobytes(),
        price=plan.price.astype("<f8").tobytes(),
        words=plan.allowed.shape[1],
        columns=plan.price.shape[1],
        part=plan.part.astype("<f8").tobytes(),
        leave=plan.leave.astype("<i8").tobytes(),
        seen_ms=plan.seen_ms,
    )


def read_plan(plan: journal_pb2.JournalPlan) -> AdoptPlan:
    """Read a plan.

    Raises
    ------
    JournalError
        Where its bytes are no arrays of these sizes.
    """
    try:
        target = np.frombuffer(plan.target, "<f8")
        return AdoptPlan(
            Plan(
                target,
                np.frombuffer(plan.group, "<i8"),
                np.frombuffer(plan.allowed, "<u8").reshape(-1, plan.words or 1),
                np.frombuffer(plan.price, "<f8").reshape(-1, plan.columns or 1),
                np.frombuffer(plan.part, "<f8").reshape(-1, len(target) or 1),
                np.frombuffer(plan.leave, "<i8"),
                plan.seen_ms,
            )
        )
    except ValueError as error:
        raise JournalError(f"a plan cannot be read: {error}") from None
