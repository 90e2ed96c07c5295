"""The service that receives the observer's reports on plans in the deciding process."""

import grpc

from allocator.server.engine.commands import wait
from allocator.server.engine.planning import Planning
from allocator.v1 import records_pb2 as pb
from allocator.v1 import records_pb2_grpc


class PlanServicer(records_pb2_grpc.PlanServiceServicer):
    """Receives the observer's reports."""

    def __init__(self, planning: Planning) -> None:
        self._planning = planning

    def add_to(self, server: grpc.Server) -> None:
        records_pb2_grpc.add_PlanServiceServicer_to_server(self, server)

    def Report(  # noqa: N802 - the name of the RPC
        self, request: pb.ReportRequest, context: grpc.ServicerContext
    ) -> pb.ReportResponse:
        verdict = self._planning.take(request)
        return pb.ReportResponse() if verdict is None else wait(context, verdict)
