"""What operators may do."""

from allocator.core import MILLI
from allocator.lab.frameworks.base import Conversion, Quantities
from allocator.lab.master.ledger_rows import Quota
from allocator.lab.master.resources import Resource, reserved, unreserved
from allocator.lab.random_cluster.context import Context
from allocator.lab.random_cluster.population import ROLES, TOP_ROLES

QUOTA_NAMES = ("cpus", "mem", "disk")
NESTED_ROLES = tuple(role for role in ROLES if "/" in role)


class OperatorStrikes:
    """Quotas, weights, the whitelist, maintenance, reservations."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._master = context.stage.master

    def set_quota(self) -> None:
        """A top-level role gets a quota, or another one: perhaps below what it has."""
        guarantees: Quantities = {}
        limits: Quantities = {}
        total = self._master.ledger.by_name(tuple(self._master.ledger.total))
        for name in QUOTA_NAMES:
            if self._context.chance.random() < 0.5:
                guarantees[name] = int(total[name] * self._context.chance.random() * 0.3)
            if self._context.chance.random() < 0.6:
                room = int(total[name] * self._context.chance.random() * 0.6)
                limits[name] = guarantees.get(name, 0) + room
        self._master.set_quota(self._context.one_of(TOP_ROLES), Quota(guarantees, limits))

    def limit_nested_role(self) -> None:
        """A role below another one gets a limit of its own, or loses it."""
        limits = {"cpus": self._context.some_ms(20) * MILLI}
        quota = Quota(limits=limits) if self._context.chance.random() < 0.6 else Quota()
        self._master.set_quota(self._context.one_of(NESTED_ROLES), quota)

    def remove_quota(self) -> None:
        """A quota is removed."""
        self._master.set_quota(self._context.one_of(TOP_ROLES), Quota())

    def set_weights(self) -> None:
        """Weights change, of roles that are there and of others."""
        weight = float(self._context.chance.integers(1, 9)) / 2
        self._master.set_weights({self._context.one_of((*ROLES, "nobody")): weight})

    def restrict(self) -> None:
        """Only some hosts may be offered for a while."""
        hosts = [row.hostname for row in self._master.ledger.agents.values()]
        some = [host for host in hosts if self._context.chance.random() < 0.7]
        self._master.set_whitelist(some)
        self._context.later(lambda: self._master.set_whitelist(None))

    def maintain(self) -> None:
        """An agent is to be maintained, or the maintenance is called off."""
        agent = self._context.agent()
        if agent:
            begin_ms = self._master.event_heap.now_ms + self._context.some_ms(60_000)
            planned = self._master.ledger.agents[agent].unavailable_ms is None
            self._master.maintain(agent, (begin_ms, 60_000) if planned else None)

    def operate(self) -> None:
        """Free resources are reserved, or a reservation of nobody's is taken back."""
        agent = self._context.agent()
        if not agent:
            return
        free = self._master.resources_of(self._master.ledger.available(agent))
        turnable = [each for each in free if not each.revocable and not each.persistence]
        if turnable:
            one = self._context.one_of(turnable)
            converted = {self._turned(one): free[one]}
            self._master.operate(agent, Conversion({one: free[one]}, converted))

    def _turned(self, resource: Resource) -> Resource:
        if resource.reservations and not resource.reservations[-1].static:
            return unreserved(resource)
        below = [role for role in ROLES if role.startswith(resource.role + "/")]
        roles = below if resource.reservations else ROLES
        if not roles:
            return resource
        return reserved(resource, self._context.one_of(roles), principal="ops")
