"""What operators were told is kept is kept, whatever happened to the process."""

import grpc

from allocator.lab.torture.rig import ANSWER_S, Rig
from allocator.v1 import admin_pb2 as pb

NAME = "what operators set is kept"


def kept(rig: Rig) -> None:
    """Ask what is set, and compare it with what was answered when it was set."""
    expected = dict(rig.kept)
    try:
        with rig.operator() as sidecar:
            answer = sidecar.ListLimits(pb.ListLimitsRequest(), timeout=ANSWER_S)
    except grpc.RpcError:
        return  # stopped, frozen or full
    found = {
        limit.role: dict(zip(limit.limit.name, limit.limit.amount, strict=True)).get("cpus")
        for limit in answer.limits
    }
    wrong = [
        f"the limit of {role}: {found.get(role)} now, {cpus} when it was set"
        for role, cpus in expected.items()
        if found.get(role) != cpus
    ]
    rig.findings.check(NAME, wrong)
