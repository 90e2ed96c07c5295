"""Frameworks that subscribe, drop out, fail over and leave."""

from collections.abc import Sequence

from allocator.core import (
    ActivateFramework,
    AddFramework,
    InverseOffer,
    RemoveFramework,
    Request,
    Revive,
    Suppress,
    UpdateFramework,
)
from allocator.lab.frameworks.base import Framework, Identity, Quantities
from allocator.lab.master.ledger_rows import FrameworkRow
from allocator.lab.master.offers import OfferCalls
from allocator.lab.master.registered_framework import RegisteredFramework
from allocator.lab.master.snapshot import framework_info


class FrameworkCalls(OfferCalls):
    """What the lives of frameworks are made of."""

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
