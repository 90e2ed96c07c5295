"""Current problems of the sidecar or its master, for its status.

Each warning has a short name, a sentence, and the fix. The most severe comes first. Alerts watch
the same problems over time; warnings need no monitoring.
"""

import shlex
import time
from collections.abc import Iterable, Iterator, Sequence

from allocator.core import harmless, quoted
from allocator.near import meant_resource
from allocator.plain import counted, how_many
from allocator.server.config import OPEN_SESSIONS, Config
from allocator.server.following.books import FollowedBooks
from allocator.server.operators.rule_checks import Cluster, rules_with_unknown_names
from allocator.server.reports.report import Aside, Gangs, Overdue, Report, Unfit
from allocator.server.system.lasting import failures
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2
from allocator.v1.records_pb2 import Loops

NAME_MAX = 80

SILENCE_S = 60.0
"""Time without a message of the master after which a warning appears."""


def of_config(config: Config) -> Iterator[pb.StatusWarning]:
    """Warn of gaps that the configuration leaves open."""
    if target := config.open_to_sessions():
        text, mend = OPEN_SESSIONS.format(target).split("; ")
        yield pb.StatusWarning(what="open to any master", text=text, mend=mend)


def of_books(books: FollowedBooks, state: Report) -> Iterator[pb.StatusWarning]:
    """Warn of the session, policy, loops, journal and books; on the thread that owns the books."""
    yield from _following(books)
    yield from _loops(books.figures.loops)
    yield from _session(books)
    known, last = books.allocator.state, books.allocator.last_cycle
    if known.paused:
        for_s = (known.now_ms - known.paused_ms) / 1000
        yield pb.StatusWarning(
            what="recovery",
            text=f"the master makes no offers yet, as after a failover: for {for_s:.0f} s so far",
            mend="wait: it ends when enough agents are back",
        )
    if last.policy_error:
        name = state.policy.name
        yield pb.StatusWarning(
            what="policy failed",
            text=f"the policy {name} failed, so DRF decided the last cycle: {last.policy_error}",
            mend="fix the policy, or set another: mesos-allocator policy set",
        )
    for name, why in (*failures(), *books.figures.failures.items()):
        yield pb.StatusWarning(
            what="thread failed",
            text=f"the thread {name!r} failed, and pauses before each retry: {why}",
            mend="it restarts automatically; please report the error in the log",
        )
    if books.figures.HasField("journal") and not books.figures.journal.on:
        why_off = books.figures.journal.failure or "the reason is in the log"
        yield pb.StatusWarning(
            what="journal off",
            text=f"decisions continue, but are not recorded: {why_off}",
            mend="writing is retried within a minute",
        )
    yield from _overdue(state.overdue, books.allocator.settings.patience_cycles)
    yield from _gangs(state.gangs)
    yield from _set_aside(state.aside)
    yield from _unfit(state.unfit, state.resources)
    for what, largest in known.beyond.items():
        if largest:
            yield pb.StatusWarning(
                what="limit reached",
                text=f"there are more {what} than limits.{what} allows, {largest} or more: the"
                " latest ones are not served",
                mend=f"raise limits.{what}, or find what registers them",
            )
    yield from _asked(state)
    if known.filters.forgotten:
        yield pb.StatusWarning(
            what="refusals forgotten",
            text=f"limits.filters was exceeded: {known.filters.forgotten} refusals were forgotten",
            mend="raise limits.filters",
        )


def _asked(state: Report) -> Iterator[pb.StatusWarning]:
    if state.asked:
        more = f"; and {len(state.asked) - 1} more" if len(state.asked) > 1 else ""
        yield pb.StatusWarning(
            what="asked to leave",
            text=f"{harmless(str(state.asked[0]), 3 * NAME_MAX)}{more}",
            mend="frameworks decide whether to leave; see mesos-allocator explain framework NAME",
        )


def _gangs(gangs: Gangs) -> Iterator[pb.StatusWarning]:
    if gangs.too_large:
        yield pb.StatusWarning(
            what="gang too large",
            text=f"{counted(gangs.too_large, 'gang')} would not fit even on an empty cluster:"
            " agents, constraints or limits allow too little",
            mend="make the gang smaller (mesos-allocator gang set), raise its limit, or add agents;"
            " mesos-allocator explain role NAME says which",
        )


def _overdue(overdue: Overdue, patience: int) -> Iterator[pb.StatusWarning]:
    if not overdue.nothing:
        return
    yield pb.StatusWarning(
        what="starvation",
        text=f"{how_many(overdue.frameworks, overdue.nothing)} got no offer in {patience} cycles or"
        " more, although some agents suit, nothing is refused and no limit is reached",
        mend="mesos-allocator explain framework NAME says why",
    )


def _set_aside(aside: Aside) -> Iterator[pb.StatusWarning]:
    if not aside.example:
        return
    of = "framework" if aside.frameworks else "agent"
    who = [how_many(aside.frameworks, aside.frameworks)] * bool(aside.frameworks)
    who += [f"{aside.agents:,} agent" + "s" * (aside.agents != 1)] * bool(aside.agents)
    name = harmless(aside.example, NAME_MAX)
    yield pb.StatusWarning(
        what="words set aside",
        text=f"invalid input of {' and '.join(who)} is ignored, such as that of {name}",
        mend=f"mesos-allocator explain {of} {shlex.quote(name)} says what",
    )


def _unfit(unfit: Unfit, resources: Sequence[str]) -> Iterator[pb.StatusWarning]:
    if not unfit.frameworks:
        return
    name = harmless(unfit.example, NAME_MAX)
    asked = ", ".join(f"{quoted(each)}{meant_resource(each, resources)}" for each in unfit.names)
    yield pb.StatusWarning(
        what="fits nowhere",
        text=f"{how_many(unfit.frameworks, unfit.frameworks)} asked for a resource that no agent"
        f" has, such as {name} for {asked}; no task that needs it fits, and no minimum is reached",
        mend=f"mesos-allocator explain framework {shlex.quote(name)} says what",
    )


def of_settings(
    settings: Iterable[settings_pb2.Setting], state_problem: str
) -> Iterator[pb.StatusWarning]:
    """Warn of probable mistakes in rules, and of settings that cannot be saved.

    `state_problem`: why operators' settings cannot be saved; empty if they can.
    """
    if state_problem:
        yield pb.StatusWarning(
            what="not kept",
            text=f"operators' settings are lost when the process ends: {state_problem}",
            mend="see state.directory in the configuration",
        )
    for rule in settings:
        found = rule.match
        if rule.key == "constraint" and found.frameworks_without_agents:
            yield pb.StatusWarning(
                what="no agent left",
                text=f"the constraint {rule.value!r} ({rule.scope}) and others leave"
                f" {found.frameworks_without_agents} frameworks without an agent",
                mend="mesos-allocator constraint set or remove",
            )


NAMED_MAX = 3
"""Maximum number of rules named in one warning; the others are counted."""


def of_names(cluster: Cluster) -> Iterator[pb.StatusWarning]:
    """Warn of rules and quotas that name a resource or attribute that no agent has."""
    found = list(rules_with_unknown_names(cluster))
    if not found:
        return
    more = f"; and {len(found) - NAMED_MAX:,} more" if len(found) > NAMED_MAX else ""
    yield pb.StatusWarning(
        what="unknown name",
        text=f"{'; '.join(found[:NAMED_MAX])}{more}",
        mend="correct the rule, or add agents that have it",
    )


def _session(books: FollowedBooks) -> Iterator[pb.StatusWarning]:
    if books.session is None:
        yield pb.StatusWarning(
            what="no session",
            text="no master has a session; its module decides meanwhile, by DRF",
            mend="check the master's log, and whether its module has this sidecar's address",
        )
        return
    figures = books.session.figures
    if figures is not None and figures.shadow:
        yield pb.StatusWarning(
            what="in shadow",
            text="Mesos's own allocator decides; of the decisions here, it made"
            f" {figures.shadow_same} as well; for {figures.shadow_other} it offered the agent to"
            f" others, for {figures.shadow_none} to none",
            mend="to put decisions into effect, remove the module's parameter shadow",
        )
    silent_s = books.figures.silent_s + time.monotonic() - books.lag.heard_s
    if books.figures.last_batch_s and silent_s > SILENCE_S:
        yield pb.StatusWarning(
            what="silent master",
            text=f"the master has a session, but has sent nothing for {silent_s:.0f} s",
            mend="see the master's log",
        )


def _loops(progress: Loops) -> Iterator[pb.StatusWarning]:
    if progress.state == "failed":
        yield pb.StatusWarning(
            what="not compiled",
            text=f"no session begins: {progress.problem}",
            mend="mesos-allocator warm shows what fails",
        )
    elif progress.problem:
        yield pb.StatusWarning(
            what="starting",
            text=f"no session begins yet: {progress.problem}",
            mend="wait; mesos-allocator warm compiles the loops ahead of time",
        )


def _following(books: FollowedBooks) -> Iterator[pb.StatusWarning]:
    why = books.problem()
    if books.source() and why:
        yield pb.StatusWarning(
            what="not current" if books.lag.connected else "not connected",
            text=f"{why}; all of this is out of date",
            mend="check this observer's log, and whether the source runs; it reconnects by itself",
        )
    elif not books.is_current:
        yield pb.StatusWarning(
            what="not current",
            text=f"{why}; all of this is out of date",
            mend="check its log; the observer resumes by itself",
        )
    if books.lag.differences:
        yield pb.StatusWarning(
            what="not repeated",
            text=f"{books.lag.differences:,} decisions differed when they were recomputed",
            mend="please report it, with the log",
        )
