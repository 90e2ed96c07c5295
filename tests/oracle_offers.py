"""The offer to one client on one agent, computed slowly: the oracle for `filling.rules.offers`.

Follows `docs/explanation/filling.md` directly, with dictionaries.
"""

from typing import NamedTuple

from allocator.core.snapshot import UNBOUNDED, Snapshot, Tier
from allocator.policies.filling.scene.scoring import GUARANTEED, LEFT_OVER

TASKS_MAX = 128
"""An offer begins with at most this many tasks."""


class Offer(NamedTuple):
    """An offer: plain amounts by column, special amounts by special kind, and its tasks."""

    plain: tuple[int, ...]
    special: dict[int, int]
    tasks: int = 0


def opening_of(demand: list[int], minimum: list[list[int]]) -> int:
    """The minimum number of tasks that reach a row of a minimum, 0 if too many would be needed."""
    if not any(demand):
        return 0
    for tasks in range(1, TASKS_MAX + 1):
        amount = [tasks * needed for needed in demand]
        if not minimum or any(
            all(a >= b for a, b in zip(amount, row, strict=True)) for row in minimum
        ):
            return tasks
    return 0


class Supply:
    """Free resources, and what quotas leave of them."""

    def __init__(self, snapshot: Snapshot) -> None:
        s = self.snapshot = snapshot
        self.resources = len(s.total)
        self.free = s.free.tolist()
        x = s.specials
        self.special = [
            {int(x.row[e]): int(x.free[e]) for e in range(x.start[a], x.start[a + 1])}
            for a in range(len(self.free))
        ]
        # Holders of shared volumes in this cycle, and clients whose offers in tasks are valid.
        self.taken: dict[tuple[int, int], tuple[int, int]] = {}
        self.standing: set[tuple[int, int]] = set()
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
        """All bounds that apply to a client: those of its roles, and further ones."""
        further = self.snapshot.bounds.further[client].tolist()
        return [*self.chain(client), *(row for row in further if row >= 0)]

    def ceiling(self, client: int, stage: int) -> list[int]:
        """The maximum amount that may be granted of resources that count against quota."""
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
        """The client's offer, or an addition to it; None: nothing."""
        basket = Basket(self, client, agent, self.ceiling(client, stage))
        stands = demand is not None and (client, agent) in self.standing
        tasks = 0
        if demand is None or stage == LEFT_OVER:
            basket.take_everything(leftover=stage == LEFT_OVER)
        elif stands:
            tasks = int(basket.take_task(demand))
        else:
            while tasks < TASKS_MAX and basket.take_task(demand):
                tasks += 1
                if self._reaches(client, basket):
                    break
            if tasks and not self._may_begin(client, agent, basket):
                basket.take_everything(leftover=True)
        if demand is not None and stage != LEFT_OVER and not tasks:
            return None
        if not (any(basket.by_column()) if stands else self._may_begin(client, agent, basket)):
            return None
        if stage == GUARANTEED and not any(
            basket.counted[r] and self.owed[b][r]
            for b in self.chain(client)
            for r in range(self.resources)
        ):
            return None
        return basket.offer(tasks)

    def _may_begin(self, client: int, agent: int, basket: "Basket") -> bool:
        """Whether an offer may start with this: it reaches a minimum, and is not refused."""
        return self._reaches(client, basket) and not self.is_refused(client, agent, basket.offer())

    def _reaches(self, client: int, basket: "Basket") -> bool:
        amount = basket.by_column()
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
                filters.amount[kind, row] >= amount for kind, amount in offered.items()
            ):
                return True
            row = int(filters.next[row])
        return False

    def take(
        self, client: int, agent: int, offer: Offer, stage: int, *, known: bool = False
    ) -> list[int]:
        """Grant an offer; returns its amounts by column."""
        if known:
            self.standing.add((client, agent))
        counted, whole = list(offer.plain), list(offer.plain)
        for r, amount in enumerate(offer.plain):
            self.free[agent][r] -= amount
        for special, amount in offer.special.items():
            column = int(self.snapshot.specials.column[special])
            self.special[agent][special] -= amount
            if self.snapshot.specials.tier[special] == Tier.SHARED:
                self.taken[agent, special] = client, amount
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

    def offer(self, tasks: int = 0) -> Offer:
        return Offer(tuple(self.plain), {s: n for s, n in self.special.items() if n}, tasks)

    def by_column(self) -> list[int]:
        result = list(self.plain)
        for special, amount in self.special.items():
            result[int(self.supply.snapshot.specials.column[special])] += amount
        return result

    def take_plain(self, r: int, wanted: int) -> int:
        free = self.supply.free[self.agent][r] - self.plain[r]
        amount = min(free, wanted, self.ceiling[r] - self.counted[r])
        self.plain[r] += amount
        self.counted[r] += amount
        return amount

    def take_special(self, special: int, wanted: int) -> int:
        kinds = self.supply.snapshot.specials
        free, r = self.left(special), int(kinds.column[special])
        amount = free if kinds.whole[special] else min(free, wanted)
        if kinds.bounded[special]:
            room = self.ceiling[r] - self.counted[r]
            if amount > room:
                amount = 0 if kinds.whole[special] else room
            self.counted[r] += amount
        self.special[special] = self.special.get(special, 0) + amount
        return amount

    def left(self, special: int) -> int:
        return self.supply.special[self.agent][special] - self.special.get(special, 0)

    def reachable(self) -> list[int]:
        supply = self.supply
        kinds = supply.special[self.agent]
        return [s for s in kinds if self.left(s) and supply.may_have(s, self.client)]

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

    def take_task(self, demand: list[int]) -> bool:
        """Add a task, if there is room for it."""
        before = list(self.plain), dict(self.special), list(self.counted)
        for r, needed in enumerate(demand):
            if needed and not self.take_column(r, needed):
                self.plain, self.special, self.counted = before
                return False
        return True

    def take_column(self, r: int, needed: int) -> bool:
        """One column of a task: reserved, plain, other open kinds; or in reverse order.

        A task has revocable amounts only, or none; shared volumes are not used up.
        """
        ways = (
            [Tier.RESERVED, None, Tier.OPEN],
            [Tier.OPEN, None, Tier.RESERVED],
            [Tier.REVOCABLE],
        )
        for tiers in ways:
            before, rest = (self.plain[r], dict(self.special), self.counted[r]), needed
            for tier in tiers:
                if tier is not None:
                    rest = self.take_tier(r, tier, rest)
                elif rest > 0:
                    rest -= self.take_plain(r, rest)
            if rest <= 0:
                return True
            self.plain[r], self.special, self.counted[r] = before
        return needed <= self.shared(r)

    def shared(self, r: int) -> int:
        """Take all shared volumes of a column; returns their sum, with those granted before."""
        kinds, found = self.supply.snapshot.specials, 0
        for special in self.supply.special[self.agent]:
            if kinds.column[special] != r or kinds.tier[special] != Tier.SHARED:
                continue
            owner, amount = self.supply.taken.get((self.agent, special), (-1, 0))
            if owner == self.client:
                found += amount
            elif self.supply.may_have(special, self.client):
                self.take_special(special, self.left(special))
                found += self.special[special]
        return found
