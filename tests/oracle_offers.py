"""What one client would be offered on one agent, slowly: the twin of `filling.offers`.

Straight from `docs/explanation/filling.md`, with dictionaries.
"""

from typing import NamedTuple

from allocator.core.snapshot import UNBOUNDED, Snapshot, Tier
from allocator.policies.filling.scene.scoring import GUARANTEED, LEFT_OVER


class Offer(NamedTuple):
    """An offer: plain amounts by column, special amounts by special kind."""

    plain: tuple[int, ...]
    special: dict[int, int]


class Supply:
    """What is free, and what quotas leave of it."""

    def __init__(self, snapshot: Snapshot) -> None:
        s = self.snapshot = snapshot
        self.resources = len(s.total)
        self.free = s.free.tolist()
        x = s.specials
        self.special = [
            {int(x.row[e]): int(x.free[e]) for e in range(x.start[a], x.start[a + 1])}
            for a in range(len(self.free))
        ]
        self.left = s.bounds.left.tolist()
        self.owed = s.bounds.owed.tolist()
        self.available = s.bounds.available.tolist()
        self.required = s.bounds.required.tolist()
        self.bounded = bool(self.left) or any(self.required)

    def chain(self, client: int) -> list[int]:
        """The bounds of roles that a client is under."""
        result, bound = [], int(self.snapshot.bounds.of_client[client])
        while bound >= 0:
            result.append(bound)
            bound = int(self.snapshot.bounds.above[bound])
        return result

    def bounds_of(self, client: int) -> list[int]:
        """All bounds that a client is under: those of its roles, and its framework's own."""
        own = int(self.snapshot.bounds.of_framework[client])
        return [*self.chain(client), *([own] if own >= 0 else [])]

    def ceiling(self, client: int, stage: int) -> list[int]:
        """The most that may be given of what counts against quota."""
        if not self.bounded:
            return [UNBOUNDED] * self.resources
        result = []
        for r in range(self.resources):
            surplus = UNBOUNDED
            if any(self.required):
                surplus = max(self.available[r] - self.required[r], 0)
            owed = max((self.owed[b][r] for b in self.chain(client)), default=0)
            most = surplus + owed if stage == GUARANTEED else surplus
            left = [self.left[b][r] for b in self.bounds_of(client)]
            result.append(max(0, min([most, *left])))
        return result

    def may_have(self, special: int, client: int) -> bool:
        return bool(int(self.snapshot.specials.reach[special, client // 64]) >> client % 64 & 1)

    def offer(self, client: int, agent: int, demand: list[int] | None, stage: int) -> Offer | None:
        """What the client would be offered; None where that is nothing."""
        basket = Basket(self, client, agent, self.ceiling(client, stage))
        if demand is None or stage == LEFT_OVER:
            basket.take_everything(leftover=stage == LEFT_OVER)
            if not self._reaches(client, basket.by_column()):
                return None
        elif not all(basket.take_task(r, needed) for r, needed in enumerate(demand) if needed):
            return None
        if stage == GUARANTEED and not any(
            basket.counted[r] and self.owed[b][r]
            for b in self.chain(client)
            for r in range(self.resources)
        ):
            return None
        return Offer(tuple(basket.plain), {s: n for s, n in basket.special.items() if n})

    def _reaches(self, client: int, amount: list[int]) -> bool:
        first, end = self.snapshot.minimum_rows[client].tolist()
        rows = self.snapshot.minimum[first:end].tolist()
        enough = not rows or any(
            all(a >= b for a, b in zip(amount, row, strict=True)) for row in rows
        )
        return enough and any(amount)

    def is_refused(self, client: int, agent: int, offer: Offer) -> bool:
        """Whether a filter covers the offer, kind by kind."""
        filters, kinds = self.snapshot.filters, self.snapshot.specials.kind.tolist()
        offered = {kinds[s]: amount for s, amount in offer.special.items()}
        for r, amount in enumerate(offer.plain):
            if amount:
                offered[int(filters.plain_kind[r])] = amount
        row = int(filters.head[agent])
        while row >= 0:
            if filters.client[row] == client and all(
                filters.amount[row, kind] >= amount for kind, amount in offered.items()
            ):
                return True
            row = int(filters.next[row])
        return False

    def take(self, client: int, agent: int, offer: Offer, stage: int) -> list[int]:
        """Give an offer away; returns its amounts by column."""
        counted, whole = list(offer.plain), list(offer.plain)
        for r, amount in enumerate(offer.plain):
            self.free[agent][r] -= amount
        for special, amount in offer.special.items():
            column = int(self.snapshot.specials.column[special])
            self.special[agent][special] -= amount
            whole[column] += amount
            counted[column] += amount * int(self.snapshot.specials.bounded[special])
        for r, amount in enumerate(counted):
            owed = max((self.owed[b][r] for b in self.chain(client)), default=0)
            self.available[r] -= amount
            if stage == GUARANTEED:
                self.required[r] -= min(owed, amount)
            for bound in self.bounds_of(client):
                self.left[bound][r] -= amount
                self.owed[bound][r] = max(self.owed[bound][r] - amount, 0)
        return whole

    def is_empty(self, agent: int) -> bool:
        return not any(self.free[agent]) and not any(self.special[agent].values())


class Basket:
    """An offer while it is put together."""

    def __init__(self, supply: Supply, client: int, agent: int, ceiling: list[int]) -> None:
        self.supply, self.client, self.agent, self.ceiling = supply, client, agent, ceiling
        self.plain = [0] * supply.resources
        self.special: dict[int, int] = {}
        self.counted = [0] * supply.resources

    def by_column(self) -> list[int]:
        result = list(self.plain)
        for special, amount in self.special.items():
            result[int(self.supply.snapshot.specials.column[special])] += amount
        return result

    def take_plain(self, r: int, wanted: int) -> int:
        free = self.supply.free[self.agent][r]
        amount = min(free, wanted, self.ceiling[r] - self.counted[r])
        self.plain[r] += amount
        self.counted[r] += amount
        return amount

    def take_special(self, special: int, wanted: int) -> int:
        kinds = self.supply.snapshot.specials
        free, r = self.supply.special[self.agent][special], int(kinds.column[special])
        amount = free if kinds.whole[special] else min(free, wanted)
        if kinds.bounded[special]:
            room = self.ceiling[r] - self.counted[r]
            if amount > room:
                amount = 0 if kinds.whole[special] else room
            self.counted[r] += amount
        self.special[special] = amount
        return amount

    def reachable(self) -> list[int]:
        supply = self.supply
        free = supply.special[self.agent]
        return [s for s in free if free[s] and supply.may_have(s, self.client)]

    def take_everything(self, *, leftover: bool) -> None:
        if not leftover:
            for r in range(len(self.plain)):
                self.take_plain(r, UNBOUNDED)
        for special in self.reachable():
            if not (leftover and self.supply.snapshot.specials.bounded[special]):
                self.take_special(special, UNBOUNDED)

    def take_tier(self, r: int, tier: int, wanted: int) -> int:
        kinds = self.supply.snapshot.specials
        for special in self.reachable():
            if wanted > 0 and kinds.column[special] == r and kinds.tier[special] == tier:
                wanted -= self.take_special(special, wanted)
        return wanted

    def take_task(self, r: int, needed: int) -> bool:
        """One column of a task: reserved, plain, other open kinds; or all of it revocable."""
        rest = self.take_tier(r, Tier.RESERVED, needed)
        if rest > 0:
            rest -= self.take_plain(r, rest)
        if rest > 0:
            rest = self.take_tier(r, Tier.OPEN, rest)
        if rest > 0:
            columns = self.supply.snapshot.specials.column
            self.special = {s: n for s, n in self.special.items() if columns[s] != r}
            self.plain[r] = self.counted[r] = 0
            rest = self.take_tier(r, Tier.REVOCABLE, needed)
        return rest <= 0
