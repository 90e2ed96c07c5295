"""The order in which roles, and the frameworks of each, are served.

Written over and over again from the holdings, so that nothing can be out of date.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from tests.differential.resources import Quantities, is_below

if TYPE_CHECKING:
    from tests.differential.model import Client, Model

VIRTUAL = "."

Key = tuple[Fraction, int, str | int]


class Sorter:
    """Reads the order off the model's books as they are at this moment."""

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
        return self._key(below, weight, node)

    def _key(self, below: "list[Client]", weight: Fraction, name: str | int) -> Key:
        served = sum(self.model.served[client] for client in below)
        held = self.held(set(below))
        shares = [
            Fraction(held.get(name, 0), total)
            for name, total in self.total.items()
            if total and name not in self.model.fairness_excluded
        ]
        return max(shares, default=Fraction(0)) / weight, served, name

    def held(self, below: "set[Client]") -> Quantities:
        """What these clients hold together; of a shared resource one copy each, on an agent."""
        result: Quantities = {}
        for (framework, role, agent), bag in self.model.held.items():
            if (framework, role) not in below:
                continue
            for resource, amount in bag.items():
                if resource.scalar:
                    once = self.model.agents[agent].total[resource] if resource.shared else amount
                    result[resource.name] = result.get(resource.name, 0) + once
        return result
