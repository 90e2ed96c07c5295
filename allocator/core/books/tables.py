"""Agents, frameworks and clients by row."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from allocator.core.bounds import CAPACITY_MAX
from allocator.core.demand.own_words import OwnWords
from allocator.core.events import TOO_MANY, AgentInfo, Aside, FrameworkInfo, SetAside, bounded
from allocator.core.numba.array_structures import FreeRows, grow
from allocator.core.resources import format_amount
from allocator.core.snapshot import Bools, Floats, Ints

REVOCABLE, SHARED, REFINED = 1, 2, 4
"""What a framework can be capable of taking, beside what is plain."""


class AgentTable:
    """Agents by handle; row 0 is none.

    `info`: None where the row is not bound.
    `bound`, `active`, `whitelisted` (A,).
    `drained` (A,): by an operator.
    `capacity` (A, K), in thousandths.
    `unavailable_from_ms`, `unavailable_for_ms` (A,): maintenance; a start of -1 where there is
        none.
    `changed_ms` (A,): when it came, or was activated or deactivated last.
    `aside`: what of their words is set aside, of those of which something is.
    `version`: grows whenever a capacity changes.
    """

    def __init__(self) -> None:
        """Begin without agents."""
        self.info: list[AgentInfo | None] = [None]
        self.bound: Bools = np.zeros(1, np.bool_)
        self.active: Bools = np.zeros(1, np.bool_)
        self.whitelisted: Bools = np.zeros(1, np.bool_)
        self.drained: Bools = np.zeros(1, np.bool_)
        self.capacity: Ints = np.zeros((1, 0), np.int64)
        self.unavailable_from_ms: Ints = np.zeros(1, np.int64)
        self.unavailable_for_ms: Ints = np.zeros(1, np.int64)
        self.changed_ms: Ints = np.zeros(1, np.int64)
        self.aside: dict[int, Aside] = {}
        self.version = 0
        self.reserve(1)

    def reserve(self, agents: int, kinds: int = 0) -> None:
        """Make room for so many rows and kinds."""
        self.bound = grow(self.bound, agents)
        self.active = grow(self.active, agents)
        self.whitelisted = grow(self.whitelisted, agents)
        self.drained = grow(self.drained, agents)
        self.capacity = grow(self.capacity, agents, kinds)
        self.unavailable_from_ms = grow(self.unavailable_from_ms, agents)
        self.unavailable_for_ms = grow(self.unavailable_for_ms, agents)
        self.changed_ms = grow(self.changed_ms, agents)
        self.info.extend([None] * (len(self.bound) - len(self.info)))

    @property
    def ready(self) -> Bools:
        """Which agents may be offered, (A,)."""
        return self.bound & self.active & self.whitelisted & ~self.drained

    def is_bound(self, agent: int) -> bool:
        """Whether the handle names an agent."""
        return 0 < agent < len(self.bound) and bool(self.bound[agent])

    def bind(self, agent: Ints, info: Sequence[AgentInfo], *, active: Bools) -> None:
        """Put agents (N,) into their rows, with no capacity yet."""
        for row, its_info in zip(agent.tolist(), info, strict=True):
            self.set_info(row, its_info)
        self.bound[agent] = True
        self.active[agent] = active
        self.unavailable_from_ms[agent] = -1
        self.unavailable_for_ms[agent] = 0

    def set_info(self, agent: int, info: AgentInfo) -> None:
        """Replace what is known of an agent."""
        self.info[agent] = info
        self.aside.pop(agent, None)
        if info.set_aside:
            self.aside[agent] = bounded(info.set_aside)

    def note_too_large(self, agent: int) -> None:
        """Note that an agent has more than is counted."""
        most = format_amount(CAPACITY_MAX)
        row = SetAside("resources", TOO_MANY, f"has more of one than is counted; {most} of it are")
        self.aside[agent] = bounded([row, *self.aside.get(agent, ())])

    def set_capacity(self, agent: int | Ints, capacity: Ints) -> None:
        """Replace an agent's capacity (K,), or that of several, (N, K)."""
        self.capacity[agent] = 0
        self.capacity[agent, : capacity.shape[-1]] = capacity
        self.version += 1

    def unbind(self, agent: int) -> None:
        """Clear the row."""
        self.info[agent] = None
        self.aside.pop(agent, None)
        self.bound[agent] = False
        self.active[agent] = False
        self.whitelisted[agent] = False
        self.drained[agent] = False
        self.capacity[agent] = 0
        self.version += 1

    def __len__(self) -> int:
        return int(self.bound.sum())


class FrameworkTable:
    """Frameworks by handle; row 0 is none.

    `info`: None where the framework is not known, though it may hold something.
    `bound`, `active` (F,).
    `changed_ms` (F,): when it subscribed, or was activated or deactivated last.
    `served` (F,): the turn in which it was served last, in whichever role, or after which it came;
        see `turns`.
    `clients`: client rows of each framework.
    `request` (dict of int to amounts by name): what frameworks asked for by REQUEST.
    `words`: what their information says of what they need.
    `unserved`: roles of frameworks in which they are not served: there are too many.
    `aside`, `request_aside`: what of their words is set aside, of those of which something is; of
        the REQUEST alone.
    """

    LATER: ClassVar[dict[str, str]] = {"served": "bound"}

    def __init__(self) -> None:
        """Begin without frameworks."""
        self.info: list[FrameworkInfo | None] = [None]
        self.bound: Bools = np.zeros(1, np.bool_)
        self.active: Bools = np.zeros(1, np.bool_)
        self.changed_ms: Ints = np.zeros(1, np.int64)
        self.served: Ints = np.zeros(1, np.int64)
        self.clients: list[set[int]] = [set()]
        self.request: dict[int, Mapping[str, int]] = {}
        self.words: dict[int, OwnWords] = {}
        self.unserved: dict[int, frozenset[int]] = {}
        self.aside: dict[int, Aside] = {}
        self.request_aside: dict[int, Aside] = {}
        self.reserve(1)

    def reserve(self, frameworks: int) -> None:
        """Make room for so many rows."""
        if frameworks <= len(self.bound):
            return
        self.bound = grow(self.bound, frameworks)
        self.active = grow(self.active, frameworks)
        self.changed_ms = grow(self.changed_ms, frameworks)
        self.served = grow(self.served, frameworks)
        more = len(self.bound) - len(self.info)
        self.info.extend([None] * more)
        self.clients.extend(set() for _ in range(more))

    def forget(self, framework: int) -> None:
        """Clear the row; what clients it has stays."""
        self.info[framework] = None
        self.bound[framework] = False
        self.active[framework] = False
        for of_framework in (
            self.request,
            self.words,
            self.unserved,
            self.aside,
            self.request_aside,
        ):
            of_framework.pop(framework, None)

    def is_bound(self, framework: int) -> bool:
        """Whether the handle names a framework that was added."""
        return 0 < framework < len(self.bound) and bool(self.bound[framework])

    def __len__(self) -> int:
        return int(self.bound.sum())


class ClientTable:
    """Clients: one framework in one role each; row 0 is none.

    `framework`, `role` (C,): 0 where the row is free.
    `subscribed` (C,): False where the framework left the role, but still holds something in it.
    `suppressed` (C,).
    `takes` (C,): what the framework is capable of: `REVOCABLE`, `SHARED`, `REFINED`, added up.
    `served` (C,): the turn in which it was served last, see `turns`; 0: it never was.
    `waited` (C,): full cycles since its last offer in which some agent could have served it, quotas
        aside, and it was offered nothing; 0 for who wants no offers.
    `offered_ms` (C,): when it was decided last to offer it something; 0: never.
    `changed_ms` (C,): when it subscribed to the role, or was suppressed or revived last.
    `declines` (C,): offers in a row that it gave back whole.
    `accepts` (C,): times that it used something of an offer.
    `demand`, `learned`, `prior` (C, R), in thousandths: what one task needs: as it counts now; as
        acceptances and ended tasks tell; and as others of its sort told before it came, as long as
        it agrees.
    `by_prior`, `guessed` (C,): whether its demand is its prior; or that or what is learnt: nobody
        stated it.
    `mixed` (C,): it needs less where it runs already than elsewhere, so no demand can be learnt.
    `hungry`, `probes` (C,): of a client of which the demand is guessed: full cycles in a row in
        which it was offered nothing and had not declined, and times that it was offered all that is
        free because of that.
    `weight` (C,): beside that of its role; 0 where the row is free.
    `minimum` (dict of int to amounts by name): clients that have a minimum of their own: any one of
        these; none: whatever is not empty.
    `unfit`: resources that clients ask for and nobody has, of those who do.
    `demand_source`: ``request``, ``label``, ``operator``, ``learned``, ``prior``, or empty where
        the demand is unknown.
    `version`: grows whenever a client comes, goes, or changes its state.
    """

    def __init__(self) -> None:
        """Begin without clients."""
        self.framework: Ints = np.zeros(1, np.int64)
        self.role: Ints = np.zeros(1, np.int64)
        self.subscribed: Bools = np.zeros(1, np.bool_)
        self.suppressed: Bools = np.zeros(1, np.bool_)
        self.takes: Ints = np.zeros(1, np.int64)
        self.served: Ints = np.zeros(1, np.int64)
        self.waited: Ints = np.zeros(1, np.int64)
        self.offered_ms: Ints = np.zeros(1, np.int64)
        self.changed_ms: Ints = np.zeros(1, np.int64)
        self.declines: Ints = np.zeros(1, np.int64)
        self.accepts: Ints = np.zeros(1, np.int64)
        self.demand: Ints = np.zeros((1, 0), np.int64)
        self.learned: Ints = np.zeros((1, 0), np.int64)
        self.prior: Ints = np.zeros((1, 0), np.int64)
        self.by_prior: Bools = np.zeros(1, np.bool_)
        self.guessed: Bools = np.zeros(1, np.bool_)
        self.mixed: Bools = np.zeros(1, np.bool_)
        self.hungry: Ints = np.zeros(1, np.int64)
        self.probes: Ints = np.zeros(1, np.int64)
        self.weight: Floats = np.zeros(1)
        self.demand_source: list[str] = [""]
        self.minimum: dict[int, tuple[Mapping[str, int], ...]] = {}
        self.unfit: dict[int, frozenset[str]] = {}
        self.version = 0
        self._row: dict[tuple[int, int], int] = {}
        self._free = FreeRows(first=1)
        self.reserve(1)

    def reserve(self, clients: int, columns: int = 0) -> None:
        """Make room for so many rows, and columns of demands."""
        if clients <= len(self.framework) and columns <= self.demand.shape[1]:
            return  # Called for each client; all columns are equally long.
        self.framework = grow(self.framework, clients)
        self.role = grow(self.role, clients)
        self.subscribed = grow(self.subscribed, clients)
        self.suppressed = grow(self.suppressed, clients)
        self.takes = grow(self.takes, clients)
        self.served = grow(self.served, clients)
        self.waited = grow(self.waited, clients)
        self.offered_ms = grow(self.offered_ms, clients)
        self.changed_ms = grow(self.changed_ms, clients)
        self.declines = grow(self.declines, clients)
        self.accepts = grow(self.accepts, clients)
        self.demand = grow(self.demand, clients, columns)
        self.learned = grow(self.learned, clients, columns)
        self.prior = grow(self.prior, clients, columns)
        self.by_prior = grow(self.by_prior, clients)
        self.guessed = grow(self.guessed, clients)
        self.mixed = grow(self.mixed, clients)
        self.hungry = grow(self.hungry, clients)
        self.probes = grow(self.probes, clients)
        self.weight = grow(self.weight, clients)
        self.demand_source.extend([""] * (len(self.framework) - len(self.demand_source)))

    def row(self, framework: int, role: int) -> int:
        """Row of a client; 0 where there is none."""
        return self._row.get((framework, role), 0)

    def rows(self, framework: Ints, role: Ints) -> Ints:
        """Rows of clients (N,); 0 where there is none."""
        row = self._row
        pairs = zip(framework.tolist(), role.tolist(), strict=True)
        return np.array([row.get(pair, 0) for pair in pairs], np.int64)

    def open(self, framework: int, role: int) -> int:
        """Take a row for a new client."""
        row = self._free.take()
        self.reserve(row + 1)
        self._row[framework, role] = row
        self.framework[row] = framework
        self.role[row] = role
        self.weight[row] = 1.0
        self.version += 1
        return row

    def close(self, row: int) -> None:
        """Give a client's row back."""
        del self._row[int(self.framework[row]), int(self.role[row])]
        for column in (
            self.framework,
            self.role,
            self.subscribed,
            self.suppressed,
            self.takes,
            self.served,
            self.waited,
            self.offered_ms,
            self.changed_ms,
            self.declines,
            self.accepts,
            self.demand,
            self.learned,
            self.prior,
            self.by_prior,
            self.guessed,
            self.mixed,
            self.hungry,
            self.probes,
            self.weight,
        ):
            column[row] = 0
        self.demand_source[row] = ""
        self.minimum.pop(row, None)
        self.unfit.pop(row, None)
        self._free.give(row)
        self.version += 1

    def __len__(self) -> int:
        return len(self._row)
