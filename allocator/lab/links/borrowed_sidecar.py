"""A sidecar that somebody else runs, used for a while and given back as it was."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import grpc

from allocator.lab.links.base import LinkDownError
from allocator.lab.links.sidecar_process import ADMIN_S, channel
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2
from allocator.v1.admin_pb2_grpc import AdminServiceStub

_SILENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


class SidecarBusyError(RuntimeError):
    """A master has the sidecar: which, and what to do."""


@contextmanager
def borrowed(target: str, *, force: bool = False) -> Iterator[int]:
    """Use a sidecar, and set its policy back at the end, whatever happens in between.

    Sessions leave nothing behind by themselves: what a master told goes with its session, and the
    policy is the only setting that runs change.

    force: take the sidecar from the master that has it. That one calls again and again, and has it
        back when our last session is over.
    Yields when our master began to lead, in microseconds: a real master is newer, so it wins,
        unless `force` is given.
    Raises SidecarBusyError where a master has the sidecar, and `force` is not given.
    Raises LinkDownError where no sidecar answers; at the end with the policy that could not be set
        back.
    """
    with _admin(target) as stub:
        status = stub.GetStatus(pb.GetStatusRequest(), timeout=ADMIN_S)
        before = stub.GetPolicy(pb.GetPolicyRequest(), timeout=ADMIN_S).policy
    if status.in_session and not force:
        message = (
            f"the sidecar at {target} serves the master {status.master_id!r}, whose offers would"
            " stop meanwhile; name another sidecar, or take this one over with --force"
        )
        raise SidecarBusyError(message)
    try:
        yield time.time_ns() // 1000 if force else 1
    finally:
        _set_back(target, before)


def _set_back(target: str, before: settings_pb2.Policy) -> None:
    try:
        with _admin(target) as stub:
            stub.SetPolicy(pb.SetPolicyRequest(policy=before), timeout=ADMIN_S)
    except LinkDownError as error:
        message = f"{error}; the policy {before.name!r} could not be set back: set it where it runs"
        raise LinkDownError(message) from None


@contextmanager
def _admin(target: str) -> Iterator[AdminServiceStub]:
    """Speak to a sidecar's operators' service."""
    with channel(target) as to_sidecar:
        try:
            yield AdminServiceStub(to_sidecar)
        except grpc.RpcError as error:
            if error.code() not in _SILENT:
                raise
            raise LinkDownError(f"no sidecar answers at {target}") from None
