"""The emulated master: it speaks the module's protocol to something that decides.

What Mesos's master does is done here in the same order, event by event: the bracket of an accept
(pause, release of the rest with its filter, transition, resume), declines, ends of tasks,
frameworks that come, go, drop out and fail over, agents that come and go. Time is simulated: a
cycle for all agents each allocation interval, one more where Mesos has an event trigger it, and the
next action as soon as the decisions are there.
"""

from collections.abc import Iterable, Mapping, Sequence

from allocator.core import (
    ActivateAgent,
    ActivateFramework,
    AddFramework,
    Options,
    RemoveAgent,
    RemoveFramework,
    Revive,
    Suppress,
    UpdateAgent,
    UpdateFramework,
)
from allocator.sim.agenda import Agenda
from allocator.sim.books import AgentRow, Amount, FrameworkRow, Refusal, add
from allocator.sim.cluster import AgentSpec
from allocator.sim.crew import Member
from allocator.sim.cycles import Cycles, Timing
from allocator.sim.framework import Framework, Offer, Task
from allocator.sim.handles import Handles
from allocator.sim.ledger import Ledger
from allocator.sim.link import Link, Opening
from allocator.sim.outbox import Outbox
from allocator.sim.record import Record
from allocator.sim.roles import Roles
from allocator.sim.session import Session
from allocator.sim.snapshot import agent_event, exclusions, framework_info, snapshot


class EmulatedMaster:
    """A Mesos master with its agents and frameworks.

    Parameters
    ----------
    link : Link
        To what decides.
    kinds : sequence of str
        Names of the resources of its agents.
    options : Options
    weights : mapping of str to float
        Of roles, by path.
    timing : Timing
    """

    def __init__(
        self,
        link: Link,
        kinds: Sequence[str] = ("cpus", "mem"),
        options: Options | None = None,
        weights: Mapping[str, float] | None = None,
        timing: Timing | None = None,
    ) -> None:
        self.options = options or Options()
        self.weights = dict(weights or {})
        self.agenda = Agenda()
        self.record = Record()
        self.ledger = Ledger(kinds, self.options.minimum, filter_gpus=self.options.filter_gpus)
        self.members: dict[int, Member] = {}
        self.outbox = Outbox(len(self.ledger.kinds))
        self.roles = Roles(self.outbox)
        self.session = Session(link, self.outbox, self.record, self._opening)
        self._cycles = Cycles(
            agenda=self.agenda,
            session=self.session,
            ledger=self.ledger,
            members=self.members,
            outbox=self.outbox,
            record=self.record,
            timing=timing or Timing(),
            interval_ms=self.options.allocation_interval_ms,
        )
        self._handle: dict[Framework, int] = {}
        self._agent_handles = Handles()
        self._framework_handles = Handles()
        self._framework_count = 0
        self._agent_count = 0

    # The session and time.

    def open(self) -> None:
        """Begin the session, and the cycles."""
        self.session.open()
        self._cycles.begin()

    def close(self) -> None:
        """End the session."""
        self.session.close()

    def step(self, until_ms: int | None = None) -> bool:
        """Do the next thing; False where there is none up to and including `until_ms`.

        What has happened is told before time goes on, so that both sides count from one moment.
        """
        next_ms = self.agenda.next_ms
        if next_ms is None or (until_ms is not None and next_ms > until_ms):
            return False
        if next_ms > self.agenda.now_ms:
            self.tell()
        return self.agenda.step()

    def tell(self) -> None:
        """Tell the sidecar what it was not told yet."""
        if len(self.outbox):
            self.session.tell(self.agenda.now_ms)

    def settle(self) -> None:
        """Tell the sidecar everything, and wait until it is applied."""
        self.session.settle(self.agenda.now_ms)

    def _opening(self, sequence: int) -> Opening:
        identities = {handle: m.framework.identity for handle, m in self.members.items()}
        now_ms = self.agenda.now_ms
        state = snapshot(self.ledger, self.roles, identities, self.weights, now_ms)
        return Opening(self.options, state, sequence, now_ms, self.ledger.paused)

    # Agents.

    def add_agent(self, spec: AgentSpec) -> int:
        """An agent registers."""
        agent = self._agent_handles.take()
        self._agent_count += 1
        row = AgentRow(
            agent_id=f"agent-{self._agent_count:06d}",
            hostname=spec.hostname,
            attributes=spec.attributes,
            bound_sequence=self.session.sequence + 1,
            capacity=list(self.ledger.amount(spec.capacity)),
            held=list(self.ledger.zero),
        )
        self.ledger.add_agent(agent, row)
        self.outbox.add(agent_event(agent, row))
        self._note_use()
        self._cycles.trigger(agent)
        return agent

    def remove_agent(self, agent: int) -> None:
        """An agent is lost: it goes first, then what was on it comes back in vain."""
        self.outbox.add(RemoveAgent(agent))
        self.ledger.remove_agent(agent)
        self._note_use()
        lost: list[tuple[Member, list[Task]]] = []
        for member in self.members.values():
            tasks = [task for task in member.tasks if task.agent == agent]
            offers = [offer for offer in member.offers if offer.agent == agent]
            for held, used in ((tasks, True), (offers, False)):
                for each in held:
                    row = (each.framework, each.role, each.agent, each.amount)
                    self.outbox.release(row, used=used)
            member.void_offers(offers)
            member.void_tasks(tasks)
            if tasks:
                lost.append((member, tasks))
        self._agent_handles.give_back(agent)
        for member, tasks in lost:
            member.framework.lost(tasks)

    def activate_agent(self, agent: int, *, active: bool) -> None:
        """Offer an agent again, or no more; then its offers are taken back."""
        self.ledger.agents[agent].active = active
        self.outbox.add(ActivateAgent(agent, active))
        if not active:
            self._rescind_agent(agent)

    def resize_agent(self, agent: int, capacity: Mapping[str, int]) -> None:
        """An agent has more or less than before; its offers are taken back."""
        amount = self.ledger.amount(capacity)
        self.ledger.resize_agent(agent, amount)
        self.outbox.add(UpdateAgent(agent, capacity=dict(enumerate(amount))))
        self._note_use()
        self._rescind_agent(agent)
        self._cycles.trigger(agent)

    def _rescind_agent(self, agent: int) -> None:
        for member in self.members.values():
            self._give_back(member, [offer for offer in member.offers if offer.agent == agent])

    # Frameworks that come and go.

    def subscribe(self, framework: Framework) -> int:
        """A framework registers."""
        identity = framework.identity
        handle = self._framework_handles.take()
        self._framework_count += 1
        roles = self.roles.name(identity.roles)
        framework_id = f"framework-{self._framework_count:06d}"
        row = FrameworkRow(
            framework_id=framework_id,
            bound_sequence=self.session.sequence + 1,
            roles=set(roles),
            capabilities=identity.capabilities,
            allowed=identity.allowed,
        )
        self.ledger.add_framework(handle, row)
        member = Member(framework, handle, framework_id, self.agenda.now_ms, identity.roles)
        self.members[handle] = member
        self._handle[framework] = handle
        self.outbox.add(AddFramework(handle, framework_info(framework_id, identity), roles))
        self._cycles.trigger()
        framework.subscribed(self)
        return handle

    def disconnect(self, framework: Framework) -> None:
        """The connection breaks: no offers, those that are out come back, tasks go on."""
        member = self.member(framework)
        self.ledger.deactivate_framework(member.handle)
        self.outbox.add(ActivateFramework(member.handle, active=False))
        self._give_back(member, list(member.offers))

    def reconnect(self, framework: Framework) -> None:
        """The framework subscribes again, perhaps in other roles."""
        member = self.member(framework)
        row = self.ledger.frameworks[member.handle]
        identity = framework.identity
        self._name_more_roles(member, identity.roles)
        roles = tuple(self.roles.handle[path] for path in identity.roles)
        suppressed = tuple(sorted(row.suppressed & set(roles)))
        left = {place for place in self.ledger.excluded[member.handle] if place[0] not in roles}
        self.exclude([(member.handle, *place) for place in sorted(left)], excluded=False)
        self.ledger.change_roles(member.handle, roles, suppressed)
        info = framework_info(member.framework_id, identity)
        self.outbox.add(UpdateFramework(member.handle, info, roles, suppressed))
        offers = [offer for offer in member.offers if offer.role not in row.roles]
        self._give_back(member, offers)
        if not row.active:
            row.active = True
            self.outbox.add(ActivateFramework(member.handle, active=True))
            self._cycles.trigger()

    def unsubscribe(self, framework: Framework) -> None:
        """The framework leaves; all that it held comes back."""
        member = self.member(framework)
        if self.ledger.frameworks[member.handle].active:
            self.disconnect(framework)
        for task in list(member.tasks):
            self.end(task)
        self.outbox.pause()
        self.outbox.add(RemoveFramework(member.handle))
        self.outbox.resume()
        self.ledger.remove_framework(member.handle)
        del self.members[member.handle], self._handle[framework]
        self.roles.forget(member.roles)
        self._framework_handles.give_back(member.handle)

    def member(self, framework: Framework) -> Member:
        """Row of a subscribed framework."""
        return self.members[self._handle[framework]]

    def _name_more_roles(self, member: Member, paths: tuple[str, ...]) -> None:
        more = tuple(path for path in paths if path not in member.roles)
        self.roles.name(more)
        member.roles += more

    # Calls of frameworks.

    def amount(self, quantities: Mapping[str, int]) -> Amount:
        """Thousandths by name as a row of all kinds."""
        return self.ledger.amount(quantities)

    def accept(self, offer: Offer, amounts: Sequence[Amount], refuse_ms: int) -> list[Task]:
        """Launch one task for each amount; the rest of the offer is declined."""
        member = self.members[offer.framework]
        member.void_offers([offer])
        launched = list(self.ledger.zero)
        for amount in amounts:
            add(launched, amount)
        rest = tuple(o - x for o, x in zip(offer.amount, launched, strict=True))
        self.outbox.pause()
        if any(rest):
            self._release_offer(offer, rest, refuse_ms)
        self.ledger.use(offer.framework, (offer.role, offer.agent), tuple(launched))
        self.outbox.transition((offer.framework, offer.role, offer.agent, tuple(launched)))
        self.outbox.resume()
        tasks = [Task(offer.framework, offer.role, offer.agent, amount) for amount in amounts]
        member.tasks.update(dict.fromkeys(tasks))
        self.record.tasks += len(tasks)
        self._note_use()
        return tasks

    def decline(self, offers: Sequence[Offer], refuse_ms: int) -> None:
        """Take offers back that a framework declines."""
        for offer in offers:
            self.members[offer.framework].void_offers([offer])
            self._release_offer(offer, offer.amount, refuse_ms)
        self.record.declines += len(offers)

    def end(self, task: Task) -> None:
        """A task ends."""
        self.members[task.framework].void_tasks([task])
        self.ledger.release(task.framework, (task.role, task.agent), task.amount, used=True)
        self.outbox.release((task.framework, task.role, task.agent, task.amount), used=True)
        self._note_use()

    def suppress(self, framework: Framework) -> None:
        """Make no more offers to a framework."""
        handle = self._handle[framework]
        self.ledger.suppress(handle)
        self.outbox.add(Suppress(handle))

    def revive(self, framework: Framework) -> None:
        """Make offers to a framework again."""
        handle = self._handle[framework]
        self.ledger.revive(handle)
        self.outbox.add(Revive(handle))
        self._cycles.trigger()

    def exclude(self, places: Iterable[tuple[int, int, int]], *, excluded: bool) -> None:
        """Keep frameworks in roles off agents, or let them there again (offer constraints)."""
        places = list(places)
        if not places:
            return
        for framework, role, agent in places:
            pairs = self.ledger.excluded[framework]
            pairs.add((role, agent)) if excluded else pairs.discard((role, agent))
        self.outbox.add(exclusions(places, excluded=excluded))

    def _give_back(self, member: Member, offers: list[Offer]) -> None:
        """Take offers back that the master rescinds: without a filter."""
        member.void_offers(offers)
        for offer in offers:
            self._release_offer(offer, offer.amount, -1)

    def _release_offer(self, offer: Offer, amount: Amount, refuse_ms: int) -> None:
        place = (offer.role, offer.agent)
        self.ledger.release(offer.framework, place, amount, used=False)
        self.outbox.release((offer.framework, offer.role, offer.agent, amount), refuse_ms=refuse_ms)
        if refuse_ms > 0 and self.ledger.frameworks[offer.framework].active:
            now_ms = self.agenda.now_ms
            expires_ms = now_ms + max(refuse_ms, self.options.allocation_interval_ms)
            self.ledger.refuse(offer.framework, place, Refusal(amount, expires_ms))

    def _note_use(self) -> None:
        self.record.note_use(self.agenda.now_ms, self.ledger.used, self.ledger.total)
