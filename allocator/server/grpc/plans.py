"""The service that receives the observer's reports on plans in the deciding process."""

from typing import assert_never

import grpc

from allocator.core import Plan, PlanRows
from allocator.server.engine.commands import wait
from allocator.server.engine.planning import Planning, PlanReport, Proposal
from allocator.v1 import records_pb2 as pb
from allocator.v1 import records_pb2_grpc
from allocator.wire.journal.framing import JournalError
from allocator.wire.journal.records import read_plan
from allocator.wire.settings.operator_settings import read_policy


class PlanServicer(records_pb2_grpc.PlanServiceServicer):
    """Receives the observer's reports."""

    def __init__(self, planning: Planning) -> None:
        self._planning = planning

    def add_to(self, server: grpc.Server) -> None:
        records_pb2_grpc.add_PlanServiceServicer_to_server(self, server)

    def Report(  # noqa: N802 - the name of the RPC
        self, request: pb.ReportRequest, context: grpc.ServicerContext
    ) -> pb.ReportResponse:
        planning = self._planning
        match said := request.WhichOneof("said"):
            case None:
                planning.linked()
            case "begun":
                planning.begun()
            case "stands":
                planning.stands(request.ago_s)
            case "failure" | "proposal":
                verdict = wait(context, planning.report(_read(request)))
                return pb.ReportResponse(**verdict._asdict())
            case _:
                assert_never(said)
        return pb.ReportResponse()


def _read(request: pb.ReportRequest) -> PlanReport:
    """Parse a report; a plan that cannot be parsed counts as a failure."""
    said: Proposal | str = request.failure
    if request.HasField("proposal"):
        proposal = request.proposal
        try:
            clients = list(zip(proposal.frameworks, proposal.roles, strict=True))
            plan: Plan = read_plan(proposal.plan).plan
        except (JournalError, ValueError) as error:
            said = f"it cannot be read: {error}"
        else:
            said = Proposal(proposal.position, plan, PlanRows(list(proposal.agents), clients))
    policy = read_policy(request.policy)
    return PlanReport(request.session, policy, request.ago_s, request.took_s, said)
