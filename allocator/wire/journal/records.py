"""Makes and reads the records of a journal; `framing` defines how a file stores them.

A file starts with the core's setup and a checkpoint of its state, so it can be replayed without the
files before it.
"""

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from allocator.core import (
    AdoptPlan,
    ForgetUsage,
    Grants,
    Plan,
    SessionLimits,
    SetPolicy,
    Settings,
)
from allocator.rule_kinds import KINDS
from allocator.v1 import journal_pb2
from allocator.v1 import session_pb2 as pb
from allocator.wire.codec.validation import WireError
from allocator.wire.journal.framing import JournalError
from allocator.wire.session.sidecar import Answer
from allocator.wire.settings.operator_settings import (
    OperatorEvent,
    read_change,
    write_change,
)

_NUMBERS = struct.Struct("<QQ")

_NUMBERS_SET = tuple(
    each.name for each in fields(Settings) if isinstance(each.default, int | float)
)
"""Settings that are numbers: fields with the same name in `Settings` and `JournalStart`."""

_GRANT_ROWS = ("client", "agent", "special_grant", "special")
"""Columns of row numbers, four bytes each."""

_GRANT_AMOUNTS = ("tasks", "special_amount")


def start_record(
    settings: Settings,
    limits: SessionLimits,
    welcome: pb.Welcome,
    *,
    sessions_before: int = 0,
    file: int = 1,
    records_before: int = 0,
) -> journal_pb2.JournalRecord:
    start = _write_settings(settings)
    start.MergeFrom(
        journal_pb2.JournalStart(
            sidecar_version=welcome.sidecar_version,
            sidecar_id=welcome.sidecar_id,
            welcome=welcome,
            limits=journal_pb2.JournalLimits(**asdict(limits)),
            sessions_before=sessions_before,
            file=file,
            records_before=records_before,
        )
    )
    return journal_pb2.JournalRecord(start=start)


def _write_settings(settings: Settings) -> journal_pb2.JournalStart:
    in_force = (each for kind in KINDS.values() for each in settings.standing(kind))
    return journal_pb2.JournalStart(
        in_force=map(write_change, in_force),
        **{name: getattr(settings, name) for name in _NUMBERS_SET},
    )


def read_settings(start: journal_pb2.JournalStart) -> Settings:
    numbers: dict[str, Any] = {name: getattr(start, name) for name in _NUMBERS_SET}
    changes = list(map(read_change, start.in_force))
    policy = next((each.spec for each in changes if isinstance(each, SetPolicy)), None)
    if policy is None:
        raise JournalError("the journal's setup of the core has no policy")
    settings = Settings(policy=policy, **numbers)
    for each in changes:
        settings.put(each)
    return settings


def read_start(start: journal_pb2.JournalStart) -> tuple[Settings, SessionLimits]:
    limits = {each.name: getattr(start.limits, each.name) for each in fields(SessionLimits)}
    return read_settings(start), SessionLimits(**limits)


def opened_record(session: int) -> journal_pb2.JournalRecord:
    return journal_pb2.JournalRecord(session=session, opened=journal_pb2.JournalOpened())


def request_record(session: int, data: bytes) -> journal_pb2.JournalRecord:
    return journal_pb2.JournalRecord(session=session, request=data)


def closed_record(session: int, error: WireError | None = None) -> journal_pb2.JournalRecord:
    closed = journal_pb2.JournalClosed()
    if error is not None:
        closed = journal_pb2.JournalClosed(
            code=error.code, field=error.field, message=error.message
        )
    return journal_pb2.JournalRecord(session=session, closed=closed)


def read_closed(closed: journal_pb2.JournalClosed) -> WireError | None:
    """Read the error that was sent to the peer when a session ended; None: the peer ended it."""
    return WireError(closed.code, closed.field, closed.message) if closed.code else None


def answered_record(
    answers: Iterable[Answer],
    policy_error: str = "",
    first_plan: AdoptPlan | None = None,
    grants: Grants | None = None,
    failure: str = "",
) -> journal_pb2.JournalRecord:
    """Make the record of the answers to the previous record: a digest, for a replay to compare.

    It also has what a replay cannot compute: why the policy did not decide a cycle, and which plan
    arrived while the cycle waited.

    `grants`, `failure`: only for followers, see `JournalAnswered`.
    """
    digest = hashlib.blake2b(digest_size=8)
    for session, response in answers:
        data = response.SerializeToString(deterministic=True)
        digest.update(_NUMBERS.pack(session, len(data)))
        digest.update(data)
    answered = journal_pb2.JournalAnswered(
        digest=digest.digest(),
        policy_error=policy_error,
        first_plan=None if first_plan is None else write_plan(first_plan.plan),
        grants=None if grants is None else write_grants(grants),
        failure=failure,
    )
    return journal_pb2.JournalRecord(answered=answered)


def for_file(record: journal_pb2.JournalRecord) -> journal_pb2.JournalRecord:
    """Copy a stream's record without the parts that files do not need."""
    answered = record.answered
    if not answered.failure and not answered.HasField("grants"):
        return record
    kept = journal_pb2.JournalAnswered(digest=answered.digest, policy_error=answered.policy_error)
    if answered.HasField("first_plan"):
        kept.first_plan.CopyFrom(answered.first_plan)
    return journal_pb2.JournalRecord(answered=kept)


def operator_record(event: OperatorEvent) -> journal_pb2.JournalRecord:
    record = journal_pb2.JournalRecord()
    match event:
        case Settings():
            record.settings.CopyFrom(_write_settings(event))
        case AdoptPlan():
            record.plan.CopyFrom(write_plan(event.plan))
        case ForgetUsage(role, framework_id):
            record.forgotten.role, record.forgotten.framework_id = role, framework_id
            record.forgotten.SetInParent()
        case _:
            record.change.CopyFrom(write_change(event))
    return record


def read_operator(record: journal_pb2.JournalRecord) -> OperatorEvent | None:
    """Read an operator's event, or a plan; None for other records."""
    what = record.WhichOneof("record") or ""
    if what == "settings":
        return read_settings(record.settings)
    if what == "plan":
        return read_plan(record.plan)
    if what == "forgotten":
        return ForgetUsage(record.forgotten.role, record.forgotten.framework_id)
    return read_change(record.change) if what == "change" else None


def write_plan(plan: Plan) -> journal_pb2.JournalPlan:
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
    """Read a plan. Raises JournalError if its bytes are not arrays of these sizes."""
    try:
        target = np.frombuffer(plan.target, "<f8")
        return AdoptPlan(
            Plan(
                target,
                np.frombuffer(plan.group, "<i8"),
                _rows(np.frombuffer(plan.allowed, "<u8"), plan.words),
                _rows(np.frombuffer(plan.price, "<f8"), plan.columns),
                _rows(np.frombuffer(plan.part, "<f8"), len(target)),
                np.frombuffer(plan.leave, "<i8"),
                plan.seen_ms,
            )
        )
    except ValueError as error:
        raise JournalError(f"a plan cannot be read: {error}") from None


def write_grants(grants: Grants) -> journal_pb2.JournalGrants:
    columns = {name: getattr(grants, name).astype("<i4").tobytes() for name in _GRANT_ROWS}
    columns |= {name: getattr(grants, name).astype("<i8").tobytes() for name in _GRANT_AMOUNTS}
    return journal_pb2.JournalGrants(
        amount=grants.amount.astype("<i8").tobytes(), columns=grants.amount.shape[1], **columns
    )


def read_grants(message: journal_pb2.JournalGrants) -> Grants:
    """Convert a message to grants. Raises JournalError if the bytes are not arrays of its sizes."""
    try:
        columns = {name: _numbers(getattr(message, name), "<i4") for name in _GRANT_ROWS}
        columns |= {name: _numbers(getattr(message, name), "<i8") for name in _GRANT_AMOUNTS}
        shape = len(columns["client"]), message.columns
        return Grants(amount=_numbers(message.amount, "<i8").reshape(shape), **columns)
    except ValueError as error:
        raise JournalError(f"grants cannot be read: {error}") from None


def _numbers(data: bytes, dtype: str) -> np.ndarray:
    return np.frombuffer(data, dtype).astype(np.int64)


def _rows(numbers: np.ndarray, columns: int) -> np.ndarray:
    """Cut numbers into rows; no rows without columns. Raises ValueError if they do not fit."""
    rows = len(numbers) // columns if columns else 0
    return numbers.reshape(rows, columns)
