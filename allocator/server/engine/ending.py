"""Why a stream ends that the core did not end: what its peer is told."""

import time

from google.protobuf.message import DecodeError

from allocator.v1 import session_pb2 as pb
from allocator.wire import Greeting, WireError

SESSIONS_MAX = 16
"""Streams at a time; one of them has the allocator."""

HELLO_S = 10.0
"""A stream must say hello within this time."""

AHEAD_US = 600_000_000
"""A master may have begun so far ahead of our clock: no two clocks are quite the same."""


def shutdown() -> WireError:
    """Say that the sidecar ends."""
    return WireError(pb.ERROR_CODE_SHUTDOWN, "", "the sidecar shuts down; call again later")


def no_hello() -> WireError:
    """Say that a stream was silent."""
    return WireError(pb.ERROR_CODE_PROTOCOL, "", f"no hello came within {HELLO_S:g} s")


def no_room() -> WireError:
    """Say that others call, and this one has said nothing for longest."""
    text = f"{SESSIONS_MAX} streams are open, and this one has waited for longest; say hello"
    return WireError(pb.ERROR_CODE_LIMIT, "", text)


def unbelieved(holder: Greeting, first: bytes) -> tuple[bool, WireError] | None:
    """Say which of two masters is not believed, for it began when nobody can have begun yet.

    Else one whose clock was wrong would keep all others away for as long as it calls. Where both
    say so, or neither, the core decides as ever.

    `holder`: of the session that has the allocator.
    `first`: what the newcomer says first.
    Returns whether it is the newcomer, and what it is told; None where both may be believed.
    """
    try:
        claim = pb.SessionRequest.FromString(first).hello
    except DecodeError:
        return None
    latest_us = time.time_ns() // 1000 + AHEAD_US
    ours, theirs = (each.instance_started_us > latest_us for each in (holder, claim))
    if ours == theirs or not claim.instance_id or claim.instance_id == holder.instance_id:
        return None
    name = claim.instance_id if theirs else holder.instance_id
    text = f"instance {name[:100]!r} began in the future, by this sidecar's clock, and another"
    message = f"{text} master calls; set the clocks right"
    return theirs, WireError(pb.ERROR_CODE_SUPERSEDED, "instance_started_us", message)
