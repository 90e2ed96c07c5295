"""The operators' service. Whatever it asks of the core is done on the core's thread."""
# ruff: noqa: N802 - methods bear the names of the RPCs.

import time
from collections.abc import Callable, Iterator

import grpc
import numpy as np

from allocator import __version__
from allocator.core import Detached, EventError, Floats, Newcomer, SetPolicy
from allocator.policies import POLICIES, SELECTIONS
from allocator.server import dump, explaining, fair_shares, forecast, report
from allocator.server.admin_rules import RuleRpcs
from allocator.server.answering import refuse as _refuse
from allocator.server.audit import Audit
from allocator.server.changes import Changes
from allocator.server.compilation import COMPILED, PARTS, Progress
from allocator.server.config import Config, Loaded
from allocator.server.config.checks import suggestion
from allocator.server.core_loop import CoreLoop
from allocator.server.fair_shares import root_mean_square
from allocator.server.operators import Operators
from allocator.server.shares import write_clients, write_roles
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import admin_pb2_grpc, explain_pb2, settings_pb2
from allocator.wire import WireError, proto_types
from allocator.wire.operator_settings import read_policy, write_policy


class AdminServicer(RuleRpcs, admin_pb2_grpc.AdminServiceServicer):
    """Answers operators; changes nothing where a request is wrong."""

    def __init__(
        self,
        loop: CoreLoop,
        progress: Callable[[], Progress] = lambda: COMPILED,
        changes: Changes | None = None,
    ) -> None:
        """Speak for this loop.

        Parameters
        ----------
        loop : CoreLoop
        progress : callable
            Says how far its compiled loops are.
        changes : Changes
            Makes the changes that are asked for; by default nothing of them is kept.
        """
        operators = Operators(loop, Loaded(Config(), {}))
        super().__init__(loop, changes or Changes(loop, operators, Audit()))
        self._progress = progress

    def GetStatus(
        self, request: pb.GetStatusRequest, context: grpc.ServicerContext
    ) -> pb.GetStatusResponse:
        """Say what the sidecar is doing."""
        status = self._ask(context, lambda: _status(self._loop, self._progress()))
        status.settings.extend(self._changes.settings(context, every=False))
        status.state_directory = self._changes.operators.directory
        status.state_problem = self._changes.operators.problem
        return status

    def GetShares(
        self, request: pb.GetSharesRequest, context: grpc.ServicerContext
    ) -> pb.GetSharesResponse:
        """Say who holds what."""

        def read() -> tuple[report.Report, Floats, Detached | None]:
            allocator = self._loop.allocator
            self._loop.look()
            rows = np.flatnonzero(allocator.state.clients.framework)
            score = allocator.scores()[rows]
            # All of the same moment, so that its clients are the same.
            copied = allocator.copied() if request.fair or request.newcomer_role else None
            return report.read(allocator), score, copied

        state, score, copied = self._ask(context, read)
        for field in ("role", "newcomer_role"):
            path = getattr(request, field)
            if path and path not in state.roles.path:
                near = suggestion(path, state.roles.path)
                _refuse(context, f"{field} = {path!r}: there is no such role{near}")
        fair, newcomer = None, float("nan")
        if copied is not None and request.fair:
            fair = fair_shares.deal(self._loop, state.policy, copied)
        if copied is not None and request.newcomer_role:
            newcomer = self._newcomer(request, context, state, copied)
        error = float("nan") if fair is None else root_mean_square(state.share - fair.share)
        return pb.GetSharesResponse(
            clients=write_clients(state, score, request.role, fair),
            roles=write_roles(state, request.role, fair),
            jain_index=state.jain_frameworks,
            envy_max=state.envy_max,
            fairness_error_rms=error,
            fair=request.fair,
            newcomer_share=newcomer,
        )

    def _newcomer(
        self,
        request: pb.GetSharesRequest,
        context: grpc.ServicerContext,
        state: report.Report,
        copied: Detached,
    ) -> float:
        """Work out what a framework that there is not would be given."""
        try:
            demand = proto_types.read_quantities(request.newcomer_demand)
            newcomer = Newcomer(state.roles.path.index(request.newcomer_role), demand)
            return fair_shares.newcomers_share(self._loop, state.policy, copied, newcomer)
        except (WireError, EventError) as error:
            _refuse(context, f"newcomer_demand: {error}")

    def Explain(
        self, request: explain_pb2.ExplainRequest, context: grpc.ServicerContext
    ) -> explain_pb2.ExplainResponse:
        """Say why somebody gets nothing."""
        try:
            kind, name = explaining.asked_for(request)
            picture = self._ask(context, lambda: explaining.take(self._loop, kind, name))
        except (ValueError, LookupError) as error:
            _refuse(context, str(error))
        return explaining.answer(picture, kind, name, request.cycles)

    def GetPolicy(
        self, request: pb.GetPolicyRequest, context: grpc.ServicerContext
    ) -> pb.GetPolicyResponse:
        """Say which policy decides, and which others could."""
        policy = self._ask(context, self._policy)
        return pb.GetPolicyResponse(policy=policy, policies=POLICIES, selections=SELECTIONS)

    def SetPolicy(
        self, request: pb.SetPolicyRequest, context: grpc.ServicerContext
    ) -> pb.SetPolicyResponse:
        """Decide by another policy from the next cycle on."""
        change = SetPolicy(read_policy(request.policy))
        told = self._changes.change(context, change, dry_run=request.dry_run)
        response = pb.SetPolicyResponse(policy=self._ask(context, self._policy), change=told)
        if request.dry_run:
            copied = self._ask(context, self._copied)
            found, unaffected = forecast.compare(
                self._loop, copied, read_policy(response.policy), change.spec
            )
            response.forecasts.extend(found)
            response.unaffected = unaffected
        return response

    def ListSettings(
        self, request: pb.ListSettingsRequest, context: grpc.ServicerContext
    ) -> pb.ListSettingsResponse:
        """List all settings, and where each comes from."""
        return pb.ListSettingsResponse(settings=self._changes.settings(context, every=True))

    def ResetSettings(
        self, request: pb.ResetSettingsRequest, context: grpc.ServicerContext
    ) -> pb.ResetSettingsResponse:
        """Let the configuration count again."""
        told = self._changes.reset(context, request.what)
        listed = self._changes.settings(context, every=False)
        return pb.ResetSettingsResponse(settings=listed, change=told)

    def Dump(
        self, request: pb.DumpRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.DumpResponse]:
        """Give the whole state."""
        state = self._ask(context, lambda: dump.read(self._loop))
        for piece in dump.pieces(state):
            yield pb.DumpResponse(json=piece)

    def Snapshot(
        self, request: pb.SnapshotRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.SnapshotResponse]:
        """Give the whole state as a journal of one moment."""
        write = self._ask(context, lambda: self._loop.new_snapshot(anonymise=request.anonymise))
        for piece in dump.in_pieces(write()):
            yield pb.SnapshotResponse(data=piece)

    # On the core's thread.

    def _policy(self) -> settings_pb2.Policy:
        return write_policy(self._loop.allocator.settings.policy)

    def _copied(self) -> Detached:
        return self._loop.allocator.copied()


def _status(loop: CoreLoop, progress: Progress) -> pb.GetStatusResponse:
    state, counts, times = report.read(loop.allocator), loop.counts, loop.cycle_times
    response = pb.GetStatusResponse(
        sidecar_version=__version__,
        sidecar_id=loop.sidecar_id,
        uptime_s=time.monotonic() - loop.started_s,
        cycles=counts.cycles,
        decisions=counts.decisions,
        agents=state.agents.total,
        active_agents=state.agents.total - state.agents.inactive,
        frameworks=state.frameworks,
        active_frameworks=state.frameworks_active,
        roles=int(state.roles.bound.sum()) - 1,
        filters=state.filters,
        outstanding_decisions=state.outstanding,
        policy=write_policy(state.policy),
        cycle_p50_ms=1000 * times.percentile(0.5),
        cycle_p99_ms=1000 * times.percentile(0.99),
        events=sum(counts.events.values()),
        sessions=counts.sessions_opened,
        loops_state=progress.state,
        loop_parts_compiled=progress.done,
        loop_parts=len(PARTS),
    )
    for name, total, held in zip(state.resources, state.total, state.held, strict=True):
        response.resources.add(name=name, total=int(total), held=int(held))
    session = loop.session
    if session is not None:
        response.in_session = True
        response.master_id = session.master_id
        response.instance_id = session.instance_id
        response.mesos_version = session.mesos_version
        response.sequence = session.sequence
        response.clock_ms = session.clock_ms
    return response
