"""Offers: accepted, with operations or without, declined; tasks that end."""

from collections.abc import Iterable, Sequence

from allocator.core import Hold, UpdateAllocation
from allocator.lab.frameworks.base import Conversion, Offer, Task
from allocator.lab.master.base import Base
from allocator.lab.master.ledger_rows import (
    Amount,
    LedgerError,
    Place,
    add,
    least,
    minus,
    plus,
    reaches,
)
from allocator.lab.master.session import exclusions


class OfferCalls(Base):
    """What frameworks do with offers and tasks."""

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
            place: Place = (offer.role, offer.agent)
            self.ledger.copy(offer.framework, place, more)
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


def _rows(amount: Amount) -> set[int]:
    return {row for row, value in enumerate(amount) if value}


def _positive(amount: Amount) -> Amount:
    return tuple(max(0, value) for value in amount)
