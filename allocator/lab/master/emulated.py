"""The emulated master: it speaks the module's protocol to something that decides.

What Mesos's master does is done here in the same order, event by event: the bracket of an accept
(operations, release of the rest with its filter, transition), declines, ends of
tasks, frameworks that come, go, drop out and fail over, agents that come, go and change, operators'
calls, another master after this one. Time is simulated: a cycle for all agents each allocation
interval, one more where Mesos has an event trigger it, and the next action as soon as the decisions
are there.

It is the module's double: snapshots with filters, gates and outcomes in the same order, rows that
wait, a pause that is sent only while the master recovers, and a fallback whose offers are sent as
holdings. That decides only where it is told to (`fall_back`), and simply: while no sidecar is
there, simulated time stands still.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from allocator.core import (
    ActivateAgent,
    ActivateFramework,
    AddFramework,
    Event,
    Hold,
    InverseOffer,
    Options,
    RemoveAgent,
    RemoveFramework,
    Request,
    Revive,
    SetPaused,
    SetQuota,
    SetUnavailability,
    SetWeights,
    SetWhitelist,
    Suppress,
    UpdateAgent,
    UpdateAllocation,
    UpdateFramework,
)
from allocator.lab.event_heap import EventHeap
from allocator.lab.frameworks.base import (
    REFUSE_DEFAULT_MS,
    Conversion,
    Framework,
    Identity,
    Offer,
    Quantities,
    Task,
)
from allocator.lab.links.base import Link, Opening
from allocator.lab.master.cycles import Cycles, RegisteredFramework, Timing
from allocator.lab.master.ledger import (
    AgentRow,
    FrameworkRow,
    Ledger,
    LedgerError,
    OfferFilter,
    Quota,
    RoleAgent,
)
from allocator.lab.master.session import (
    Handles,
    Outbox,
    Record,
    Roles,
    Row,
    Session,
    agent_event,
    exclusions,
    framework_info,
    snapshot,
)
from allocator.lab.resources import (
    AgentSpec,
    Amount,
    Resource,
    add,
    least,
    minus,
    plus,
    reaches,
)


@dataclass(frozen=True, slots=True)
class Recovery:
    """How a master that was elected holds back while quotas are to be kept.

    agent_factor: until so many of the agents are back that the master before had.
    timeout_ms: but no longer than this.
    """

    agent_factor: float = 0.8
    timeout_ms: int = 600_000


class EmulatedMaster:
    """A Mesos master with its agents and frameworks.

    link: to what decides.
    kinds: names of the resources of its agents.
    weights: of roles, by path.
    """

    def __init__(
        self,
        link: Link,
        kinds: Sequence[str] = ("cpus", "mem"),
        options: Options | None = None,
        weights: Mapping[str, float] | None = None,
        timing: Timing | None = None,
        recovery: Recovery | None = None,
    ) -> None:
        self.options = options or Options()
        self.recovery = recovery or Recovery()
        self.weights = dict(weights or {})
        self.event_heap = EventHeap()
        self.record = Record()
        self.ledger = Ledger(
            kinds,
            self.options.minimum,
            filter_gpus=self.options.filter_gpus,
            region=self.options.region,
        )
        self.members: dict[int, RegisteredFramework] = {}
        self.outbox = Outbox(self.ledger.kinds)
        self.roles = Roles(self.outbox)
        self.ledger.path = self.roles.path
        self.session = Session(link, self.outbox, self.record, self._opening)
        self._cycles = Cycles(
            event_heap=self.event_heap,
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

    # The session.

    def open(self) -> None:
        """Begin the session, and the cycles."""
        self.session.open()
        self._cycles.begin()

    def close(self) -> None:
        self.session.close()

    def step(self, until_ms: int | None = None) -> bool:
        """Do the next thing; False where there is none up to and including `until_ms`.

        What has happened is sent before time goes on, so that both sides count from one moment.
        """
        next_ms = self.event_heap.next_ms
        if next_ms is None or (until_ms is not None and next_ms > until_ms):
            return False
        if next_ms > self.event_heap.now_ms:
            self.send()
        return self.event_heap.step()

    def send(self) -> None:
        if len(self.outbox):
            self.session.send(self.event_heap.now_ms)

    def settle(self) -> None:
        """Tell the sidecar everything, and wait until it is applied."""
        self.session.settle(self.event_heap.now_ms)

    def _opening(self, sequence: int) -> Opening:
        """What a session begins with; its state is made when the sidecar has said its limits."""
        identities = {handle: m.framework.identity for handle, m in self.members.items()}
        now_ms = self.event_heap.now_ms

        def state(kinds_max: int) -> tuple[Event, ...]:
            self.ledger.kinds.begin(kinds_max)
            self.roles.begin()
            events = snapshot(self.ledger, identities, self.weights, now_ms)
            self.outbox.begin()
            return events

        return Opening(self.options, state, sequence, now_ms, self.ledger.holds_back)

    # What frameworks and others may ask.

    def amount(self, quantities: Mapping[str, int]) -> Amount:
        return self.ledger.amount(quantities)

    def row(self, amounts: Mapping[Resource, int]) -> Amount:
        return self.ledger.row(amounts)

    def resources_of(self, amount: Amount) -> dict[Resource, int]:
        return {self.ledger.table[row]: value for row, value in enumerate(amount) if value}

    def path(self, role: int) -> str:
        return self.roles.path[role]

    def attributes(self, agent: int) -> Mapping[str, str]:
        """The attributes of an agent, as each of its offers shows them."""
        return self.ledger.agents[agent].info.attributes

    def inspect(self, look: Callable[[Sequence[Offer]], None]) -> None:
        """Have somebody look at the offers of each batch of decisions once they are booked."""
        self._cycles.look = look

    def excuse(self, framework: Framework, *, excused: bool = True) -> None:
        """Do not hold it against the sidecar what it decides for this framework."""
        handle = self._handle[framework]
        (self._cycles.excused.add if excused else self._cycles.excused.discard)(handle)

    def member(self, framework: Framework) -> RegisteredFramework:
        return self.members[self._handle[framework]]

    def knows(self, framework: Framework) -> bool:
        """Whether the framework is registered with this master."""
        return self._handle.get(framework) in self.ledger.frameworks

    def fall_back(self, agent: int, clients: Sequence[tuple[int, int]]) -> None:
        """The sidecar is silent for a moment, and the master itself offers an agent."""
        self._cycles.fall_back(agent, clients)

    def rescind(self, agents: Iterable[int], refuse_ms: int = -1) -> None:
        """Take back every offer of these agents."""
        there = set(agents)
        for member in self.members.values():
            offers = [offer for offer in member.offers if offer.agent in there]
            self._give_back(member, offers, refuse_ms)

    def _give_back(
        self, member: RegisteredFramework, offers: list[Offer], refuse_ms: int = -1
    ) -> None:
        """Take offers back that the master rescinds: without a filter, as a rule."""
        member.void_offers(offers)
        for offer in offers:
            self._release_offer(offer, offer.amount, refuse_ms)

    def _release_offer(self, offer: Offer, amount: Amount, refuse_ms: int) -> None:
        """Give back part of an offer, and keep a filter where one is asked for."""
        place = (offer.role, offer.agent)
        self.ledger.release(offer.framework, place, amount, used=False)
        self.outbox.release((offer.framework, offer.role, offer.agent, amount), refuse_ms=refuse_ms)
        row = self.ledger.frameworks[offer.framework]
        # A filter is in force at the next cycle at least, as in Mesos.
        if refuse_ms > 0 and row.active and offer.role in row.roles:
            now_ms = self.event_heap.now_ms
            expires_ms = now_ms + max(refuse_ms - 1, self.options.allocation_interval_ms)
            self.ledger.add_filter(offer.framework, place, OfferFilter(amount, expires_ms))

    def _note_use(self) -> None:
        self.record.note_use(self.event_heap.now_ms, self.ledger.used, self.ledger.total)

    # Agents that come, change and go.

    def add_agent(self, spec: AgentSpec) -> int:
        agent = self._agent_handles.take()
        self._agent_count += 1
        row = AgentRow(
            spec.info(f"agent-{self._agent_count:06d}"),
            bound_sequence=0,
            capacity=list(plus(self.ledger.amount(spec.capacity), self.row(spec.special))),
            held=list(self.ledger.zero),
        )
        self._register(agent, row)
        return agent

    def _register(self, agent: int, row: AgentRow) -> None:
        row.bound_sequence = self.session.sequence + 1
        self.ledger.kinds.tell(row.capacity, row.info.agent_id)
        self.ledger.add_agent(agent, row)
        self.outbox.add(agent_event(agent, row, self.outbox.sparse(row.capacity)))
        self._note_use()
        # With enough agents back, offers begin again.
        recovery = self.ledger.recovery
        if recovery is not None and len(self.ledger.agents) >= recovery[0]:
            self._end_recovery()
        self._cycles.trigger(agent)

    def _end_recovery(self) -> None:
        if self.ledger.recovery is not None:
            self.ledger.recovery = None
            self.outbox.add(SetPaused(paused=False))

    def remove_agent(self, agent: int) -> None:
        """An agent is lost, and what was on it goes with it."""
        # The sidecar and the books forget the agent first; frameworks are told at the end, for
        # their answers may change anything.
        self.outbox.add(RemoveAgent(agent))
        self.ledger.remove_agent(agent)
        self._note_use()
        lost: list[tuple[RegisteredFramework, list[Task]]] = []
        for member in self.members.values():
            tasks = member.tasks_on(agent)
            offers = [offer for offer in member.offers if offer.agent == agent]
            member.void_offers(offers)
            member.void_tasks(tasks)
            if tasks:
                lost.append((member, tasks))
        self._agent_handles.give_back(agent)
        for member, tasks in lost:
            member.framework.lost(tasks)

    def activate_agent(self, agent: int, *, active: bool) -> None:
        """Offer an agent again, or no more (it drains, or dropped out); offers are taken back."""
        self.ledger.agents[agent].active = active
        self.outbox.add(ActivateAgent(agent, active))
        if not active:
            self.rescind([agent])

    def resize_agent(self, agent: int, capacity: Mapping[str, int]) -> None:
        """An agent has more or less of what is nobody's in particular."""
        row = self.ledger.agents[agent]
        special = row.capacity[len(self.ledger.zero) :]
        self._set_capacity(agent, (*self.ledger.amount(capacity), *special))

    def oversubscribe(self, agent: int, amounts: Mapping[Resource, int]) -> None:
        """An agent's estimate changes: it has so much of these revocable resources now."""
        # The revocable resources that it had go, the others stay.
        before = self.ledger.agents[agent].capacity
        has = self.resources_of(tuple(before))
        revocable = {each: amount for each, amount in has.items() if each.revocable}
        self._set_capacity(agent, minus(plus(before, self.row(amounts)), self.row(revocable)))

    def add_provider(self, agent: int, amounts: Mapping[Resource, int]) -> None:
        """A resource provider of the agent registers, with resources that it alone has."""
        amount = plus(self.ledger.agents[agent].capacity, self.row(amounts))
        self._resize(agent, amount)

    def reregister_agent(self, agent: int, spec: AgentSpec) -> None:
        """An agent that is known comes back; what was reserved or created on it is still there."""
        row = self.ledger.agents[agent]
        special = row.capacity[len(self.ledger.zero) :]
        capacity = (*self.ledger.amount(spec.capacity), *special)
        # With other attributes, what was refused may be wanted.
        if spec.attributes != row.info.attributes:
            self.ledger.drop_filters(agent)
        self.ledger.resize_agent(agent, capacity)
        row.info = info = spec.info(row.info.agent_id)
        where, knows = (info.region, info.zone), info.capabilities
        there = self.outbox.sparse(capacity)
        self.outbox.add(UpdateAgent(agent, info.hostname, info.attributes, *where, knows, there))
        self._note_use()
        # As Mesos does: offers were made of what the agent had before.
        self.rescind([agent])
        if not row.active:
            self.activate_agent(agent, active=True)
        self._cycles.trigger(agent)

    def _set_capacity(self, agent: int, amount: Amount) -> None:
        """The total changes first; then the agent's offers are taken back."""
        self._resize(agent, amount)
        self.rescind([agent])
        self._cycles.trigger(agent)

    def _resize(self, agent: int, amount: Amount) -> None:
        self.ledger.kinds.tell(amount, self.ledger.agents[agent].info.agent_id)
        self.ledger.resize_agent(agent, amount)
        self.outbox.add(UpdateAgent(agent, capacity=self.outbox.sparse(amount)))
        self._note_use()

    # Frameworks that subscribe, drop out, fail over and leave.

    def subscribe(self, framework: Framework) -> int:
        handle = self._framework_handles.take()
        self._framework_count += 1
        framework_id = f"framework-{self._framework_count:06d}"
        roles = framework.identity.roles
        self.roles.name(roles)
        member = RegisteredFramework(framework, handle, framework_id, self.event_heap.now_ms, roles)
        self.members[handle] = member
        self._handle[framework] = handle
        self._introduce(member, active=True)
        framework.subscribed(self)
        return handle

    def _introduce(self, member: RegisteredFramework, *, active: bool) -> None:
        """Let the books and the sidecar know a framework."""
        identity = member.framework.identity
        roles = tuple(self.roles.handle[path] for path in identity.roles)
        row = FrameworkRow(member.framework_id, self.session.sequence + 1, set(roles))
        row.active = active
        self._describe(row, identity)
        self.ledger.add_framework(member.handle, row)
        info = framework_info(identity, row)
        self.outbox.add(AddFramework(member.handle, info, roles, active=active))
        if active:
            self._cycles.trigger()

    def _describe(self, row: FrameworkRow, identity: Identity) -> None:
        """Note what decides where a framework may go, and what it must be offered."""
        row.capabilities = identity.announced
        row.allowed = identity.allowed
        # One for what is no role of anybody's has nothing to be about.
        handle = self.roles.handle
        row.minimum = {handle[path]: n for path, n in identity.minimum.items() if path in handle}

    def disconnect(self, framework: Framework) -> None:
        """The connection breaks: no offers, those that are out come back, tasks go on."""
        member = self.member(framework)
        self.ledger.deactivate_framework(member.handle)
        self.outbox.add(ActivateFramework(member.handle, active=False))
        self._give_back(member, list(member.offers))

    def reconnect(self, framework: Framework) -> None:
        """The framework subscribes again, perhaps in other roles, as another process."""
        member = self.member(framework)
        row = self.ledger.frameworks[member.handle]
        identity = framework.identity
        # Roles that it comes to are bound. Those that it left stay in `member.roles`, for it may
        # still hold something there.
        before = set(member.roles)
        more = tuple(path for path in identity.roles if path not in before)
        self.roles.name(more)
        member.roles += more
        roles = tuple(self.roles.handle[path] for path in identity.roles)
        suppressed = tuple(sorted(row.suppressed & set(roles)))
        # Exclusions in roles that it left are taken back before the roles change.
        left = {place for place in self.ledger.excluded[member.handle] if place[0] not in roles}
        self.exclude([(member.handle, *place) for place in sorted(left)], excluded=False)
        self.ledger.change_roles(member.handle, roles, suppressed)
        self._describe(row, identity)
        info = framework_info(identity, row)
        self.outbox.add(UpdateFramework(member.handle, info, roles, suppressed))
        # Offers in roles that it left come back.
        offers = [offer for offer in member.offers if offer.role not in row.roles]
        self._give_back(member, offers)
        if not row.active:
            row.active = True
            self.outbox.add(ActivateFramework(member.handle, active=True))
            self._cycles.trigger()

    def unsubscribe(self, framework: Framework) -> None:
        """The framework leaves; all that it held comes back."""
        member = self.member(framework)
        # As in Mesos: offers come back first, then tasks end, then the framework goes.
        if self.ledger.frameworks[member.handle].active:
            self.disconnect(framework)
        for task in list(member.tasks):
            self.end(task)
        self.outbox.add(RemoveFramework(member.handle))
        self.ledger.remove_framework(member.handle)
        del self.members[member.handle], self._handle[framework]
        self.roles.forget(member.roles)
        self._framework_handles.give_back(member.handle)

    def suppress(self, framework: Framework, roles: Sequence[str] = ()) -> None:
        """Make no more offers to a framework in some of its roles."""
        if self.knows(framework):
            named = self._named(framework, roles)
            self.ledger.suppress(*named)
            self.outbox.add(Suppress(*named))

    def revive(self, framework: Framework, roles: Sequence[str] = ()) -> None:
        """Make offers to a framework again in some of its roles."""
        if self.knows(framework):
            named = self._named(framework, roles)
            self.ledger.revive(*named)
            self.outbox.add(Revive(*named))
            self._cycles.trigger()

    def answer_inverse_offer(
        self, framework: Framework, agent: int, *, accept: bool, refuse_ms: int
    ) -> None:
        """A framework says whether it can do without an agent."""
        status = "ACCEPT" if accept else "DECLINE"
        self._cycles.inverse.discard((self._handle[framework], agent))
        self.outbox.add(InverseOffer(self._handle[framework], agent, status, refuse_ms))

    def request(self, framework: Framework, *needs: Quantities) -> None:
        """A framework says what tasks need (Mesos's REQUEST)."""
        self.outbox.add(Request(self._handle[framework], needs))

    def _named(self, framework: Framework, roles: Sequence[str]) -> tuple[int, tuple[int, ...]]:
        """Handles of the framework and of the roles; none named means all of its own."""
        handle = self._handle[framework]
        own = sorted(self.ledger.frameworks[handle].roles)
        return handle, tuple(self.roles.handle[path] for path in roles) or tuple(own)

    # Offers: accepted, with operations or without, declined; tasks that end.

    def accept(
        self,
        offer: Offer,
        amounts: Sequence[Amount],
        refuse_ms: int,
        conversions: Sequence[Conversion] = (),
    ) -> list[Task]:
        """Carry operations out, launch one task for each amount; the rest is declined.

        What came of an operation and is not used comes back without a filter.
        """
        member = self.members[offer.framework]
        member.void_offers([offer])
        place = (offer.role, offer.agent)
        # Operations first: tasks may use what comes of them.
        converted, made = self._convert(offer, conversions)
        launched: list[int] = list(self.ledger.zero)
        for amount in amounts:
            add(launched, amount)
        used = tuple(launched)
        rest = minus(plus(converted, self._copies(offer, converted, used)), used)
        # What is left of the operations' results was never refused, so it gets no filter.
        unused = least(rest, made)
        for back, filter_ms in ((unused, -1), (minus(rest, unused), refuse_ms)):
            if any(back):
                self._release_offer(offer, back, filter_ms)
        # The order is Mesos's: the rest is released, then the tasks' resources come into use.
        if any(used):
            self.ledger.use(offer.framework, place, used)
            self.outbox.transition((offer.framework, offer.role, offer.agent, used))
        tasks = [Task(offer.framework, offer.role, offer.agent, amount) for amount in amounts]
        member.tasks.update(dict.fromkeys(tasks))
        self.record.tasks += len(tasks)
        self._note_use()
        return tasks

    def _convert(self, offer: Offer, conversions: Sequence[Conversion]) -> tuple[Amount, Amount]:
        """Carry operations out: what the offer is then, and what of it was not in it before."""
        now = offer.amount
        for conversion in conversions:
            before, after = self.row(conversion.consumed), self.row(conversion.converted)
            # An operation that is not possible is left out; the others go on.
            if (
                reaches(now, before)
                and self._may_create(offer.agent, now, conversion)
                and self._may_consume(offer, before)
            ):
                now = plus(minus(now, before), after)
        # Only the difference between the beginning and the end is booked and told.
        gone, made = _positive(minus(offer.amount, now)), _positive(minus(now, offer.amount))
        if any(gone) or any(made):
            self.ledger.kinds.tell(made, f"framework {offer.framework}")
            self.ledger.convert(offer.framework, (offer.role, offer.agent), gone, made)
            consumed, converted = self.outbox.change(gone, made)
            if consumed or converted:
                place = offer.framework, offer.role, offer.agent
                self.outbox.add(UpdateAllocation(*place, consumed, converted))
            self.record.operations += len(conversions)
        return now, made

    def _may_create(self, agent: int, now: Amount, conversion: Conversion) -> bool:
        """Not two volumes of one name on an agent."""
        capacity = tuple(self.ledger.agents[agent].capacity)
        there = self.resources_of(capacity) | self.resources_of(now)
        fresh = conversion.converted.keys() - conversion.consumed.keys()
        return not any(each.persistence and each in there for each in fresh)

    def _may_consume(self, offer: Offer, consumed: Amount) -> bool:
        """Take a shared volume that is to go back from others; not where it is in use."""
        volumes = [
            row for row, value in enumerate(consumed) if value and self.ledger.table[row].shared
        ]
        if not volumes:
            return True
        # Other frameworks' offers with the volume are rescinded; tasks that use it stand in the
        # way.
        for member in self.members.values():
            others = [
                each
                for each in member.offers
                if each.agent == offer.agent and not _rows(each.amount).isdisjoint(volumes)
            ]
            self._give_back(member, others)
        held = self.ledger.agents[offer.agent].held
        return all(held[row] == consumed[row] for row in volumes)

    def _copies(self, offer: Offer, there: Amount, used: Amount) -> Amount:
        """More copies of shared volumes, where the tasks together use more than were offered."""
        more = _positive(minus(used, there))
        if any(more):
            if not all(each.shared for each in self.resources_of(more)):
                raise LedgerError(f"{used} is more than the {there} that is offered")
            place: RoleAgent = (offer.role, offer.agent)
            self.ledger.hold(offer.framework, place, more)
            row = (offer.framework, *place, more)
            self.outbox.add(Hold(self.outbox.holdings([row])))
        return more

    def decline(self, offers: Sequence[Offer], refuse_ms: int) -> None:
        """Take offers back that a framework declines."""
        for offer in offers:
            self.members[offer.framework].void_offers([offer])
            self._release_offer(offer, offer.amount, refuse_ms)
        self.record.declines += len(offers)

    def end(self, task: Task) -> None:
        """A task ends; where its agent is not back after a failover, it is never heard of."""
        self.members[task.framework].void_tasks([task])
        if task.agent in self.ledger.agents:
            self.ledger.release(task.framework, (task.role, task.agent), task.amount, used=True)
            self.outbox.release((task.framework, task.role, task.agent, task.amount), used=True)
            self._note_use()

    def exclude(self, places: Iterable[tuple[int, int, int]], *, excluded: bool) -> None:
        """Keep frameworks in roles off agents, or let them there again (offer constraints)."""
        places = list(places)
        if not places:
            return
        for framework, role, agent in places:
            pairs = self.ledger.excluded[framework]
            pairs.add((role, agent)) if excluded else pairs.discard((role, agent))
        self.outbox.add(exclusions(places, excluded=excluded))

    # Another master is elected: it knows quotas and weights, the rest comes back bit by bit. Agents
    # tell what runs on them; of frameworks that did not subscribe yet the master then knows that
    # they exist, or not even that.

    def fail_over(
        self, agents_ms: Mapping[int, int], frameworks_ms: Sequence[tuple[Framework, int]]
    ) -> None:
        """Begin anew.

        agents_ms: after how long each agent comes back; those that are not named never do.
        frameworks_ms (Framework, int): the same of frameworks; every one must be named.
        """
        # Offers end with the master that made them; tasks go on.
        for member in self.members.values():
            member.void_offers(list(member.offers))
        agents = dict(self.ledger.agents)
        self.ledger.forget()
        self._begin_recovery(len(agents))
        self.session.open()
        # Agents and frameworks come back one by one; the tasks of agents that never do are lost.
        for agent, row in agents.items():
            if agent in agents_ms:
                self.event_heap.after(agents_ms[agent], partial(self._return_agent, agent, row))
            else:
                self._never_returns(agent)
        for framework, delay_ms in frameworks_ms:
            self.event_heap.after(delay_ms, partial(self.return_framework, framework))

    def _begin_recovery(self, agents: int) -> None:
        """Hold back, where there are guarantees to keep, until enough agents are known."""
        expected = int(agents * self.recovery.agent_factor)
        if self.ledger.quotas and expected:
            timeout_ms = self.recovery.timeout_ms
            recovery = (expected, self.event_heap.now_ms + timeout_ms)
            self.ledger.recovery = recovery
            self.event_heap.after(timeout_ms, partial(self._give_up, recovery))

    def _give_up(self, recovery: tuple[int, int]) -> None:
        # Not if it ended before, or another failover began another one.
        if self.ledger.recovery is recovery:
            self._end_recovery()

    def _never_returns(self, agent: int) -> None:
        """An agent does not come back: its tasks are lost."""
        self._agent_handles.give_back(agent)
        for member in self.members.values():
            tasks = member.tasks_on(agent)
            member.void_tasks(tasks)
            if tasks:
                member.framework.lost(tasks)

    def _return_agent(self, agent: int, row: AgentRow) -> None:
        """An agent registers again, and says what runs on it."""
        row.held = list(self.ledger.zero)
        self._register(agent, row)
        running: list[Row] = []
        unknown: list[RegisteredFramework] = []
        # Book its tasks, also those of frameworks that are not back yet.
        for member in self.members.values():
            tasks = member.tasks_on(agent)
            for task in tasks:
                self.ledger.recover(task.framework, (task.role, agent), task.amount)
                running.append((task.framework, task.role, agent, task.amount))
            if tasks and member.handle not in self.ledger.frameworks:
                unknown.append(member)
        if running:
            self.outbox.add(Hold(self.outbox.holdings(running)))
        # An agent knows the FrameworkInfo of some of them: whose handle is even, say.
        for member in unknown:
            if member.handle % 2 == 0:
                self._introduce(member, active=False)
        self._note_use()

    def return_framework(self, framework: Framework) -> None:
        """A framework subscribes again; an agent may have made it known before."""
        if framework not in self._handle:
            return
        if self.knows(framework):
            self.reconnect(framework)
        else:
            self._introduce(self.member(framework), active=True)

    # What operators do.

    def set_quota(self, role: str, quota: Quota) -> None:
        """Give a role a quota, another one, or none; then offers are taken back."""
        self.ledger.quotas.pop(role, None)
        if quota:
            self.ledger.quotas[role] = quota
        self.outbox.add(SetQuota(role, quota.guarantees, quota.limits))
        self.rescind(self.ledger.agents)

    def set_weights(self, weights: Mapping[str, float]) -> None:
        """Give roles other weights; then offers are taken back."""
        self.weights.update(weights)
        self.outbox.add(SetWeights(dict(weights)))
        self.rescind(self.ledger.agents)

    def set_whitelist(self, hostnames: Iterable[str] | None) -> None:
        """Let only agents of these hosts be offered, or all."""
        self.ledger.whitelist = None if hostnames is None else frozenset(hostnames)
        self.outbox.add(SetWhitelist(self.ledger.whitelist))

    def maintain(self, agent: int, window_ms: tuple[int, int] | None) -> None:
        """Plan maintenance of an agent (beginning, duration), or call it off."""
        self.rescind([agent])
        self.ledger.agents[agent].unavailable_ms = window_ms
        start_ms, duration_ms = window_ms or (-1, 0)
        self.outbox.add(SetUnavailability(agent, start_ms, duration_ms))
        self._cycles.trigger(agent)

    def operate(self, agent: int, conversion: Conversion) -> bool:
        """Turn free resources of an agent into others; whether there was enough.

        Offers of the agent are taken back, and what was offered is not offered to the same
        framework again at once.
        """
        consumed, converted = self.row(conversion.consumed), self.row(conversion.converted)
        # What is on offer must be free before it can be turned into something else.
        self.rescind([agent], REFUSE_DEFAULT_MS)
        if not reaches(self.ledger.agents[agent].available(), consumed):
            return False
        self.ledger.convert_free(agent, consumed, converted)
        self.outbox.add(UpdateAllocation(0, 0, agent, *self.outbox.change(consumed, converted)))
        self.record.operations += 1
        self._note_use()
        return True


def _rows(amount: Amount) -> set[int]:
    return {row for row, value in enumerate(amount) if value}


def _positive(amount: Amount) -> Amount:
    return tuple(max(0, value) for value in amount)
