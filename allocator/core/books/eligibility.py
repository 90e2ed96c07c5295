"""Which clients must not be served on which agents: a bit for each (agent, client).

A pair is barred for four reasons: an exclusion reported by the host, a rule on attributes (from
operators or the framework's labels), a missing capability, or tasks that would not end before the
agent is drained (`Late`). Exclusions are stored bit by bit. Rules and capabilities depend on the
client's *rule* and the agent's properties, see `rule_index`.

The bits are recomputed when they are read, and only where something has changed since the last
read, so that of a thousand changes of a constraint only the last version is evaluated.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from allocator.core.books.agent_rules import AgentTraits, Rule
from allocator.core.books.rule_index import Named, RuleClass, RuleIndex, clients_in, to_words
from allocator.core.numba import bit_tables, shared_bits
from allocator.core.numba.array_structures import grow
from allocator.core.numba.bit_tables import BITS, in_blocks
from allocator.core.numba.shared_bits import BitRows, SharedBits
from allocator.core.snapshot import BitTable, BitWords, Bools, Ints

_FEW = 64
"""Up to this many agents are evaluated one by one instead of by attribute."""
_AGENTS_A_CLIENT = 16
"""Evaluating this many agents costs about as much as evaluating one client on all agents."""

_STRETCH = 1 << 14
"""Maximum number of agents that are evaluated at a time."""


@dataclass(slots=True, eq=False)
class _Painted:
    """The computed bits, and the parts of them that must be recomputed.

    `excluded`, `excluding`: as in `Eligibility`.
    `some`: the set of clients that may be excluded somewhere.
    `agents`: agents that have changed. `rules`: clients whose rule may have changed.
    `clients`: the set of clients to recompute even if their rule has not changed.
    """

    index: RuleIndex
    excluded: BitRows
    excluding: Bools
    some: int = 0
    agents: set[int] = field(default_factory=set)
    rules: set[int] = field(default_factory=set)
    clients: int = 0


class Late(NamedTuple):
    """Clients whose tasks may not end before agents are drained, see `cycle/before_drains`.

    `agent` (N,): handles, ascending.
    `group` (N,): index of the set of clients that are barred there.
    `clients`: the sets, as integers with a bit for each client.
    """

    agent: Ints = np.zeros(0, np.int64)
    group: Ints = np.zeros(0, np.int64)
    clients: tuple[int, ...] = ()

    def same(self, other: "Late") -> bool:
        """Whether both bar the same pairs, in the same groups."""
        mine, its = (self.agent, self.group), (other.agent, other.group)
        return self.clients == other.clients and all(map(np.array_equal, mine, its))

    def on(self, agents: Ints) -> tuple[Ints, Ints]:
        """Return the indices of the agents (n,) where clients are barred, and their groups."""
        at = np.flatnonzero(np.isin(agents, self.agent))
        return at, self.group[np.searchsorted(self.agent, agents[at])]


NONE_LATE = Late()


class Eligibility:
    """Which clients may be served on which agents."""

    DERIVED: ClassVar[tuple[str, ...]] = ("_late", "_painted")

    def __init__(self) -> None:
        self._told = BitRows()
        self._traits: list[AgentTraits | None] = []
        self._marked: set[int] = set()  # clients that the host may have excluded
        self._rule: dict[int, Rule] = {}
        self._late = NONE_LATE
        self._painted: _Painted | None = None

    def reserve(self, *, agents: int = 0, clients: int = 0) -> None:
        self._told.reserve(agents, bit_tables.words_for(clients))
        self._traits.extend([None] * (self._agents - len(self._traits)))

    @property
    def _agents(self) -> int:
        """The number of agents that there is room for."""
        return self._told.table.row.shape[1]

    # Inputs.

    def set_agents(self, agents: Ints, traits: Sequence[AgentTraits]) -> None:
        rows = agents.tolist()
        for agent, its in zip(rows, traits, strict=True):
            self._traits[agent] = its
        if self._painted is not None:
            self._painted.agents.update(rows)

    def drop_agent(self, agent: int) -> None:
        self._traits[agent] = None
        self._told.clear_agent(agent)
        if self._painted is not None:
            self._painted.agents.add(agent)

    def set_rule(self, client: int, rule: Rule | None) -> None:
        """Set a client's rule; None: the client is gone, and so are its exclusions."""
        self.set_rules({client: rule})

    def set_rules(self, rules: Mapping[int, Rule | None]) -> None:
        for client, rule in rules.items():
            if rule is None:
                self._rule.pop(client, None)
            else:
                self._rule[client] = rule
        if self._painted is not None:
            self._painted.rules.update(rules)
        gone = [client for client, rule in rules.items() if rule is None]
        self.forget(gone)
        if gone and any(self._late.clients):
            self._forget_late(set_of(gone))

    def bar(self, late: Late) -> None:
        """Replace the set of clients whose tasks may not end in time."""
        before, painted = self._late, self._painted
        if late is before or late.same(before):
            return
        self._late = late
        if painted is not None:
            painted.agents.update(before.agent.tolist(), late.agent.tolist())

    def _forget_late(self, gone: int) -> None:
        left = tuple(clients & ~gone for clients in self._late.clients)
        if left != self._late.clients:
            self.bar(self._late._replace(clients=left))

    def forget(self, clients: Iterable[int]) -> None:
        """Remove all exclusions that the host reported for some clients."""
        gone = self._marked.intersection(clients)
        if not gone:
            return
        self._marked -= gone
        mask = set_of(gone)
        row = self._in_blocks([mask])
        for block in np.flatnonzero(row.any(axis=(1, 2))).tolist():
            self._told.clear(block, row[block, 0])
        if self._painted is not None:
            self._painted.clients |= mask

    def tell(self, client: Ints, agent: Ints, excluded: Bools) -> None:
        """Record exclusions (N,) that begin or end, in order; N may be large.

        One change of offer constraints reports each role of the framework on each agent.
        """
        # Of equal pairs, the last row counts.
        pairs = client * self._agents + agent
        last = len(pairs) - 1 - np.unique(pairs[::-1], return_index=True)[1]
        client, agent, excluded = client[last], agent[last], excluded[last]
        begins, ends = np.flatnonzero(excluded), np.flatnonzero(~excluded)
        self._told.set_pairs(agent[begins], client[begins])
        self._told.clear_pairs(agent[ends], client[ends])
        begun = np.unique(client[begins]).tolist()
        self._marked.update(begun)
        painted = self._painted
        if painted is None:
            return
        self._fit(painted)
        painted.excluded.set_pairs(agent[begins], client[begins])
        painted.excluding[agent[begins]] = True
        painted.some |= set_of(begun)
        # The host's exclusion ends, but the client's rule may still bar the pair.
        agents, clients = (np.unique(each[ends]).tolist() for each in (agent, client))
        if len(agents) <= _AGENTS_A_CLIENT * len(clients):
            painted.agents.update(agents)
        else:
            painted.clients |= set_of(clients)

    # The relation that follows from the inputs.

    @property
    def excluded(self) -> SharedBits:
        """A bit for each pair: the client is barred there. Its `row` changes with the books."""
        return self._now().excluded.table

    @property
    def excluding(self) -> Bools:
        """Whether any client may be barred from each agent, (A,). True may be out of date."""
        return self._now().excluding

    def barred(self, client: Ints, agent: Ints) -> Bools:
        return shared_bits.shared_pairs(self.excluded, agent, client)

    @property
    def traits(self) -> Sequence[AgentTraits | None]:
        return self._traits

    def rule_of(self, client: int) -> Rule:
        return self._rule.get(client, Rule())

    def excluded_of(self, client: int) -> Bools:
        return shared_bits.shared_of_client(self.excluded, client)

    def late_of(self, client: int) -> Bools:
        """Return the agents (A,) from which a client is barred because its tasks end too late."""
        late = np.zeros(self._agents, np.bool_)
        barred = [bool(clients >> client & 1) for clients in self._late.clients]
        late[self._late.agent] = np.array(barred, np.bool_)[self._late.group]
        return late

    def told_of(self, client: int) -> Bools:
        return shared_bits.shared_of_client(self._told.table, client)

    def _now(self) -> _Painted:
        """Recompute what has changed, and return all bits."""
        painted = self._painted
        if painted is None:
            painted = _Painted(RuleIndex(self._traits), BitRows(), np.zeros(0, np.bool_))
            self._painted = painted
            painted.rules.update(self._rule)
            painted.clients = set_of(self._marked)
            painted.agents.update(self._late.agent.tolist())
        self._fit(painted)
        if painted.agents or painted.rules or painted.clients:
            self._paint(painted)
        return painted

    def _fit(self, painted: _Painted) -> None:
        """Enlarge the computed bits to the size of the host's."""
        wanted = shared_bits.shared_shape(self._told.table)
        if shared_bits.shared_shape(painted.excluded.table) != wanted:
            agents = self._agents
            painted.excluded.reserve(agents, shared_bits.shared_width(self._told.table))
            painted.excluding = grow(painted.excluding, agents)[:agents]
            painted.index.columns.reserve(agents)

    def _paint(self, painted: _Painted) -> None:
        index, agents = painted.index, np.array(sorted(painted.agents), np.int64)
        if len(agents):
            index.put(agents, [self._traits[agent] for agent in agents.tolist()])
        changed, entries = index.set_rules(
            {client: self._rule.get(client) for client in painted.rules}
        )
        # Skip clients that were and are barred nowhere, such as most new ones.
        wanted = painted.some | painted.clients
        for entry in entries:
            if index.may_bar(entry):
                wanted |= entry.clients
        changed = (changed | painted.clients) & wanted
        if changed:
            found = {index.class_of(client) for client in clients_in(changed)}
            self._paint_clients(painted, changed, [each for each in found if each is not None])
        if len(agents):
            self._paint_agents(painted, agents)
        painted.agents, painted.rules, painted.clients = set(), set(), 0

    def _paint_clients(self, painted: _Painted, changed: int, entries: list[RuleClass]) -> None:
        """Recompute some clients on all agents, from the host's exclusions and their rules."""
        mask, found = self._in_blocks([changed]), 0
        named: dict[str, Named] = {}
        for block, some in _runs(mask[:, 0]):
            theirs = mask[block, 0, some]
            for agents in _stretches(np.arange(self._agents)):
                bad = self._bad(painted.index, block, some, agents, entries, named) & theirs
                excluded = painted.excluded.words(block, agents)
                excluded[:, some] = excluded[:, some] & ~theirs | bad
                painted.excluded.put(block, agents, excluded)
                painted.excluding[agents] |= bad.any(axis=1)
                found |= self._union(bad, block, some)
        painted.some = painted.some & ~changed | found

    def _paint_agents(self, painted: _Painted, rows: Ints) -> None:
        index, named = painted.index, dict[str, Named]()
        every = slice(0, self._told.table.bits.shape[1])
        if len(rows) <= _FEW:
            its = (self._traits[agent] for agent in rows.tolist())
            barred = self._in_blocks([0 if each is None else index.barred(each) for each in its])
            barred = barred.copy()
            for block, bad in enumerate(barred):
                self._add_others(bad, block, every, rows)
                painted.some |= self._union(bad, block, every)
            blocks, at = np.divmod(np.arange(len(barred) * len(rows)), len(rows))
            painted.excluded.put(blocks, rows[at], barred.reshape(len(at), -1))
        else:
            for block in range(len(self._told.table.row)):
                for agents in _stretches(rows):
                    bad = self._bad(index, block, every, agents, None, named)
                    painted.some |= self._union(bad, block, every)
                    painted.excluded.put(block, agents, bad)
        painted.excluding[rows] = painted.excluded.table.row[:, rows].any(axis=0)

    def _bad(
        self,
        index: RuleIndex,
        block: int,
        some: slice,
        agents: Ints,
        entries: list[RuleClass] | None,
        named: dict[str, Named],
    ) -> BitWords:
        """Compute some words of a block, (n, k), for agents (n,); see `RuleIndex.barred_on`."""
        words = range(*(block * bit_tables.WORDS + end for end in (some.start, some.stop)))
        bad = index.barred_on(agents, words, entries, named)
        self._add_others(bad, block, some, agents)
        return bad

    def _add_others(self, bad: BitWords, block: int, some: slice, agents: Ints) -> None:
        """Add what the host and drains exclude to some words of a block, (n, k)."""
        if self._marked:
            bad |= self._told.words(block, agents)[:, some]
        if len(self._late.agent):
            at, group = self._late.on(agents)
            bad[at] |= self._in_blocks(self._late.clients)[block, group, some]

    def _in_blocks(self, sets: Sequence[int]) -> BitTable:
        """Convert sets of clients, see `set_of`, to rows of a table, (B, n, V)."""
        return in_blocks(to_words(sets, shared_bits.shared_width(self._told.table)))

    def _union(self, bad: BitWords, block: int, some: slice) -> int:
        """Return the set of clients in any row of some words of a block, (n, k)."""
        return _union(bad) << BITS * (block * bit_tables.WORDS + some.start)

    def check(self) -> None:
        excluded, excluding = self.excluded, self.excluding
        assert not shared_bits.shared_some_on(excluded)[~excluding].any()
        assert self._painted is not None
        self._painted.index.check()
        some = _union(shared_bits.shared_words_on(excluded, np.arange(len(self._traits))))
        assert not some & ~self._painted.some
        groups = zip(self._late.agent.tolist(), self._late.group.tolist(), strict=True)
        late_on = {agent: self._late.clients[group] for agent, group in groups}
        assert not (some & ~set_of(self._rule)), "bits of a client that does not exist"
        for client, rule in self._rule.items():
            told, barred = self.told_of(client), self.excluded_of(client)
            assert client in self._marked or not told.any()
            for agent, traits in enumerate(self._traits):
                expected = bool(told[agent])
                expected = expected or bool(late_on.get(agent, 0) >> client & 1)
                if traits is not None:
                    expected = expected or not rule.allows(traits)
                assert barred[agent] == expected


def set_of(clients: Iterable[int]) -> int:
    """Return a set of clients as an integer with a bit for each client."""
    rows = np.fromiter(clients, np.int64)
    if not len(rows):
        return 0
    flags = np.zeros(int(rows.max()) + 1, np.bool_)
    flags[rows] = True
    return as_set(flags)


def as_set(flags: Bools) -> int:
    """Return the clients whose flag (C,) is set, as `set_of` does."""
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def _union(rows: BitWords) -> int:
    """Return the set of clients in any of the rows of words (n, k)."""
    return int.from_bytes(np.bitwise_or.reduce(rows, axis=0).tobytes(), "little")


def _stretches(agents: Ints) -> Iterable[Ints]:
    return (agents[begin : begin + _STRETCH] for begin in range(0, len(agents), _STRETCH))


def _runs(mask: BitWords) -> Iterable[tuple[int, slice]]:
    """Yield the runs of words with a bit set, (B, V), as a block and the range in it."""
    for block, words in enumerate(mask):
        some = np.flatnonzero(words)
        for run in np.split(some, np.flatnonzero(np.diff(some) > 1) + 1):
            if len(run):
                yield block, slice(int(run[0]), int(run[-1]) + 1)
