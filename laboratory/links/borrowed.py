"""Borrow a running sidecar, and restore its policy afterwards.

Runs change nothing but the policy, and only that is restored. Settings that an operator changes
meanwhile stay.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, cast

import grpc

from allocator.client import why_unavailable
from allocator.core import PolicySpec
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2
from allocator.v1.admin_pb2_grpc import AdminServiceStub
from laboratory.links.base import LinkDownError
from laboratory.links.sidecar_process import channel

ADMIN_S = 30.0

_SILENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


class SidecarBusyError(RuntimeError):
    """A master is using the sidecar; the message names it, and what to do."""


class SidecarRefusedError(RuntimeError):
    """The sidecar rejected a request; the message is the sidecar's."""


class _Mark(NamedTuple):
    """Identifies a setting of the policy: its author, place and time."""

    source: str
    place: str
    set_at_ms: int


_ours: dict[str, _Mark] = {}
"""The last setting of this process, by target."""


def set_policy(target: str, spec: PolicySpec) -> None:
    """Set the policy of a running sidecar, from its next cycle on.

    Raises LinkDownError if no sidecar answers, SidecarRefusedError if it rejects the policy.
    """
    policy = settings_pb2.Policy(
        name=spec.name,
        selection=spec.selection,
        mode=spec.mode,
        flat=spec.flat,
        parameters=spec.parameters,
        subtrees=spec.subtrees,
    )
    with _admin(target) as stub:
        stub.SetPolicy(pb.SetPolicyRequest(policy=policy), timeout=ADMIN_S)
        _ours[target] = _mark(stub)


@contextmanager
def borrowed(
    target: str, *, force: bool = False, note: Callable[[str], None] = lambda _text: None
) -> Iterator[int]:
    """Use a sidecar, and restore its policy at the end, even after an error.

    The policy is all that needs to be restored: other state of a session ends with it, and runs
    change only the policy, by `set_policy`. If no run has changed it, or an operator has set
    another policy since, it is left as it is.

    force: take the sidecar from the master that uses it. That master reconnects repeatedly, and
        gets it back after our last session.
    note: called with one line that says why the policy is not restored.
    Yields the time at which our master claims to have been elected, in microseconds. A sidecar
        serves the master elected last: any real one, or ours if `force` is given.
    Raises SidecarBusyError if a master uses the sidecar and `force` is not given.
    Raises LinkDownError if no sidecar answers, SidecarRefusedError if it rejects a request; at
        the end they name the policy that could not be restored.
    """
    _ours.pop(target, None)
    with _admin(target) as stub:
        status = stub.GetStatus(pb.GetStatusRequest(), timeout=ADMIN_S)
        before = _policy_of_operators(stub)
    if status.in_session and not force:
        message = (
            f"the sidecar at {target} serves the master {status.master_id!r}, whose offers would"
            " stop meanwhile; name another sidecar, or take this one over with --force"
        )
        raise SidecarBusyError(message)
    try:
        yield time.time_ns() // 1000 if force else 1
    finally:
        if target in _ours:
            _set_back(target, before, _ours.pop(target), note)


def _mark(stub: AdminServiceStub) -> _Mark:
    """Read the author and time of the policy in force."""
    listed = stub.ListSettings(pb.ListSettingsRequest(), timeout=ADMIN_S).settings
    row = next(each for each in listed if each.key == "policy.name")
    return _Mark(row.source, row.place, row.set_at_ms)


def _policy_of_operators(stub: AdminServiceStub) -> settings_pb2.Policy | None:
    """Read the policy in force if an operator set it; None: the configuration did."""
    if _mark(stub).source != "operator":
        return None
    return stub.GetPolicy(pb.GetPolicyRequest(), timeout=ADMIN_S).policy


def _set_back(
    target: str, before: settings_pb2.Policy | None, ours: _Mark, note: Callable[[str], None]
) -> None:
    """Restore the policy; one from the configuration must not become an operator's setting."""
    try:
        with _admin(target) as stub:
            if _mark(stub) != ours:
                note(f"note: another policy was set at {target} meanwhile; that one stays")
            elif before is None:
                stub.ResetSettings(pb.ResetSettingsRequest(what=["policy"]), timeout=ADMIN_S)
            else:
                stub.SetPolicy(pb.SetPolicyRequest(policy=before), timeout=ADMIN_S)
    except (LinkDownError, SidecarRefusedError) as error:
        named, mend = (
            (f"the policy {before.name!r}", "set it where it runs")
            if before
            else ("the configuration's policy", "`settings reset policy` does it")
        )
        text = f"{error}; {named} could not be set back: {mend}"
        raise type(error)(text) from None


def _told(error: grpc.RpcError) -> tuple[grpc.StatusCode, str]:
    """Return the status and the message of a failed call."""
    call = cast("grpc.Call", error)
    return call.code(), call.details() or call.code().name


@contextmanager
def _admin(target: str) -> Iterator[AdminServiceStub]:
    """Open a sidecar's admin service; map gRPC errors to ours."""
    with channel(target) as to_sidecar:
        try:
            yield AdminServiceStub(to_sidecar)
        except grpc.RpcError as error:
            code, details = _told(error)
            if code not in _SILENT:
                raise SidecarRefusedError(details) from None
            mend = "it may need TLS, which emulated masters do not speak; name a socket or port"
            why = why_unavailable(target, details, tls=f"{mend} without it")
            raise LinkDownError(why) from None
