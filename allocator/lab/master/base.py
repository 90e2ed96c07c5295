"""What all parts of the emulated master work on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from allocator.core import Event, Options
from allocator.lab.event_heap import EventHeap
from allocator.lab.frameworks.base import Framework, Offer
from allocator.lab.links.base import Link, Opening
from allocator.lab.master.cycles import Cycles, RegisteredFramework, Timing
from allocator.lab.master.ledger import Ledger
from allocator.lab.master.ledger_rows import Amount, Refusal
from allocator.lab.master.resources import Resource
from allocator.lab.master.session import Handles, Outbox, Roles, Session, snapshot
from allocator.lab.reports.run_record import Record


@dataclass(frozen=True, slots=True)
class Recovery:
    """How a master that was elected holds back while quotas are to be kept.

    agent_factor: until so many of the agents are back that the master before had.
    timeout_ms: but no longer than this.
    """

    agent_factor: float = 0.8
    timeout_ms: int = 600_000


class Base:
    """The state of an emulated master, and what several of its calls do.

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

    def amount(self, quantities: Mapping[str, int]) -> Amount:
        """Thousandths by name as a row of the plain resources."""
        return self.ledger.amount(quantities)

    def row(self, amounts: Mapping[Resource, int]) -> Amount:
        """Thousandths by resource as a row."""
        return self.ledger.row(amounts)

    def resources_of(self, amount: Amount) -> dict[Resource, int]:
        """A row by resource, without zeros."""
        return {self.ledger.table[row]: value for row, value in enumerate(amount) if value}

    def path(self, role: int) -> str:
        """Path of a role."""
        return self.roles.path[role]

    def attributes(self, agent: int) -> Mapping[str, str]:
        """The attributes of an agent, as each of its offers shows them."""
        return self.ledger.agents[agent].attributes

    def inspect(self, look: Callable[[Sequence[Offer]], None]) -> None:
        """Have somebody look at the offers of each batch of decisions once they are booked."""
        self._cycles.look = look

    def excuse(self, framework: Framework, *, excused: bool = True) -> None:
        """Do not hold it against the sidecar what it decides for this framework."""
        handle = self._handle[framework]
        (self._cycles.excused.add if excused else self._cycles.excused.discard)(handle)

    def member(self, framework: Framework) -> RegisteredFramework:
        """Row of a subscribed framework."""
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
            self.ledger.refuse(offer.framework, place, Refusal(amount, expires_ms))

    def _note_use(self) -> None:
        self.record.note_use(self.event_heap.now_ms, self.ledger.used, self.ledger.total)
