"""The order in which roles, and the frameworks of each, are served.

Computed from the holdings each time, so that no state can be stale.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from tests.differential.resources import Quantities, is_below

if TYPE_CHECKING:
    from tests.differential.model import Client, Model

VIRTUAL = "."

Turn = tuple[int, int, int]
"""Sort key among equal shares: clients served in this cycle come last, in the order of service."""

Key = tuple[Fraction, Turn, str | int]


class Sorter:
    """Computes the order from the current books of the model."""

    def __init__(self, model: "Model") -> None:
        self.model = model
        self.total: Quantities = {}
        for agent in model.agents.values():
            for resource, amount in agent.total.items():
                if resource.scalar:
                    self.total[resource.name] = self.total.get(resource.name, 0) + amount

    def roles(self) -> list[str]:
        """All roles with frameworks, in order: the leaves of the tree, from left to right."""
        return list(self._leaves(""))

    def frameworks(self, role: str) -> list[int]:
        """The frameworks that may be served in a role, in order."""
        model = self.model
        able = [client for client in model.live_clients() if client[1] == role]
        able.sort(key=lambda client: self._key([client], Fraction(1), model.tie_name(*client)))
        return [framework for framework, _ in able]

    def _leaves(self, above: str) -> Iterator[str]:
        tracked = {role for _, role in self.model.tracked_clients()}
        prefix = above + "/" if above else ""
        inside = {role for role in tracked if role.startswith(prefix)} if prefix else tracked
        if not inside:
            yield above
            return
        own = prefix + VIRTUAL
        nodes = {prefix + role.removeprefix(prefix).split("/")[0] for role in inside}
        if above in tracked:
            nodes.add(own)
        for node in sorted(nodes, key=self._key_of_node):
            if node == own:
                yield above
            else:
                yield from self._leaves(node)

    def _key_of_node(self, node: str) -> Key:
        weight = self.model.weights.get(node, Fraction(1))
        if node.endswith("/" + VIRTUAL):
            role = node.removesuffix("/" + VIRTUAL)
            below = [client for client in self.model.tracked_clients() if client[1] == role]
        else:
            below = [
                client
                for client in self.model.tracked_clients()
                if client[1] == node or is_below(client[1], node)
            ]
        return self._key(below, weight, node, node)

    def _key(self, below: "list[Client]", weight: Fraction, name: str | int, node: str = "") -> Key:
        held = self.held(set(below))
        shares = [
            Fraction(held.get(name, 0), total)
            for name, total in self.total.items()
            if total and name not in self.model.fairness_excluded
        ]
        return max(shares, default=Fraction(0)) / weight, self._turn(below, node), name

    def _turn(self, below: "list[Client]", node: str) -> Turn:
        """Sort key of a node: when its longest waiting framework had a turn, or itself, if later.

        The node is a role, a role's own frameworks, or a single client.
        """
        model = self.model
        for place, client in reversed(list(enumerate(model.served_now))):
            if client in below:
                return 1, place, 0
        if node.endswith("/" + VIRTUAL):
            own = self._last(lambda client: client[1] == node.removesuffix("/" + VIRTUAL))
        elif node:
            own = self._last(lambda client: client[1] == node or is_below(client[1], node))
        else:
            own = model.served[below[0]]
        live = set(model.live_clients())
        waiting = [
            self._of_framework(client[0]) + self._behind(client, live)
            for client in below
            if client in live
        ]
        return 0, max(own, min(waiting, default=own)), own

    def _behind(self, client: "Client", live: "set[Client]") -> int:
        """Number of turns by which a client's role follows its framework's longest waiting role."""
        frameworks = {framework for framework, _ in live}
        own = [each for each in live if each[0] == client[0]]
        if len(own) == 1 or len(live) == len(frameworks):
            return 0
        return min(sorted(own, key=self._waits_since).index(client), len(frameworks))

    def _waits_since(self, client: "Client") -> tuple[int, int, str]:
        """Sort key: last turn of the top-level role, last turn of the client, name."""
        top = client[1].split("/")[0]
        at_top = self._last(lambda each: each[1] == top or is_below(each[1], top))
        return at_top, self.model.served[client], client[1]

    def _of_framework(self, framework: int) -> int:
        served = self._last(lambda client: client[0] == framework)
        return max(self.model.came[framework], served)

    def _last(self, is_meant: "Callable[[Client], bool]") -> int:
        """The last turn of any client that satisfies the predicate."""
        for number, clients in reversed(list(enumerate(self.model.turns, start=1))):
            if any(map(is_meant, clients)):
                return number
        return 0

    def held(self, below: "set[Client]") -> Quantities:
        """Sum of these clients' holdings; a shared resource counts once per agent."""
        result: Quantities = {}
        for (framework, role, agent), bag in self.model.held.items():
            if (framework, role) not in below:
                continue
            for resource, amount in bag.items():
                if resource.scalar:
                    once = self.model.agents[agent].total[resource] if resource.shared else amount
                    result[resource.name] = result.get(resource.name, 0) + once
        return result
