"""Whoever can be served is served, within a bounded number of cycles."""

from collections import Counter
from collections.abc import Mapping

from allocator.lab.hostile.tenants import Tenant
from allocator.lab.master.emulated import EmulatedMaster
from allocator.lab.master.gates import Decision, QuotaBook, judge
from allocator.lab.master.ledger_rows import Amount
from allocator.lab.master.resources import Resource
from allocator.lab.torture.faults.base import Scene
from allocator.lab.torture.rig import PATIENCE_CYCLES

CYCLES_MAX = 6 * PATIENCE_CYCLES
"""Cycles over all agents that leave something which a client could have, and give it nothing."""

Client = tuple[int, int]


class Liveness:
    """Looks behind each cycle over all agents at who got nothing of what is still free."""

    name = "who can be served is served"

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._waited: Counter[Client] = Counter()
        self._served = scene.link.served

    def look(self) -> None:
        """Look once; nothing is counted where the sidecar did not decide this cycle."""
        link, findings = self._scene.link, self._scene.rig.findings
        before, self._served = self._served, link.served
        if not link.up:
            self._waited.clear()
            return
        if link.served == before:
            return
        master = self._scene.master
        quotas = QuotaBook(master.ledger)
        waiting = {client for client in _clients(master) if self._could_have(client, quotas)}
        self._waited = Counter({client: self._waited[client] + 1 for client in waiting})
        longest = max(self._waited.values(), default=0)
        findings.counts["longest_wait_cycles"] = max(
            findings.counts["longest_wait_cycles"], longest
        )
        wrong = [
            f"{self._who(client)} got nothing in {cycles} cycles, though something it could"
            f" have was free after each of them (at {master.event_heap.now_ms} ms)"
            for client, cycles in self._waited.items()
            if cycles == CYCLES_MAX
        ]
        findings.check(self.name, wrong)

    def _who(self, client: Client) -> str:
        framework, role = client
        identity = self._scene.master.members[framework].framework.identity
        return f"{identity.name} in role {self._scene.master.ledger.path[role]}"

    def _could_have(self, client: Client, quotas: QuotaBook) -> bool:
        """Whether some agent still has one task for it, or whatever it may have."""
        master = self._scene.master
        framework, role = client
        demand = master.members[framework].framework.identity.demand
        kinds = master.ledger.kinds
        need = kinds.by_kind(_plain(master, demand))
        for agent in master.ledger.agents:
            free = kinds.by_kind(master.ledger.available(agent))
            wish = _row(need, len(free)) if demand else free
            if not any(wish):
                continue
            decision = Decision(framework, role, agent, tuple(range(len(free))), wish)
            following = master.session.sequence + 1
            now_ms = master.event_heap.now_ms
            verdict = judge(master.ledger, decision, following, now_ms, quotas)
            given = kinds.by_kind(verdict.amount) if any(verdict.amount) else ()
            enough = all(a >= b for a, b in zip(_row(given, len(wish)), wish, strict=True))
            if given and (enough or not demand):
                return True
        return False


def _row(amount: Amount, width: int) -> Amount:
    return tuple(amount[:width]) + (0,) * (width - len(amount))


def _plain(master: EmulatedMaster, demand: Mapping[str, int]) -> Amount:
    """A demand of what is nobody's in particular, by resource."""
    return tuple(
        demand.get(each.name, 0) if each == Resource(each.name, scalar=each.scalar) else 0
        for each in master.ledger.table.resources
    )


def _clients(master: EmulatedMaster) -> list[Client]:
    """Everybody who has nothing on offer, may be offered something, and has no rule of its own.

    Nothing is owed to hostile tenants. A learnt demand is the sidecar's alone, so who states none
    counts where nothing is learnt yet: that is for the master to leave out, and the bound is wide
    enough for it.
    """
    ledger = master.ledger
    if ledger.holds_back:
        return []
    return [
        (handle, role)
        for handle, row in ledger.frameworks.items()
        if row.active
        and handle in master.members
        and not isinstance(master.members[handle].framework, Tenant)
        for role in sorted(row.roles - row.suppressed)
        if not any(offer.role == role for offer in master.members[handle].offers)
    ]
