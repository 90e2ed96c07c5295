"""What operators do: quotas, weights, the whitelist, maintenance, operations on free resources."""

from collections.abc import Iterable, Mapping

from allocator.core import SetQuota, SetUnavailability, SetWeights, SetWhitelist, UpdateAllocation
from allocator.lab.frameworks.base import REFUSE_DEFAULT_MS, Conversion
from allocator.lab.master.base import Base
from allocator.lab.master.ledger_rows import Quota, reaches


class OperatorCalls(Base):
    """Calls of operators."""

    def set_quota(self, role: str, quota: Quota) -> None:
        """Give a role a quota, another one, or none; then offers are taken back."""
        self.ledger.quotas.pop(role, None)
        if quota:
            self.ledger.quotas[role] = quota
        self.outbox.add(SetQuota(role, quota.guarantees, quota.limits))
        self.rescind(self.ledger.agents)

    def set_weights(self, weights: Mapping[str, float]) -> None:
        """Give roles other weights; then offers are taken back."""
        self.weights.update(weights)
        self.outbox.add(SetWeights(dict(weights)))
        self.rescind(self.ledger.agents)

    def set_whitelist(self, hostnames: Iterable[str] | None) -> None:
        """Let only agents of these hosts be offered, or all."""
        self.ledger.whitelist = None if hostnames is None else frozenset(hostnames)
        self.outbox.add(SetWhitelist(self.ledger.whitelist))

    def maintain(self, agent: int, window_ms: tuple[int, int] | None) -> None:
        """Plan maintenance of an agent (beginning, duration), or call it off."""
        self.rescind([agent])
        self.ledger.agents[agent].unavailable_ms = window_ms
        start_ms, duration_ms = window_ms or (-1, 0)
        self.outbox.add(SetUnavailability(agent, start_ms, duration_ms))
        self._cycles.trigger(agent)

    def operate(self, agent: int, conversion: Conversion) -> bool:
        """Turn free resources of an agent into others; whether there was enough.

        Offers of the agent are taken back, and what was offered is not offered to the same
        framework again at once.
        """
        consumed, converted = self.row(conversion.consumed), self.row(conversion.converted)
        # What is on offer must be free before it can be turned into something else.
        self.rescind([agent], REFUSE_DEFAULT_MS)
        if not reaches(self.ledger.agents[agent].available(), consumed):
            return False
        self.ledger.convert_free(agent, consumed, converted)
        self.outbox.add(UpdateAllocation(0, 0, agent, *self.outbox.change(consumed, converted)))
        self.record.operations += 1
        self._note_use()
        return True
