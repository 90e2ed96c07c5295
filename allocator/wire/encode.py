"""From the core's decisions to the answer."""

from allocator.core import Decisions, Holdings
from allocator.v1 import session_pb2 as pb
from allocator.wire import proto_types


def write_decisions(sequence: int, decisions: Decisions) -> pb.DecisionBatch:
    """Write the answer to a batch."""
    answer = pb.DecisionBatch(
        sequence=sequence, cycle=decisions.cycle, first_decision=decisions.first_decision
    )
    if len(decisions):
        grants = Holdings(
            decisions.framework,
            decisions.role,
            decisions.agent,
            decisions.kind,
            decisions.amount,
        )
        answer.grants.append(proto_types.write_holdings(grants))
    return answer
