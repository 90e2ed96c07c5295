"""Comparison of both sides' books number by number, and invariants of offers."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import grpc

from allocator.core import MILLI
from allocator.v1 import admin_pb2, admin_pb2_grpc
from laboratory.frameworks.base import Offer
from laboratory.links.sidecar_process import channel
from laboratory.master.emulated import EmulatedMaster
from laboratory.master.ledger import Ledger, OfferFilter
from laboratory.resources import Amount, Resource

# The emulated master's books and a sidecar's.
#
# The master keeps resources, the sidecar kinds, so the master's amounts are summed by kind.

Books = dict[str, object]
"""Facts by name: ``agent 7``, ``held 1 2 7`` (framework, role, agent), ``filters 1 2 7``, ..."""


def of_ledger(ledger: Ledger, now_ms: int) -> Books:
    """Read the facts of a ledger."""
    return dict(_of_ledger(ledger, now_ms))


def of_sidecar(target: str) -> Books:
    """Read a running sidecar's facts about agents and holdings."""
    with channel(target) as to_sidecar:
        pieces = admin_pb2_grpc.AdminServiceStub(to_sidecar).Dump(admin_pb2.DumpRequest())
        try:
            dump = json.loads(b"".join(piece.json for piece in pieces))
        except grpc.RpcError as error:
            raise ConnectionError(f"no dump from {target}: {error}") from None
    return dict(_of_dump(dump))


def differences(ours: Books, theirs: Books, *, offered: bool = True) -> list[str]:
    """List the differences between two books in the facts that both have.

    offered: whether to distinguish offered from used amounts. After a new session a sidecar cannot:
        it counts amounts offered in the previous session as used.
    """
    spoken = {name.partition(" ")[0] for name in theirs} | {"agent", "held", "offered"}
    names = {name for name in ours if name.partition(" ")[0] in spoken} | theirs.keys()
    return [
        f"{name}: {ours.get(name)} here, {theirs.get(name)} there"
        for name in sorted(names)
        if ours.get(name) != theirs.get(name) and (offered or not name.startswith("offered "))
    ]


def _of_ledger(ledger: Ledger, now_ms: int) -> Iterator[tuple[str, object]]:
    """Yield the facts of the master's ledger, by kind, under the names that `Books` describes."""
    by_kind = ledger.kinds.by_kind
    for kind, each in enumerate(ledger.kinds.kinds):
        yield f"kind {kind}", each
    for path, quota in ledger.quotas.items():
        yield f"quota {path}", (dict(quota.guarantees), dict(quota.limits))
    yield "whitelist", ledger.whitelist
    yield "holds_back", ledger.holds_back
    for agent, row in ledger.agents.items():
        capacity, held = short(by_kind(row.capacity)), short(by_kind(row.held))
        yield f"agent {agent}", (row.info.agent_id, row.active, capacity, held)
    for framework, subscriber in ledger.frameworks.items():
        yield f"framework {framework}", (subscriber.framework_id, subscriber.active)
        for role in subscriber.roles:
            yield f"subscription {framework} {role}", role in subscriber.suppressed
    for framework, role, agent, holding in ledger.rows():
        yield f"held {framework} {role} {agent}", short(by_kind(holding.both()))
        if any(holding.offered):
            yield f"offered {framework} {role} {agent}", short(by_kind(holding.offered))
    for framework, places in ledger.filters.items():
        for (role, agent), refusals in places.items():
            live = [f for f in refusals if f.expires_ms >= now_ms]
            if live:
                told = essential(OfferFilter(by_kind(f.amount), f.expires_ms) for f in live)
                yield f"filters {framework} {role} {agent}", told


def _of_dump(dump: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The facts of a sidecar's dump: agents and holdings."""
    kinds = len(dump["kinds"])

    def row(sparse: Mapping[str, int]) -> tuple[int, ...]:
        return short([sparse.get(str(kind), 0) for kind in range(kinds)])

    for agent in dump["agents"]:
        capacity, held = row(agent["capacity"]), row(agent["held"])
        yield f"agent {agent['agent']}", (agent["agent_id"], agent["active"], capacity, held)
    for holding in dump["holdings"]:
        where = f"{holding['framework']} {holding['role']} {holding['agent']}"
        yield f"held {where}", row(holding["held"])
        if holding["offered"]:
            yield f"offered {where}", row(holding["offered"])


def essential(refusals: Iterable[OfferFilter]) -> list[tuple[object, ...]]:
    """Filters without those covered by another one that is larger and lasts as long."""
    told = (OfferFilter(short(f.amount), f.expires_ms) for f in refusals)
    different = {(f.amount, f.expires_ms): f for f in told}.values()
    return sorted(
        (f.amount, f.expires_ms)
        for f in different
        if not any(
            other is not f and other.covers(f.amount) and other.expires_ms >= f.expires_ms
            for other in different
        )
    )


def short(row: Sequence[int]) -> Amount:
    """A row without trailing zeros."""
    width = max((kind + 1 for kind, value in enumerate(row) if value), default=0)
    return tuple(row[:width])


# Invariants of offers. They are checked independently of the gates, whatever made the decision.

SORTS: Mapping[str, Callable[[Resource], bool]] = {
    "reserved": lambda each: len(each.reservations) == 1,
    "refined": lambda each: len(each.reservations) > 1,
    "revocable": lambda each: each.revocable,
    "volume": lambda each: bool(each.persistence),
    "shared": lambda each: each.shared,
    "mount": lambda each: each.source == "mount",
    "path": lambda each: each.source == "path",
    "piece": lambda each: each.source in {"block", "raw"} and each.indivisible,
    "provided": lambda each: bool(each.provider),
    "ports": lambda each: not each.scalar,
}
"""Types of resources that have offer rules of their own."""


class Inspector:
    """Checks the offers of each batch of decisions, and records violations.

    seen: number of offers that contained a resource of each of the `SORTS`.
    """

    def __init__(self, master: EmulatedMaster) -> None:
        self.wrong: list[str] = []
        self.seen: Counter[str] = Counter()
        self._master, self._ledger = master, master.ledger

    def __call__(self, offers: Sequence[Offer]) -> None:
        """Check the offers of one batch; the books include them already."""
        for offer in offers:
            self.wrong += self._barred(offer)
            for each, amount in self._parts(offer):
                self.wrong += self._wrong(offer, each, amount)
                self.seen.update(name for name, belongs in SORTS.items() if belongs(each))
        self.wrong += self._shared_twice(offers)
        self.wrong += self._beyond_limits(offers)

    def _barred(self, offer: Offer) -> Iterator[str]:
        """Yield reasons why the framework must not get offers in this role on this agent."""
        ledger = self._ledger
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
            if agent.info.attributes.get(name) not in values:
                yield f"{what}: it wants {name} of {sorted(values)}"
        if ledger.holds_back:
            yield f"{what}: the master holds all offers back"
        now_ms = self._master.event_heap.now_ms
        for filtered in ledger.filters[offer.framework].get(place, ()):
            if filtered.expires_ms >= now_ms and filtered.covers(offer.amount):
                yield f"{what}: refused until {filtered.expires_ms} ms; now is {now_ms} ms"

    def _parts(self, offer: Offer) -> Iterator[tuple[Resource, int]]:
        for row, amount in enumerate(offer.amount):
            if amount:
                yield self._ledger.table[row], amount

    def _wrong(self, offer: Offer, each: Resource, amount: int) -> Iterator[str]:
        """Yield violations by one resource of an offer."""
        path = self._ledger.path[offer.role] + "/"
        agent = self._ledger.agents[offer.agent]
        row = self._ledger.table.row(each)
        capacity, held = agent.capacity[row], agent.held[row]
        has = self._ledger.frameworks[offer.framework].capabilities
        what = f"{amount} of {each} to role {path[:-1]}"
        if each.reservations and not path.startswith(each.role + "/"):
            yield f"{what}: it is reserved to others"
        if each.revocable and "REVOCABLE_RESOURCES" not in has:
            yield f"{what}: the framework cannot use revocable resources"
        if each.shared and "SHARED_RESOURCES" not in has:
            yield f"{what}: the framework cannot use shared resources"
        if len(each.reservations) > 1 and "RESERVATION_REFINEMENT" not in has:
            yield f"{what}: the framework cannot use refined reservations"
        if (each.indivisible or each.shared) and amount != capacity:
            yield f"{what}: it is indivisible, {capacity} in size"
        if not each.scalar and amount % MILLI:
            yield f"{what}: only whole elements can be offered"
        if not each.shared and held > capacity:
            yield f"{what}: {held} of {capacity} are held"

    def _shared_twice(self, offers: Sequence[Offer]) -> Iterator[str]:
        copies = Counter(
            (offer.agent, each) for offer in offers for each, _ in self._parts(offer) if each.shared
        )
        for (agent, each), count in copies.items():
            if count > 1:
                yield f"{count} copies of {each} on agent {agent} in one cycle"

    def _beyond_limits(self, offers: Sequence[Offer]) -> Iterator[str]:
        """Check the consumption of each limited role whose subtree got more in this batch."""
        for role, quota in self._ledger.quotas.items():
            given = {
                each.name
                for offer in offers
                if self._below(offer.role, role)
                for each, _ in self._parts(offer)
                if each.scalar and not each.reservations and not each.revocable
            }
            for name in given & quota.limits.keys():
                consumed = self._consumed(role, name)
                if consumed > quota.limits[name]:
                    yield f"role {role} has {consumed} of {name}, more than {quota.limits[name]}"

    def _below(self, handle: int, role: str) -> bool:
        return (self._ledger.path[handle] + "/").startswith(role + "/")

    def _consumed(self, role: str, name: str) -> int:
        """Consumption of a role's subtree: its reservations, and its other allocations."""
        total = 0
        for row, each in enumerate(self._ledger.table.resources):
            if each.name != name or not each.scalar:
                continue
            if each.reservations:
                if (each.role + "/").startswith(role + "/"):
                    total += sum(self._ledger.total[row : row + 1])
            elif not each.revocable:
                total += sum(
                    sum(holding.both()[row : row + 1])
                    for _, held_as, _, holding in self._ledger.rows()
                    if self._below(held_as, role)
                )
        return total
