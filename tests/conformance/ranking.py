"""Shows in which order roles are served.

A client of Mesos's sorter is a role with one framework here. Its allocation is in use on an agent
that is not offered. To see the order, a second, small agent is offered to one framework after the
other, and each declines it.
"""

from tests.world.amounts import Amounts, Text, resources
from tests.world.nouns import Framework, Offer
from tests.world.world import World

PROBE = "cpus:1;mem:1"
HOUR_S = 3600


class Ranking:
    """A cluster with one large agent in use, and a small one to offer."""

    def __init__(self, has: Text = "cpus:100;mem:100") -> None:
        self.world = World(minimum=())
        self.probe = self.world.agent(PROBE)
        self.stock = self.world.agent(_without_probe(has))
        self.world.deactivate_agent(self.stock)
        self.clients: dict[str, Framework] = {}
        self._away: set[str] = set()

    def resize(self, has: Text) -> None:
        """Change the capacity of the cluster."""
        self.world.update_agent(self.stock, _without_probe(has))

    def add(self, role: str, what: Text = "", weight: float = 1.0) -> None:
        """Add a role's framework, which uses something."""
        if weight != 1.0:
            self.world.weights(**{role: weight})
        self.clients[role] = self.world.framework(role)
        if what:
            self.allocate(role, what)

    def allocate(self, role: str, what: Text) -> None:
        """Let a framework use more."""
        self.world.hold(self.clients[role], role, self.stock, what)

    def free(self, role: str, what: Text) -> None:
        """Let a framework use less."""
        self.world.finish(Offer(self.clients[role], role, self.stock, resources(what)))

    def remove(self, role: str) -> None:
        """Remove a role's framework."""
        self.world.remove_framework(self.clients.pop(role))

    def deactivate(self, *roles: str) -> None:
        """Suppress offers to frameworks."""
        for role in roles:
            self.world.suppress(self.clients[role])
            self._away.add(role)

    def activate(self, *roles: str) -> None:
        """Revive offers to frameworks."""
        for role in roles:
            self.world.revive(self.clients[role])
            self._away.discard(role)

    def serve(self, role: str, times: int) -> None:
        """Offer to one role only, to increase the number of its turns."""
        others = [each for each in self.clients if each != role and each not in self._away]
        self.deactivate(*others)
        for _ in range(times):
            (offer,) = self.world.cycle()
            assert offer.role == role
            self.world.decline(offer)
        self.activate(*others)

    def order(self) -> list[str]:
        """Offer the small agent until no framework accepts offers."""
        order = []
        while offers := self.world.cycle():
            (offer,) = offers
            order.append(offer.role)
            self.world.decline(offer, refuse_s=HOUR_S)
        for role in order:
            self.world.revive(self.clients[role])
        return order


def _without_probe(has: Text) -> Amounts:
    return resources(has) - resources(PROBE)
