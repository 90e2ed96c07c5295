"""Requests cycles, and applies their decisions.

A cycle over all agents is run every allocation interval, and another after each event that makes
Mesos's own allocator run one: a new agent or framework, a framework that is reactivated or revives,
an agent whose resources change. Events at the same moment share one cycle.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from allocator.core import Decisions, Hold, Reason
from laboratory.event_heap import EventHeap, Priority
from laboratory.frameworks.base import Framework, Leaver, Offer, Task
from laboratory.master.gates import Decision, GateVerdict, QuotaBook, judge
from laboratory.master.ledger import Ledger
from laboratory.master.session import Outbox, Record, Session


@dataclass(frozen=True, slots=True)
class Timing:
    """Delays in simulated time.

    decision_ms: from a cycle to the arrival of its decisions; events in between may outdate them.
    answer_ms: from an offer to the framework's answer.
    """

    decision_ms: int = 0
    answer_ms: int = 10


@dataclass(slots=True, eq=False)
class RegisteredFramework:
    """A subscribed framework.

    waiting: whether it is still waiting for its first offer.
    roles: all roles that it ever subscribed to, because it may still hold resources in each.
    offers, tasks: its current ones, oldest first.
    """

    framework: Framework
    handle: int
    framework_id: str
    subscribed_ms: int
    roles: tuple[str, ...]
    waiting: bool = True
    offers: dict[Offer, None] = field(default_factory=dict)
    tasks: dict[Task, None] = field(default_factory=dict)

    def tasks_on(self, agent: int) -> list[Task]:
        return [task for task in self.tasks if task.agent == agent]

    def void_offers(self, offers: Iterable[Offer]) -> None:
        for offer in offers:
            offer.live = False
            del self.offers[offer]

    def void_tasks(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            task.live = False
            del self.tasks[task]


@dataclass
class Cycles:
    """Requests cycles, judges decisions, makes offers.

    members: the master's frameworks, by handle.
    """

    event_heap: EventHeap
    session: Session
    ledger: Ledger
    members: Mapping[int, RegisteredFramework]
    outbox: Outbox
    record: Record
    timing: Timing
    interval_ms: int

    def __post_init__(self) -> None:
        # Agents of the cycle to run at the end of this moment; None: all.
        self._triggered: set[int] | None = set()
        # Unanswered inverse offers, as pairs of framework and agent.
        self.inverse: set[tuple[int, int]] = set()
        self.look: Callable[[Sequence[Offer]], None] = lambda _offers: None
        # Hostile frameworks. The sidecar corrects their input and the master does not, so the
        # master may reject decisions for them.
        self.excused: set[int] = set()

    def begin(self) -> None:
        """Run the first cycle now, and then one every interval."""
        self._triggered = set()
        self.event_heap.after(0, self._tick, Priority.CYCLE)

    def trigger(self, agent: int | None = None) -> None:
        """Run a cycle after the events of this moment: for one agent, or for all."""
        # The first trigger of a moment schedules the cycle; later ones extend it.
        if self._triggered == set():
            self.event_heap.after(0, self._run_triggered, Priority.CYCLE)
        if agent is None or self._triggered is None:
            self._triggered = None
        else:
            self._triggered.add(agent)

    def _tick(self) -> None:
        self.event_heap.after(self.interval_ms, self._tick, Priority.CYCLE)
        # A cycle over all agents includes the triggered ones.
        self._triggered = set()
        self._run(())

    def _run_triggered(self) -> None:
        triggered, self._triggered = self._triggered, set()
        if triggered is None:
            self._run(())
        elif there := triggered & self.ledger.agents.keys():
            self._run(tuple(sorted(there)))

    def _run(self, agents: tuple[int, ...]) -> None:
        self.ledger.expire(self.event_heap.now_ms)
        decisions = self.session.exchange(self.event_heap.now_ms, agents)
        if not len(decisions) and not len(decisions.reclaims.framework):
            return
        # If decisions take time, they are judged against the books as of their arrival.
        take = partial(self._take, decisions, self.session.sequence, self.session.number)
        if self.timing.decision_ms:
            self.event_heap.after(self.timing.decision_ms, take)
        else:
            take()

    def _take(self, decisions: Decisions, sequence: int, session: int) -> None:
        """Judge decisions, report their outcomes, and make the offers."""
        # Drop the decisions of a session that has ended.
        if session != self.session.number:
            return
        offers: dict[int, list[Offer]] = defaultdict(list)
        # If nothing happened since the request, every decision should be valid.
        steady = sequence == self.session.sequence and not len(self.outbox)
        for number, (decision, verdict) in enumerate(self._judged(decisions, sequence)):
            framework, role, agent = decision.framework, decision.role, decision.agent
            self.record.outcomes[verdict.reason] += 1
            if steady and not self._is_excused(decision):
                self.record.note_steady(verdict.reason, partial(self._in_words, decision, verdict))
            self.outbox.outcome(decisions.first_decision + number, verdict)
            if verdict.amount:
                offers[framework].append(Offer(framework, role, agent, verdict.amount))
        self.look([offer for made in offers.values() for offer in made])
        for handle, made in offers.items():
            self._offer(self.members[handle], made)
        for row in zip(*map(np.ndarray.tolist, decisions.reclaims), strict=True):
            self._reclaim(*row)

    def _in_words(self, decision: Decision, verdict: GateVerdict) -> str:
        filters = self.ledger.filters.get(decision.framework, {})
        its = filters.get((decision.role, decision.agent), [])
        return f"at {self.event_heap.now_ms} ms, {verdict.reason.name}: {decision}; filters: {its}"

    def _judged(
        self, decisions: Decisions, sequence: int
    ) -> Iterator[tuple[Decision, GateVerdict]]:
        """Judge decisions in order, and book each offer before the next decision is judged."""
        quotas, rows = QuotaBook(self.ledger), list(_one_by_one(decisions))
        ends = {first: first + count for first, count in decisions.gangs}
        at = 0
        while at < len(rows):
            end = ends.get(at, at + 1)
            verdicts = [self._judge(row, sequence, quotas) for row in rows[at:end]]
            if at in ends and any(each.reason != Reason.OFFERED for each in verdicts):
                pairs = zip(rows[at:end], verdicts, strict=True)
                verdicts = [self._take_back(row, verdict, quotas) for row, verdict in pairs]
            yield from zip(rows[at:end], verdicts, strict=True)
            at = end

    def _judge(self, decision: Decision, sequence: int, quotas: QuotaBook) -> GateVerdict:
        """Judge a decision, and book the resulting offer."""
        verdict = judge(self.ledger, decision, sequence, self.event_heap.now_ms, quotas)
        if verdict.amount:
            place = (decision.role, decision.agent)
            self.ledger.offer(decision.framework, place, verdict.amount)
            quotas.charge(self.ledger.path[decision.role], verdict.amount)
        return verdict

    def _take_back(
        self, decision: Decision, verdict: GateVerdict, quotas: QuotaBook
    ) -> GateVerdict:
        """Undo the offer of one decision of a gang, because the gang cannot be offered whole."""
        if not verdict.amount:
            return verdict
        place = (decision.role, decision.agent)
        self.ledger.release(decision.framework, place, verdict.amount, used=False)
        quotas.charge(self.ledger.path[decision.role], tuple(-each for each in verdict.amount))
        return GateVerdict(Reason.INCOMPLETE_GANG)

    def _is_excused(self, decision: Decision) -> bool:
        """Whether the sidecar lacks the information to avoid this rejection.

        It does not know which roles may use which part of a rest kind (several kinds merged into
        one), nor which quota each part counts against. It also corrects input of hostile
        frameworks, which the master takes as it is.
        """
        rest = any(kind.rest for kind in self.ledger.kinds.kinds)
        return rest or decision.framework in self.excused

    def _reclaim(self, framework: int, agent: int) -> None:
        """Make an inverse offer if the agent is scheduled for maintenance."""
        agents, member = self.ledger.agents, self.members.get(framework)
        if member is None or agent not in agents or agents[agent].unavailable_ms is None:
            return
        holds = any(place[1] == agent for place in self.ledger.holdings[framework])
        if not holds or (framework, agent) in self.inverse:
            return
        if isinstance(member.framework, Leaver):
            self.inverse.add((framework, agent))
            self.record.inverse_offers += 1
            leave = member.framework.asked_to_leave
            ask = partial(self._ask_to_leave, member, leave, agent)
            self.event_heap.after(self.timing.answer_ms, ask, Priority.ANSWER)

    def _ask_to_leave(
        self, member: RegisteredFramework, leave: Callable[[int], None], agent: int
    ) -> None:
        """Deliver an inverse offer if agent and framework are still there."""
        if agent in self.ledger.agents and self.members.get(member.handle) is member:
            leave(agent)
        else:
            self.inverse.discard((member.handle, agent))

    def fall_back(self, agent: int, clients: Sequence[tuple[int, int]]) -> None:
        """Offer an agent to the first eligible client, without asking the sidecar.

        The module does so while the sidecar is silent, and reports the holdings to it later.

        clients: frameworks and their roles, in the order to try them.
        """
        free = self.ledger.kinds.by_kind(self.ledger.available(agent))
        for framework, role in clients:
            wish = Decision(framework, role, agent, tuple(range(len(free))), free)
            following = self.session.sequence + 1
            verdict = judge(self.ledger, wish, following, self.event_heap.now_ms)
            if any(verdict.amount):
                self.ledger.offer(framework, (role, agent), verdict.amount)
                row = (framework, role, agent, verdict.amount)
                self.outbox.add(Hold(self.outbox.holdings([row])))
                self.record.fallbacks += 1
                self._offer(self.members[framework], [Offer(*row)])
                return

    def _offer(self, member: RegisteredFramework, offers: list[Offer]) -> None:
        member.offers.update(dict.fromkeys(offers))
        self.record.offers += len(offers)
        if member.waiting:
            member.waiting = False
            self.record.waits_ms.append(self.event_heap.now_ms - member.subscribed_ms)
        deliver = partial(_deliver, member, offers)
        self.event_heap.after(self.timing.answer_ms, deliver, Priority.ANSWER)


def _one_by_one(decisions: Decisions) -> Iterator[Decision]:
    """Yield the decisions row by row in the order of their numbers."""
    for group in decisions.groups:
        kinds = tuple(group.kind.tolist())
        columns = (group.framework, group.role, group.agent, group.amount)
        for framework, role, agent, amounts in zip(*map(np.ndarray.tolist, columns), strict=True):
            yield Decision(framework, role, agent, kinds, tuple(amounts))


def _deliver(member: RegisteredFramework, offers: list[Offer]) -> None:
    """Deliver the offers that were not rescinded meanwhile."""
    live = [offer for offer in offers if offer.live]
    if live:
        member.framework.offered(live)
