"""Read-only queries about the sidecar, answered from the observer's books.

The operators' service and the status page share them.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from google.protobuf.message import Message

from allocator import __version__, explain, policies
from allocator.core import (
    Allocator,
    Detached,
    EventError,
    Floats,
    Newcomer,
    OperatorChange,
    SetDrain,
    Settings,
    budget_rows,
    quoted,
)
from allocator.near import suggestion
from allocator.policies import POLICIES, SELECTIONS
from allocator.server.engine.commands import Ask
from allocator.server.following import fair_shares
from allocator.server.following.books import FollowedBooks
from allocator.server.following.demand_watch import DemandWatch
from allocator.server.following.fair_shares import root_mean_square
from allocator.server.following.settings import FollowedSettings
from allocator.server.following.usage import UsageKeeper
from allocator.server.following.usage_store import UsageError
from allocator.server.operators.applied import Applied, Base, applied, in_words
from allocator.server.operators.calendar import Clock, for_core
from allocator.server.operators.rule_checks import Cluster, match_of
from allocator.server.operators.setting_rows import rows, taken_back
from allocator.server.reports import report
from allocator.server.reports.report import write_clients, write_roles
from allocator.server.system import timetable
from allocator.server.system.compilation import PARTS
from allocator.server.system.disk import reason
from allocator.server.views import drains, lists, schedules, status_warnings
from allocator.server.views.rejected import RejectedError, rejecting_unknown
from allocator.server.views.shadow_report import write_shadow_report
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import explain_pb2, settings_pb2
from allocator.wire import WireError
from allocator.wire.codec import proto_types
from allocator.wire.journal.checkpoint import write_snapshot
from allocator.wire.settings.history import read_replaced
from allocator.wire.settings.operator_settings import write_change, write_policy
from allocator.wire.settings.overlay import KeptChange

NAMES_MAX = 500


def _frameworks(allocator: Allocator) -> list[str]:
    infos = [info for info in allocator.state.frameworks.info if info is not None]
    return [each for info in infos for each in (info.name, info.framework_id)]


def _agents(allocator: Allocator) -> list[str]:
    infos = [info for info in allocator.state.agents.info if info is not None]
    return [each for info in infos for each in (info.hostname, info.agent_id)]


def _roles(allocator: Allocator) -> list[str]:
    return [path or "" for path in allocator.state.roles.path]


def _resources(allocator: Allocator) -> Iterable[str]:
    return list(allocator.state.space.names)


_OF: dict[str, Callable[[Allocator], Iterable[str]]] = {
    "framework": _frameworks,
    "role": _roles,
    "agent": _agents,
    "resource": _resources,
}


CYCLES_MAX = 256

EXPLAIN_S = 3.0
"""Maximum time for an explanation, which then has the results so far, because other queries
wait."""

SUBJECTS = ("framework", "role", "agent")

COMING_MAX = 20
"""Maximum number of scheduled changes that `settings show` lists."""

COMING_IN_STATUS = 3


def _asked_for(request: explain_pb2.ExplainRequest) -> tuple[str, str]:
    named = [(kind, getattr(request, kind)) for kind in SUBJECTS if getattr(request, kind)]
    if len(named) != 1:
        text = f"{' and '.join(kind for kind, _ in named) or 'nothing'} is given"
        raise RejectedError(f"{text}; name one framework, role or agent")
    if request.cycles > CYCLES_MAX:
        raise RejectedError(f"cycles = {request.cycles}: at most {CYCLES_MAX} are kept")
    return named[0]


class Views:
    """Operators' views; each method reads the books and computes its answer when it is called.

    Methods that take a request answer the RPC of that request, and raise a `RejectedError` if it
    names something unknown.
    """

    def __init__(
        self,
        books: FollowedBooks,
        operators: FollowedSettings,
        keeper: UsageKeeper,
        demand: DemandWatch | None = None,
    ) -> None:
        self.books = books
        self.operators = operators
        self.keeper = keeper
        self.demand = demand
        self._clock = Clock()

    def status(self, ask: Ask, _: pb.GetStatusRequest) -> pb.GetStatusResponse:
        status = ask(lambda: _status(self.books))
        read = ask(self.read_settings)
        status.settings.extend(shown_settings(read, every=False))
        if self.demand and self.demand.latest:
            status.unmet = self.demand.latest.text
        status.state_directory = self.operators.directory
        status.state_problem = self.operators.problem
        status.coming.extend(self.coming(self.now_ms, COMING_IN_STATUS))
        status.warnings.extend(status_warnings.of_config(self.operators.loaded.config))
        status.warnings.extend(status_warnings.of_settings(status.settings, status.state_problem))
        status.warnings.extend(status_warnings.of_names(read[0]))
        return status

    def settings(self, ask: Ask, *, every: bool) -> list[settings_pb2.Setting]:
        return shown_settings(ask(self.read_settings), every=every)

    def read_settings(self) -> "ReadSettings":
        """Read the settings in force, and the clients they could match; on the books' thread."""
        return self._read(Cluster(self.books.allocator), self.now_ms)

    def _read(self, cluster: Cluster, at_ms: int) -> "ReadSettings":
        """Return a cluster with its settings, which are in force at a time."""
        back = taken_back(self.operators.overlay)
        return cluster, [*self._rows(cluster.settings, at_ms), *((row, None) for row in back)]

    def _rows(
        self, settings: Settings, at_ms: int
    ) -> Iterator[tuple[settings_pb2.Setting, OperatorChange | None]]:
        mine = self.operators
        return rows(mine.loaded, mine.overlay, settings, for_core(mine.scheduled, at_ms))

    def _read_settings_at(self, at_ms: int) -> "ReadSettings":
        """Compute the settings at a later time, if operators change nothing until then."""
        mine, limits = self.operators, self.books.session_limits
        base, held = mine.loaded.config.settings(), for_core(mine.scheduled, at_ms)
        cluster = Cluster(self.books.allocator)
        cluster.settings, _ = mine.overlay.over(base, limits, policies.build, held)
        return self._read(cluster, at_ms)

    def shares(
        self, ask: Ask, request: pb.GetSharesRequest, *, scored: bool = True
    ) -> pb.GetSharesResponse:
        """Report shares; `scored`: include the scores of the policy in force."""

        def read() -> tuple[report.Report, Floats, Detached | None]:
            allocator = self.books.allocator
            client_rows = np.flatnonzero(allocator.state.clients.framework)
            score = np.full(len(client_rows), np.nan)
            if scored:
                score = allocator.scores()[client_rows]
            # Copy at the same moment, so that the clients are the same.
            copied = allocator.copied() if request.fair or request.newcomer_role else None
            return report.read(allocator), score, copied

        state, score, copied = ask(read)
        if (path := request.role) and path not in state.roles.path:
            near = suggestion(path, state.roles.path)
            raise RejectedError(f"role = {quoted(path)}: there is no such role{near}")
        fair, newcomer = None, float("nan")
        if copied is not None and request.fair:
            fair = fair_shares.deal(self.books, state.policy, copied)
        if copied is not None and request.newcomer_role:
            newcomer = self._newcomer(request, state, copied)
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

    def explain(
        self,
        ask: Ask,
        request: explain_pb2.ExplainRequest,
        is_awaited: Callable[[], bool] = lambda: True,
    ) -> explain_pb2.ExplainResponse:
        """Explain why a framework, role or agent gets nothing.

        `is_awaited`: whether the caller still waits; if not, the answer is cut short.
        """
        kind, name = _asked_for(request)
        with self._rejecting():
            picture = ask(lambda: explain.take(self.books.allocator, kind, name))
        until_s = time.monotonic() + EXPLAIN_S
        told = request.cycles or explain.CYCLES

        def goes_on() -> bool:
            return time.monotonic() < until_s and is_awaited()

        corrections = self.demand.corrections if self.demand else explain.Corrections()
        return explain.explain(picture, kind, name, told, goes_on, corrections)

    def planned(self, changes: Sequence[KeptChange], *, prune: bool) -> Applied:
        """Compute the settings after several changes; between two records. Raises EventError."""
        mine, base = self.operators, Base.of(self.operators.loaded.config)
        now, limits, now_ms = self.books.allocator.settings, self.books.session_limits, self.now_ms
        return applied(changes, now, base, mine.overlay, limits, now_ms=now_ms, by="", prune=prune)

    @property
    def now_ms(self) -> int:
        return self._clock.now_ms()

    def snapshot(self, ask: Ask, *, pseudonyms: bool) -> Iterator[bytes]:
        books = self.books
        try:
            start, copied = ask(books.whole)
        except LookupError as error:
            raise RejectedError(str(error)) from None
        return write_snapshot(
            start, copied, books.build_apart, books.substitute, pseudonyms=pseudonyms
        )

    def names(self, ask: Ask, request: pb.ListNamesRequest) -> pb.ListNamesResponse:
        """List the names of a kind with a prefix; the books' thread only copies."""
        find = _OF.get(request.of)
        if find is None:
            choice = f"choose from {', '.join(_OF)}"
            raise RejectedError(f"of = {request.of!r}: there are no such names; {choice}")
        found = {each for each in ask(lambda: find(self.books.allocator)) if each}
        fitting = sorted(each for each in found if each.startswith(request.prefix))
        return pb.ListNamesResponse(names=islice(fitting, NAMES_MAX))

    def agents(self, ask: Ask, request: pb.ListAgentsRequest) -> pb.ListAgentsResponse:
        def read() -> tuple[Allocator, lists.agents.Candidates]:
            allocator = self.books.allocator
            return allocator, lists.agents.candidates(allocator, request)

        with self._rejecting():
            allocator, found = ask(read)
            chosen, left_out = lists.agents.choose(found, request)
        copied = ask(lambda: lists.agents.AgentsCopy(allocator, chosen, found.info))
        response = pb.ListAgentsResponse(agents=lists.agents.write(copied), left_out=left_out)
        drained = [each for each in response.agents if "drained" in each.states]
        if drained:
            drains.say_why(drained, ask(self._read_drains))
        return response

    def frameworks(self, ask: Ask, request: pb.ListFrameworksRequest) -> pb.ListFrameworksResponse:
        with self._rejecting():
            copied = ask(lambda: lists.frameworks.copy(self.books.allocator, request))
            return lists.frameworks.write(copied, request)

    def budget_uses(self) -> list[explain_pb2.BudgetUse]:
        state = self.books.allocator.state
        return [proto_types.write_budget_use(row, state.now_ms) for row in budget_rows(state)]

    def roles(self, ask: Ask, request: pb.ListRolesRequest) -> pb.ListRolesResponse:
        books = ask(lambda: report.read(self.books.allocator))
        with self._rejecting():
            return lists.roles.write(books, request)

    def _rejecting(self) -> AbstractContextManager[None]:
        return rejecting_unknown(lambda: self.books.session is not None)

    def _read_drains(self) -> list[settings_pb2.Setting]:
        found = self._rows(self.books.allocator.settings, self.now_ms)
        return [row for row, rule in found if isinstance(rule, SetDrain) and not rule.from_ms]

    def every_setting(self, ask: Ask, request: pb.ListSettingsRequest) -> pb.ListSettingsResponse:
        now_ms = self.now_ms
        at_ms = request.at_ms or now_ms
        if at_ms < now_ms:
            shown = timetable.shown(at_ms, "UTC")
            mend = "give a later time; `settings history` lists previous changes"
            raise RejectedError(f"at = {shown}: is in the past; {mend}")
        read = partial(self._read_settings_at, at_ms) if request.at_ms else self.read_settings
        settings = shown_settings(ask(read), every=True)
        coming = self.coming(at_ms, COMING_MAX)
        return pb.ListSettingsResponse(settings=settings, coming=coming)

    def coming(self, after_ms: int, most: int) -> Iterator[settings_pb2.ComingChange]:
        return schedules.coming_changes(self.operators.scheduled, after_ms, most)

    def schedules(self, ask: Ask, _: pb.ListSchedulesRequest) -> pb.ListSchedulesResponse:
        ask(lambda: None)  # so that changes before the query are included
        mine = self.operators
        found = schedules.listed(mine.loaded, mine.overlay, mine.scheduled, self.now_ms)
        response = pb.ListSchedulesResponse(schedules=found)
        if response.schedules:
            base, limits = mine.loaded.config.settings(), self.books.session_limits
            standing = mine.overlay.over(base, limits, policies.build)[0].rules()
            response.rules.extend(map(write_change, standing))
        return response

    def history(self, ask: Ask, request: pb.ListHistoryRequest) -> pb.ListHistoryResponse:
        known = ask(lambda: self.operators.history)[::-1]
        shown = known[: request.limit or None]
        changes = (
            pb.MadeChange(
                number=each.number,
                by=each.by,
                at_ms=each.at_ms,
                settings=map(in_words, map(read_replaced, each.replaced)),
                left_out=each.left_out,
            )
            for each in shown
        )
        return pb.ListHistoryResponse(changes=changes, left_out=len(known) - len(shown))

    def shadow(self, ask: Ask, request: pb.GetShadowRequest) -> pb.GetShadowResponse:
        return write_shadow_report(self.books, ask, fair=request.fair)

    def usage(self, ask: Ask, request: pb.GetUsageRequest) -> pb.GetUsageResponse:
        ask(lambda: None)  # the requested moment is in the account
        try:
            return self.keeper.answer(request)
        except ValueError as error:
            raise RejectedError(str(error)) from None
        except (OSError, UsageError) as error:
            return pb.GetUsageResponse(problem=reason(error))

    def policy(self, ask: Ask, _: pb.GetPolicyRequest) -> pb.GetPolicyResponse:
        policy = ask(lambda: write_policy(self.books.allocator.settings.policy))
        return pb.GetPolicyResponse(policy=policy, policies=POLICIES, selections=SELECTIONS)

    def _newcomer(
        self, request: pb.GetSharesRequest, state: report.Report, copied: Detached
    ) -> float:
        try:
            demand = proto_types.read_quantities(request.newcomer_demand)
        except WireError as error:
            raise RejectedError(f"newcomer_demand: {error}") from None
        newcomer = Newcomer(request.newcomer_role, demand)
        try:
            return fair_shares.newcomers_share(self.books, state.policy, copied, newcomer)
        except EventError as error:
            raise RejectedError(f"newcomer_role: {error}") from None


VIEWS: Mapping[str, Callable[[Views, Ask, Any], Message]] = {
    "Explain": Views.explain,
    "GetPolicy": Views.policy,
    "GetShadow": Views.shadow,
    "GetShares": Views.shares,
    "GetStatus": Views.status,
    "GetUsage": Views.usage,
    "ListAgents": Views.agents,
    "ListFrameworks": Views.frameworks,
    "ListHistory": Views.history,
    "ListNames": Views.names,
    "ListRoles": Views.roles,
    "ListSchedules": Views.schedules,
    "ListSettings": Views.every_setting,
}

ReadSettings: TypeAlias = tuple[Cluster, list[tuple[settings_pb2.Setting, OperatorChange | None]]]
"""The cluster, and a row for each setting; for rules, also the rule."""


def shown_settings(read: ReadSettings, *, every: bool) -> list[settings_pb2.Setting]:
    """Add the clients that each rule matches; omit options that no operator set."""
    cluster, found = read
    shown = []
    for row, rule in found:
        if rule is not None:
            row.match.CopyFrom(match_of(cluster, rule, cluster.settings))
        elif not every and row.source != "operator":
            continue
        shown.append(row)
    return shown


def _status(books: FollowedBooks) -> pb.GetStatusResponse:
    state, said = report.read(books.allocator), books.figures
    response = pb.GetStatusResponse(
        sidecar_version=said.sidecar_version or __version__,
        sidecar_id=said.sidecar_id,
        uptime_s=said.uptime_s,
        cycles=books.counts.cycles,
        decisions=books.counts.decisions,
        agents=sum(state.agents.values()),
        active_agents=state.agents["active"] + state.agents["unlisted"],
        frameworks=state.frameworks,
        active_frameworks=state.frameworks_active,
        roles=state.role_count,
        filters=state.filters,
        outstanding_decisions=state.open_decisions,
        policy=write_policy(state.policy),
        cycle_p50_ms=said.cycle_times.p50_ms,
        cycle_p99_ms=said.cycle_times.p99_ms,
        events=sum(books.counts.events.values()),
        sessions=books.counts.sessions_opened,
        loops_state=said.loops.state,
        loop_parts_compiled=said.loops.parts_compiled,
        loop_parts=len(PARTS),
        warnings=status_warnings.of_books(books, state),
        budgets=state.budgets,
    )
    if source := books.source():
        lag = books.lag
        response.followed.source, response.followed.connected = source, lag.connected
        response.followed.lag_s = lag.behind_s
    columns = zip(state.resources, state.total, state.held, state.offered, strict=True)
    for name, total, held, offered in columns:
        if not (total or held):  # only a rule names it, or its agents have left
            continue
        response.resources.add(name=name, total=int(total), held=int(held), offered=int(offered))
    session = books.session
    if session is not None:
        response.in_session = True
        response.master_id = session.master_id
        response.instance_id = session.instance_id
        response.mesos_version = session.mesos_version
        response.sequence = session.sequence
        response.clock_ms = session.clock_ms
    return response
