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

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from allocator.core import (
    ActivateFramework,
    AddFramework,
    Hold,
    InverseOffer,
    RemoveFramework,
    Request,
    Revive,
    SetQuota,
    SetUnavailability,
    SetWeights,
    SetWhitelist,
    Suppress,
    UpdateAllocation,
    UpdateFramework,
)
from allocator.lab.frameworks.base import (
    REFUSE_DEFAULT_MS,
    Conversion,
    Framework,
    Identity,
    Quantities,
)
from allocator.lab.master.agents import AgentCalls
from allocator.lab.master.cycles import RegisteredFramework
from allocator.lab.master.ledger_rows import AgentRow, FrameworkRow, Quota, reaches
from allocator.lab.master.offers import OfferCalls
from allocator.lab.master.session import Row, framework_info


class EmulatedMaster(AgentCalls, OfferCalls):
    """A Mesos master with its agents and frameworks; for its parameters see `Base`."""

    def open(self) -> None:
        """Begin the session, and the cycles."""
        self.session.open()
        self._cycles.begin()

    def close(self) -> None:
        """End the session."""
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
        """Send the sidecar what is pending."""
        if len(self.outbox):
            self.session.send(self.event_heap.now_ms)

    def settle(self) -> None:
        """Tell the sidecar everything, and wait until it is applied."""
        self.session.settle(self.event_heap.now_ms)

    # Frameworks that subscribe, drop out, fail over and leave.

    def subscribe(self, framework: Framework) -> int:
        """A framework registers."""
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
            handle, named = self._handle[framework], self._named(framework, roles)
            self.ledger.suppress(handle, named)
            self.outbox.add(Suppress(handle, named))

    def revive(self, framework: Framework, roles: Sequence[str] = ()) -> None:
        """Make offers to a framework again in some of its roles."""
        if self.knows(framework):
            handle, named = self._handle[framework], self._named(framework, roles)
            self.ledger.revive(handle, named)
            self.outbox.add(Revive(handle, named))
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

    def _named(self, framework: Framework, roles: Sequence[str]) -> tuple[int, ...]:
        """Handles of the roles; none named means all of the framework's."""
        own = self.ledger.frameworks[self._handle[framework]].roles
        return tuple(self.roles.handle[path] for path in roles) or tuple(sorted(own))

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
            tasks = [task for task in member.tasks if task.agent == agent]
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
            tasks = [task for task in member.tasks if task.agent == agent]
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
