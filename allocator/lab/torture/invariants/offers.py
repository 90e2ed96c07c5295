"""No offer to who must not get it: looked at without the help of the gates."""

from collections.abc import Iterator, Sequence

from allocator.lab.frameworks.base import Offer
from allocator.lab.master.emulated import EmulatedMaster
from allocator.lab.random_cluster.offer_checks import Inspector
from allocator.lab.torture.findings import Findings


class OfferRules:
    """Looks at every offer once it is booked."""

    name = "offers only to who may have them"

    def __init__(self, master: EmulatedMaster, findings: Findings) -> None:
        self._master = master
        self._findings = findings
        self._inspector = Inspector(master.ledger)

    def __call__(self, offers: Sequence[Offer]) -> None:
        """Look at the offers of one batch."""
        self._inspector.ledger = self._master.ledger
        self._inspector(offers)
        wrong, self._inspector.wrong = self._inspector.wrong, []
        wrong += [text for offer in offers for text in self._barred(offer)]
        self._findings.counts["offers_looked_at"] += len(offers)
        self._findings.check(self.name, wrong)

    def _barred(self, offer: Offer) -> Iterator[str]:
        """Say why the framework should not be offered anything in the role on the agent."""
        ledger = self._master.ledger
        framework, agent = ledger.frameworks[offer.framework], ledger.agents[offer.agent]
        who = f"framework {offer.framework} in role {ledger.path[offer.role]}"
        what = f"{offer.amount} of agent {offer.agent} to {who}"
        place = (offer.role, offer.agent)
        if not framework.active:
            yield f"{what}: it is not connected"
        if offer.role not in framework.roles:
            yield f"{what}: it did not subscribe to the role"
        if offer.role in framework.suppressed:
            yield f"{what}: it has suppressed offers"
        if not agent.active:
            yield f"{what}: the agent is not active"
        if place in ledger.excluded[offer.framework]:
            yield f"{what}: its constraints exclude the agent"
        for name, values in framework.allowed.items():
            if agent.attributes.get(name) not in values:
                yield f"{what}: it wants {name} of {sorted(values)}"
        if ledger.holds_back:
            yield f"{what}: the master holds all offers back"
        now_ms = self._master.event_heap.now_ms
        for filtered in ledger.filters[offer.framework].get(place, ()):
            if filtered.expires_ms >= now_ms and filtered.covers(offer.amount):
                yield f"{what}: refused until {filtered.expires_ms} ms, and it is {now_ms} ms"
