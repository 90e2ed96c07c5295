"""Agents, frameworks and clients by row."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from allocator.core.books.collecting import Collecting, GangOffers
from allocator.core.bounds import CAPACITY_MAX
from allocator.core.demand.own_words import OwnWords
from allocator.core.events import TOO_MANY, AgentInfo, Aside, FrameworkInfo, SetAside, bounded
from allocator.core.numba.array_structures import FreeRows, pair, read_only
from allocator.core.numba.columns import Table, column, listed
from allocator.core.numba.wide_tables import copied
from allocator.core.resources import format_amount
from allocator.core.snapshot import Bools, Floats, Ints

_FEW_PAIRS = 512
"""Up to this many pairs are looked up one by one, as are handles that no row has."""

REVOCABLE, SHARED, REFINED = 1, 2, 4
"""Resources, besides plain ones, that frameworks may be capable of using."""


class AgentTable(Table):
    """Agents by handle; row 0 is none.

    `aside`: agents' input that was set aside; has only agents with such input.
    `version`: grows whenever a capacity changes.
    """

    bound: Bools = column(np.bool_)
    info: list[AgentInfo | None] = listed(lambda: None)
    """None if the row is not bound."""
    active: Bools = column(np.bool_)
    whitelisted: Bools = column(np.bool_)
    drained: Bools = column(np.bool_)
    """By an operator."""
    capacity: Ints = column(wide=True)
    """(A, K), in thousandths."""
    unavailable_from_ms: Ints = column()
    """When maintenance begins; -1 if there is none."""
    unavailable_for_ms: Ints = column()
    changed_ms: Ints = column()
    """When it came, or was activated or deactivated last."""

    # A restored table has shown nothing yet.
    DERIVED: ClassVar[tuple[str, ...]] = ("_shown",)

    def __init__(self) -> None:
        super().__init__()
        self.aside: dict[int, Aside] = {}
        self.version = 0
        self._shown: Ints | None = None

    @property
    def ready(self) -> Bools:
        """Which agents may be offered, (A,)."""
        return self.bound & self.active & self.whitelisted & ~self.drained

    @property
    def end(self) -> int:
        """The row after that of the last agent."""
        return len(self.bound) - int(np.argmax(self.bound[::-1])) if self.bound.any() else 0

    def is_bound(self, agent: int) -> bool:
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
        """Replace an agent's information."""
        self.info[agent] = info
        self.aside.pop(agent, None)
        if info.set_aside:
            self.aside[agent] = bounded(info.set_aside)

    def note_too_large(self, agent: int) -> None:
        """Record that an agent has more than is counted."""
        most = format_amount(CAPACITY_MAX)
        row = SetAside("resources", TOO_MANY, f"has more of one than is counted; {most} of it are")
        self.aside[agent] = bounded([row, *self.aside.get(agent, ())])

    def set_capacity(self, agent: int | Ints, capacity: Ints) -> None:
        """Replace an agent's capacity (K,), or that of several, (N, K)."""
        self._keep_shown()
        self.capacity[agent] = 0
        self.capacity[agent, : capacity.shape[-1]] = capacity
        self.version += 1

    def show_capacity(self) -> Ints:
        """The current capacity, (A, K): later changes go to another table."""
        self._shown = self.capacity
        return read_only(self.capacity)

    def _keep_shown(self) -> None:
        if self._shown is self.capacity:
            self.capacity = copied(self.capacity)
        self._shown = None

    def unbind(self, agent: int) -> None:
        self._keep_shown()
        self.clear(agent)
        self.aside.pop(agent, None)
        self.version += 1

    def __len__(self) -> int:
        return int(np.count_nonzero(self.bound))


class FrameworkTable(Table):
    """Frameworks by handle; row 0 is none.

    `request` (dict of int to amounts by name): frameworks' REQUEST calls.
    `words`: the needs stated in their information.
    `unserved`: roles in which a framework is not served, because there is no room for more clients.
    `aside`: frameworks' input that was set aside; has only frameworks with such input.
    `request_aside`: the same for REQUEST calls only.
    """

    LATER: ClassVar[dict[str, str]] = {"served": "bound"}

    bound: Bools = column(np.bool_)
    info: list[FrameworkInfo | None] = listed(lambda: None)
    """None if the framework is unknown; it may hold something nevertheless."""
    active: Bools = column(np.bool_)
    changed_ms: Ints = column()
    """When it subscribed, or was activated or deactivated last."""
    served: Ints = column()
    """The turn in which it was served last, in whichever role, or after which it came: `turns`."""
    clients: list[set[int]] = listed(set)
    """Its client rows."""

    def __init__(self) -> None:
        super().__init__()
        self.request: dict[int, Mapping[str, int]] = {}
        self.words: dict[int, OwnWords] = {}
        self.unserved: dict[int, frozenset[int]] = {}
        self.aside: dict[int, Aside] = {}
        self.request_aside: dict[int, Aside] = {}

    def forget(self, framework: int) -> None:
        """Clear the row, except for its clients."""
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
        return int(np.count_nonzero(self.bound))


class ClientTable(Table):
    """Clients: one framework in one role each; row 0 is none.

    `minimum` (dict of int to amounts by name): of clients with a minimum of their own: an offer
        must reach one of these. An empty tuple: any offer that is not empty will do.
    `unfit`: resources that a client asks for and no agent has; only such clients are in it.
    `gangs` (dict of int to int): how many tasks of a client must start together; has only clients
        with a gang.
    `collecting`: what each collecting gang keeps; those that began earlier come first. An entry
        counts only if its client has `waited` since.
    `gang_offers`: what clients made of the gangs that they were offered.
    `too_large` (set of int): clients whose gang, at its turn, would not fit even if nothing were
        held.
    `rests` (dict of str to int): until when no gang of a principal may collect, in milliseconds of
        the master's clock.
    `version`: grows whenever a client comes, goes, or changes its state.
    `minimum_version`: grows whenever a client's own minimum changes.
    """

    # A restored table keeps nothing yet that this would tell from what is new.
    DERIVED: ClassVar[tuple[str, ...]] = ("minimum_version",)

    framework: Ints = column()
    """0 if the row is free."""
    role: Ints = column()
    subscribed: Bools = column(np.bool_)
    """False if the framework left the role, but still holds something in it."""
    suppressed: Bools = column(np.bool_)
    takes: Ints = column()
    """What the framework is capable of: `REVOCABLE`, `SHARED`, `REFINED`, added up."""
    served: Ints = column()
    """The turn in which it was served last, see `turns`; 0: it never was."""
    waited: Ints = column()
    """Full cycles since its last offer in which some agent could have served it, quotas aside, and
    it was offered nothing; 0 for who wants no offers."""
    offered_ms: Ints = column()
    """When it was decided last to offer it something; 0: never."""
    changed_ms: Ints = column()
    """When it subscribed to the role, or was suppressed or revived last."""
    declines: Ints = column()
    """Offers in a row that it gave back whole."""
    accepts: Ints = column()
    """Times that it used something of an offer."""
    demand: Ints = column(wide=True)
    """(C, R), in thousandths: what one task needs, as it counts now."""
    learned: Ints = column(wide=True)
    """The same, as acceptances and ended tasks tell."""
    prior: Ints = column(wide=True)
    """The same, as others of its sort told before it came, as long as it agrees."""
    by_prior: Bools = column(np.bool_)
    """Whether its demand is its prior."""
    guessed: Bools = column(np.bool_)
    """Whether the demand is a prior or learnt, not stated."""
    mixed: Bools = column(np.bool_)
    """It needs less if it runs already than elsewhere, so no demand can be learnt."""
    hungry: Ints = column()
    """Of who has a guessed demand: full cycles in a row in which it was offered nothing and had not
    declined."""
    probes: Ints = column()
    """Times that it was offered all that is free because of that."""
    used: Floats = column(np.float64, wide=True)
    """(C, R), in thousandths: what it held on average, see `usage_memory`; zeros if not kept."""
    used_agents: Floats = column(np.float64)
    """On how many agents it held something, on average."""
    weight: Floats = column(np.float64)
    """Beside that of its role; 0 if the row is free."""
    demand_source: list[str] = listed(str)
    """``request``, ``label``, ``operator``, ``learned``, ``prior``, or empty if the demand is
    unknown."""

    def __init__(self) -> None:
        super().__init__()
        self.minimum: dict[int, tuple[Mapping[str, int], ...]] = {}
        self.unfit: dict[int, frozenset[str]] = {}
        self.gangs: dict[int, int] = {}
        self.collecting: dict[int, Collecting] = {}
        self.gang_offers: dict[int, GangOffers] = {}
        self.too_large: set[int] = set()
        self.rests: dict[str, int] = {}
        self.version = 0
        self.minimum_version = 0
        self._row: dict[tuple[int, int], int] = {}
        self._free = FreeRows(first=1)

    def row(self, framework: int, role: int) -> int:
        """Row of a client; 0: none."""
        return self._row.get((framework, role), 0)

    def rows(self, framework: Ints, role: Ints) -> Ints:
        """Rows of clients (N,); 0 if there is none."""
        if len(framework) <= _FEW_PAIRS or ((framework | role) >> np.int64(31)).any():
            return self._look_up(framework, role)
        # Many rows are usually of few clients.
        keys, which = np.unique(pair(framework, role), return_inverse=True)
        return self._look_up(keys >> np.int64(32), keys & np.int64(2**32 - 1))[which]

    def _look_up(self, framework: Ints, role: Ints) -> Ints:
        row = self._row
        pairs = zip(framework.tolist(), role.tolist(), strict=True)
        return np.array([row.get(each, 0) for each in pairs], np.int64)

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
        del self._row[int(self.framework[row]), int(self.role[row])]
        self.clear(row)
        if self.minimum.pop(row, None) is not None:
            self.minimum_version += 1
        self.unfit.pop(row, None)
        self.forget_gang(row)
        self._free.give(row)
        self.version += 1

    def forget_gang(self, row: int) -> None:
        """A client has no gang any more."""
        for of_gang in (self.gangs, self.collecting, self.gang_offers):
            of_gang.pop(row, None)
        self.too_large.discard(row)

    def __len__(self) -> int:
        return len(self._row)
