"""The emulated master: it speaks the module's protocol to an allocator.

It performs Mesos's operations in the same order, event by event: accepts (operations, release of
the rest with its filter, transition), declines, ends of tasks, frameworks and agents that come, go,
change and fail over, operators' calls, and failover to another master. Time is simulated: a cycle
over all agents each allocation interval, another when Mesos triggers one, and the next action as
soon as the decisions arrive.

It also plays the module's part: it sends snapshots with filters, applies the gates and reports
outcomes in the same order, collects rows into events, sends a pause only while the master recovers,
and reports the offers of its fallback as holdings. The fallback is simple and runs only on request
(`fall_back`), because simulated time stops without a sidecar.
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
from laboratory.event_heap import EventHeap
from laboratory.frameworks.base import (
    REFUSE_DEFAULT_MS,
    Conversion,
    Framework,
    Identity,
    Offer,
    Quantities,
    Task,
)
from laboratory.links.base import Link, Opening
from laboratory.master.cycles import Cycles, RegisteredFramework, Timing
from laboratory.master.ledger import (
    AgentRow,
    FrameworkRow,
    Ledger,
    LedgerError,
    OfferFilter,
    Quota,
    RoleAgent,
)
from laboratory.master.session import (
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
from laboratory.resources import (
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
    """How long a newly elected master with guarantees holds offers back.

    agent_factor: until this fraction of the previous master's agents has reregistered,
    timeout_ms: but no longer than this.
    """

    agent_factor: float = 0.8
    timeout_ms: int = 600_000


ROLES_SPARE = 16_384
"""Number of roles beyond twice those in use after which idle ones are removed, as in the module."""


class EmulatedMaster:
    """A Mesos master with its agents and frameworks.

    link: to the allocator.
    kinds: names of the agents' resources.
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
        self._roles_max = ROLES_SPARE
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
        self._requests: dict[int, Request] = {}
        self._agent_handles = Handles()
        self._framework_handles = Handles()
        self._framework_count = 0
        self._agent_count = 0

    # The session.

    def open(self) -> None:
        """Open the session, and start the cycles."""
        self.session.open()
        self._cycles.begin()

    def close(self) -> None:
        self.session.close()

    def _name_roles(self, paths: Iterable[str]) -> None:
        self.roles.name(paths)
        if len(self.roles.handle) > self._roles_max:
            self.event_heap.after(0, self._free_roles)

    def _free_roles(self) -> None:
        """Replace the session, which keeps the handles of its roles, if some roles are idle."""
        if len(self.roles.handle) <= self._roles_max:
            return
        held = {
            (framework, role)
            for framework, places in self.ledger.holdings.items()
            for role, _ in places
        }
        for handle, row in self.ledger.frameworks.items():
            member, joined = self.members[handle], row.roles
            left = {
                path
                for path in member.roles
                if (role := self.roles.handle[path]) not in joined and (handle, role) not in held
            }
            self.roles.forget(left)
            member.roles = tuple(path for path in member.roles if path not in left)
        idle = self.roles.idle
        self._roles_max = 2 * (len(self.roles.handle) - idle) + ROLES_SPARE
        if idle:
            self.session.open()

    def step(self, until_ms: int | None = None) -> bool:
        """Do the next action; False if there is none up to and including `until_ms`.

        Pending events are sent before time advances, so that master and sidecar date them alike.
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
        """Send all pending events, and wait until they are applied."""
        self.session.settle(self.event_heap.now_ms)

    def _opening(self, sequence: int) -> Opening:
        """The opening of a session; its state is built once the sidecar has stated its limits."""
        identities = {handle: m.framework.identity for handle, m in self.members.items()}
        now_ms = self.event_heap.now_ms

        def state(kinds_max: int) -> tuple[Event, ...]:
            self.ledger.kinds.begin(kinds_max)
            self.roles.begin()
            events = snapshot(self.ledger, identities, self.weights, now_ms)
            self.outbox.begin()
            for handle, request in self._requests.items():
                if handle in self.ledger.frameworks:  # snapshots have no place for requests
                    self.outbox.add(request)
            return events

        return Opening(self.options, state, sequence, now_ms, self.ledger.holds_back)

    # The interface to frameworks, agents and operators.

    def amount(self, quantities: Mapping[str, int]) -> Amount:
        return self.ledger.amount(quantities)

    def row(self, amounts: Mapping[Resource, int]) -> Amount:
        return self.ledger.row(amounts)

    def resources_of(self, amount: Amount) -> dict[Resource, int]:
        return {self.ledger.table[row]: value for row, value in enumerate(amount) if value}

    def path(self, role: int) -> str:
        return self.roles.path[role]

    def attributes(self, agent: int) -> Mapping[str, str]:
        """Attributes of an agent, which are part of each of its offers."""
        return self.ledger.agents[agent].info.attributes

    def inspect(self, look: Callable[[Sequence[Offer]], None]) -> None:
        """Call `look` with the offers of each batch of decisions once the ledger has them."""
        self._cycles.look = look

    def excuse(self, framework: Framework, *, excused: bool = True) -> None:
        """Do not count rejected decisions for this framework as defects of the sidecar."""
        handle = self._handle[framework]
        (self._cycles.excused.add if excused else self._cycles.excused.discard)(handle)

    def member(self, framework: Framework) -> RegisteredFramework:
        return self.members[self._handle[framework]]

    def knows(self, framework: Framework) -> bool:
        """Whether the framework is registered with this master."""
        return self._handle.get(framework) in self.ledger.frameworks

    def fall_back(self, agent: int, clients: Sequence[tuple[int, int]]) -> None:
        """Offer an agent as the module's fallback would: without asking the sidecar."""
        self._cycles.fall_back(agent, clients)

    def rescind(self, agents: Iterable[int], refuse_ms: int = -1) -> None:
        """Rescind every offer of these agents."""
        there = set(agents)
        for member in self.members.values():
            offers = [offer for offer in member.offers if offer.agent in there]
            self._give_back(member, offers, refuse_ms)

    def _give_back(
        self, member: RegisteredFramework, offers: list[Offer], refuse_ms: int = -1
    ) -> None:
        """Rescind offers, usually without a filter."""
        member.void_offers(offers)
        for offer in offers:
            self._release_offer(offer, offer.amount, refuse_ms)

    def _release_offer(self, offer: Offer, amount: Amount, refuse_ms: int) -> None:
        """Release part of an offer, and add a filter if requested."""
        place = (offer.role, offer.agent)
        self.ledger.release(offer.framework, place, amount, used=False)
        self.outbox.release((offer.framework, offer.role, offer.agent, amount), refuse_ms=refuse_ms)
        row = self.ledger.frameworks[offer.framework]
        # As in Mesos, a filter lasts until the next cycle at least.
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
        # Resume offers once enough agents are back.
        recovery = self.ledger.recovery
        if recovery is not None and len(self.ledger.agents) >= recovery[0]:
            self._end_recovery()
        self._cycles.trigger(agent)

    def _end_recovery(self) -> None:
        if self.ledger.recovery is not None:
            self.ledger.recovery = None
            self.outbox.add(SetPaused(paused=False))

    def remove_agent(self, agent: int) -> None:
        """Lose an agent and everything on it."""
        # Frameworks last, because they may react: ledger and outbox are up to date by then.
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
        """Activate an agent, or deactivate it and rescind its offers (draining or disconnected)."""
        self.ledger.agents[agent].active = active
        self.outbox.add(ActivateAgent(agent, active))
        if not active:
            self.rescind([agent])

    def resize_agent(self, agent: int, capacity: Mapping[str, int]) -> None:
        """Change an agent's plain resources."""
        row = self.ledger.agents[agent]
        special = row.capacity[len(self.ledger.zero) :]
        self._set_capacity(agent, (*self.ledger.amount(capacity), *special))

    def oversubscribe(self, agent: int, amounts: Mapping[Resource, int]) -> None:
        """Replace an agent's revocable resources by a new estimate."""
        # Remove the previous revocable resources; keep the others.
        before = self.ledger.agents[agent].capacity
        has = self.resources_of(tuple(before))
        revocable = {each: amount for each, amount in has.items() if each.revocable}
        self._set_capacity(agent, minus(plus(before, self.row(amounts)), self.row(revocable)))

    def add_provider(self, agent: int, amounts: Mapping[Resource, int]) -> None:
        """Register a resource provider of the agent, which adds its resources."""
        amount = plus(self.ledger.agents[agent].capacity, self.row(amounts))
        self._resize(agent, amount)

    def reregister_agent(self, agent: int, spec: AgentSpec) -> None:
        """Reregister a known agent; its reservations and volumes remain."""
        row = self.ledger.agents[agent]
        special = row.capacity[len(self.ledger.zero) :]
        capacity = (*self.ledger.amount(spec.capacity), *special)
        # Filters apply to an agent with the old attributes.
        if spec.attributes != row.info.attributes:
            self.ledger.drop_filters(agent)
        self.ledger.resize_agent(agent, capacity)
        row.info = info = spec.info(row.info.agent_id)
        where, knows = (info.region, info.zone), info.capabilities
        there = self.outbox.sparse(capacity)
        self.outbox.add(UpdateAgent(agent, info.hostname, info.attributes, *where, knows, there))
        self._note_use()
        # As in Mesos, rescind its offers, which contain the old resources.
        self.rescind([agent])
        if not row.active:
            self.activate_agent(agent, active=True)
        self._cycles.trigger(agent)

    def _set_capacity(self, agent: int, amount: Amount) -> None:
        """Change the total first, then rescind the agent's offers, as Mesos does."""
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
        self._name_roles(roles)
        member = RegisteredFramework(framework, handle, framework_id, self.event_heap.now_ms, roles)
        self.members[handle] = member
        self._handle[framework] = handle
        self._introduce(member, active=True)
        framework.subscribed(self)
        return handle

    def _introduce(self, member: RegisteredFramework, *, active: bool) -> None:
        """Add a framework to the ledger, and tell the sidecar."""
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
        """Copy the limits on the framework's offers into its row."""
        row.capabilities = identity.announced
        row.allowed = identity.allowed
        # Mesos ignores minimums of unknown roles.
        handle = self.roles.handle
        row.minimum = {handle[path]: n for path, n in identity.minimum.items() if path in handle}

    def disconnect(self, framework: Framework) -> None:
        """Disconnect: offers stop and are rescinded, tasks keep running."""
        member = self.member(framework)
        self.ledger.deactivate_framework(member.handle)
        self.outbox.add(ActivateFramework(member.handle, active=False))
        self._give_back(member, list(member.offers))

    def reconnect(self, framework: Framework) -> None:
        """Resubscribe a framework, perhaps a new instance with other roles."""
        member = self.member(framework)
        row = self.ledger.frameworks[member.handle]
        identity = framework.identity
        # Bind new roles. Keep old ones in `member.roles`: it may still hold something in them.
        before = set(member.roles)
        more = tuple(path for path in identity.roles if path not in before)
        self._name_roles(more)
        member.roles += more
        roles = tuple(self.roles.handle[path] for path in identity.roles)
        suppressed = tuple(sorted(row.suppressed & set(roles)))
        # Remove exclusions in roles that it left before the roles change.
        left = {place for place in self.ledger.excluded[member.handle] if place[0] not in roles}
        self.exclude([(member.handle, *place) for place in sorted(left)], excluded=False)
        self.ledger.change_roles(member.handle, roles, suppressed)
        self._describe(row, identity)
        info = framework_info(identity, row)
        self.outbox.add(UpdateFramework(member.handle, info, roles, suppressed))
        # Rescind offers in roles that it left.
        offers = [offer for offer in member.offers if offer.role not in row.roles]
        self._give_back(member, offers)
        if not row.active:
            row.active = True
            self.outbox.add(ActivateFramework(member.handle, active=True))
            self._cycles.trigger()

    def unsubscribe(self, framework: Framework) -> None:
        """Remove a framework; everything it held is recovered."""
        member = self.member(framework)
        # As in Mesos: rescind offers, end tasks, then remove the framework.
        if self.ledger.frameworks[member.handle].active:
            self.disconnect(framework)
        for task in list(member.tasks):
            self.end(task)
        self.outbox.add(RemoveFramework(member.handle))
        self.ledger.remove_framework(member.handle)
        del self.members[member.handle], self._handle[framework]
        self._requests.pop(member.handle, None)
        self.roles.forget(member.roles)
        self._framework_handles.give_back(member.handle)

    def suppress(self, framework: Framework, roles: Sequence[str] = ()) -> None:
        """Stop offers to a framework in some of its roles."""
        if self.knows(framework):
            named = self._named(framework, roles)
            self.ledger.suppress(*named)
            self.outbox.add(Suppress(*named))

    def revive(self, framework: Framework, roles: Sequence[str] = ()) -> None:
        """Resume offers to a framework in some of its roles."""
        if self.knows(framework):
            named = self._named(framework, roles)
            self.ledger.revive(*named)
            self.outbox.add(Revive(*named))
            self._cycles.trigger()

    def answer_inverse_offer(
        self, framework: Framework, agent: int, *, accept: bool, refuse_ms: int
    ) -> None:
        """Accept or decline an inverse offer for a framework."""
        status = "ACCEPT" if accept else "DECLINE"
        self._cycles.inverse.discard((self._handle[framework], agent))
        self.outbox.add(InverseOffer(self._handle[framework], agent, status, refuse_ms))

    def request(self, framework: Framework, *needs: Quantities, agents: Sequence[str] = ()) -> None:
        """Forward the needs of a framework's tasks (Mesos's REQUEST).

        `agents`: the id of the only agent for each of them, empty: any; no ids: any for all.
        """
        handle = self._handle[framework]
        self._requests[handle] = Request(handle, needs, agents=tuple(agents))
        self.outbox.add(self._requests[handle])

    def _named(self, framework: Framework, roles: Sequence[str]) -> tuple[int, tuple[int, ...]]:
        """Handles of the framework and of the roles; none means all its roles."""
        handle = self._handle[framework]
        own = sorted(self.ledger.frameworks[handle].roles)
        return handle, tuple(self.roles.handle[path] for path in roles) or tuple(own)

    # Offers accepted, with or without operations, or declined; ends of tasks.

    def accept(
        self,
        offer: Offer,
        amounts: Sequence[Amount],
        refuse_ms: int,
        conversions: Sequence[Conversion] = (),
    ) -> list[Task]:
        """Apply the conversions, launch one task for each amount, and decline the rest.

        Unused results of conversions are released without a filter.
        """
        member = self.members[offer.framework]
        member.void_offers([offer])
        place = (offer.role, offer.agent)
        # Conversions first: tasks may use their results.
        converted, made = self._convert(offer, conversions)
        launched: list[int] = list(self.ledger.zero)
        for amount in amounts:
            add(launched, amount)
        used = tuple(launched)
        rest = minus(plus(converted, self._copies(offer, converted, used)), used)
        # The framework did not refuse the unused results of conversions, so they get no filter.
        unused = least(rest, made)
        for back, filter_ms in ((unused, -1), (minus(rest, unused), refuse_ms)):
            if any(back):
                self._release_offer(offer, back, filter_ms)
        # In Mesos's order: release the rest, then transition the tasks' resources.
        if any(used):
            self.ledger.use(offer.framework, place, used)
            self.outbox.transition((offer.framework, offer.role, offer.agent, used))
        tasks = [Task(offer.framework, offer.role, offer.agent, amount) for amount in amounts]
        member.tasks.update(dict.fromkeys(tasks))
        self.record.tasks += len(tasks)
        self._note_use()
        return tasks

    def _convert(self, offer: Offer, conversions: Sequence[Conversion]) -> tuple[Amount, Amount]:
        """Apply conversions: gives the amount of the offer after them, and what they added."""
        now = offer.amount
        for conversion in conversions:
            before, after = self.row(conversion.consumed), self.row(conversion.converted)
            # As in Mesos, an impossible operation is skipped.
            if (
                reaches(now, before)
                and self._may_create(offer.agent, now, conversion)
                and self._may_consume(offer, before)
            ):
                now = plus(minus(now, before), after)
        # Book and send only the difference between beginning and end.
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
        """Whether the conversion avoids creating a volume that the agent already has."""
        capacity = tuple(self.ledger.agents[agent].capacity)
        there = self.resources_of(capacity) | self.resources_of(now)
        fresh = conversion.converted.keys() - conversion.consumed.keys()
        return not any(each.persistence and each in there for each in fresh)

    def _may_consume(self, offer: Offer, consumed: Amount) -> bool:
        """Rescind other offers of the shared volumes to consume; False if tasks use a volume."""
        volumes = [
            row for row, value in enumerate(consumed) if value and self.ledger.table[row].shared
        ]
        if not volumes:
            return True
        # Offers that contain the volumes can be rescinded, but tasks that use them cannot.
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
        """Hold more copies of shared volumes if the tasks together use more than were offered."""
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
        """Decline offers of a framework."""
        for offer in offers:
            self.members[offer.framework].void_offers([offer])
            self._release_offer(offer, offer.amount, refuse_ms)
        self.record.declines += len(offers)

    def end(self, task: Task) -> None:
        """End a task; it is ignored if its agent is not back after a failover."""
        self.members[task.framework].void_tasks([task])
        if task.agent in self.ledger.agents:
            self.ledger.release(task.framework, (task.role, task.agent), task.amount, used=True)
            self.outbox.release((task.framework, task.role, task.agent, task.amount), used=True)
            self._note_use()

    def exclude(self, places: Iterable[tuple[int, int, int]], *, excluded: bool) -> None:
        """Exclude frameworks in roles from agents, or readmit them (offer constraints)."""
        places = list(places)
        if not places:
            return
        for framework, role, agent in places:
            pairs = self.ledger.excluded[framework]
            pairs.add((role, agent)) if excluded else pairs.discard((role, agent))
        self.outbox.add(exclusions(places, excluded=excluded))

    # Failover: the new master knows quotas and weights, and learns everything else step by step.
    # Agents report their tasks. Until a framework resubscribes, the master may know its
    # description from an agent, or only that it holds resources.

    def fail_over(
        self, agents_ms: Mapping[int, int], frameworks_ms: Sequence[tuple[Framework, int]]
    ) -> None:
        """Elect another master.

        agents_ms: delay until each agent reregisters; agents not named never do.
        frameworks_ms (Framework, int): the same for frameworks; every one must be named.
        """
        # Offers end with their master; tasks keep running.
        for member in self.members.values():
            member.void_offers(list(member.offers))
        agents = dict(self.ledger.agents)
        self.ledger.forget()
        self._begin_recovery(len(agents))
        self.session.open()
        # Agents and frameworks return one by one; tasks of agents that never return are lost.
        for agent, row in agents.items():
            if agent in agents_ms:
                self.event_heap.after(agents_ms[agent], partial(self._return_agent, agent, row))
            else:
                self._never_returns(agent)
        for framework, delay_ms in frameworks_ms:
            self.event_heap.after(delay_ms, partial(self.return_framework, framework))

    def _begin_recovery(self, agents: int) -> None:
        """Hold offers back until enough agents are known, if there are quotas."""
        expected = int(agents * self.recovery.agent_factor)
        if self.ledger.quotas and expected:
            timeout_ms = self.recovery.timeout_ms
            recovery = (expected, self.event_heap.now_ms + timeout_ms)
            self.ledger.recovery = recovery
            self.event_heap.after(timeout_ms, partial(self._give_up, recovery))

    def _give_up(self, recovery: tuple[int, int]) -> None:
        # Do nothing if that recovery has ended, or another failover has started a new one.
        if self.ledger.recovery is recovery:
            self._end_recovery()

    def _never_returns(self, agent: int) -> None:
        """Lose an agent that never reregisters, with its tasks."""
        self._agent_handles.give_back(agent)
        for member in self.members.values():
            tasks = member.tasks_on(agent)
            member.void_tasks(tasks)
            if tasks:
                member.framework.lost(tasks)

    def _return_agent(self, agent: int, row: AgentRow) -> None:
        """Reregister an agent, which reports its tasks."""
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
        # Agents report the FrameworkInfo of some frameworks only: here, of those with even handles.
        for member in unknown:
            if member.handle % 2 == 0:
                self._introduce(member, active=False)
        self._note_use()

    def return_framework(self, framework: Framework) -> None:
        """Resubscribe a framework; an agent may have reported it before."""
        if framework not in self._handle:
            return
        if self.knows(framework):
            self.reconnect(framework)
        else:
            self._introduce(self.member(framework), active=True)

    # Operators' actions.

    def set_quota(self, role: str, quota: Quota) -> None:
        """Set or remove a role's quota; then rescind all offers."""
        self.ledger.quotas.pop(role, None)
        if quota:
            self.ledger.quotas[role] = quota
        self.outbox.add(SetQuota(role, quota.guarantees, quota.limits))
        self.rescind(self.ledger.agents)

    def set_weights(self, weights: Mapping[str, float]) -> None:
        """Change weights of roles; then rescind all offers."""
        self.weights.update(weights)
        self.outbox.add(SetWeights(dict(weights)))
        self.rescind(self.ledger.agents)

    def set_whitelist(self, hostnames: Iterable[str] | None) -> None:
        """Restrict offers to agents of these hosts; None: no restriction."""
        self.ledger.whitelist = None if hostnames is None else frozenset(hostnames)
        self.outbox.add(SetWhitelist(self.ledger.whitelist))

    def maintain(self, agent: int, window_ms: tuple[int, int] | None) -> None:
        """Schedule maintenance of an agent (beginning, duration), or cancel it."""
        self.rescind([agent])
        self.ledger.agents[agent].unavailable_ms = window_ms
        start_ms, duration_ms = window_ms or (-1, 0)
        self.outbox.add(SetUnavailability(agent, start_ms, duration_ms))
        self._cycles.trigger(agent)

    def operate(self, agent: int, conversion: Conversion) -> bool:
        """Convert free resources of an agent; False if there are not enough.

        The agent's offers are rescinded with a short filter, so that the same framework does not
        get them again at once.
        """
        consumed, converted = self.row(conversion.consumed), self.row(conversion.converted)
        # Offered resources must be free before they can be converted.
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
