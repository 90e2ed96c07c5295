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
from allocator.core.books.rule_index import BITS, Named, RuleClass, RuleIndex, clients_in, to_words
from allocator.core.numba.array_structures import bits, clear_bits, grow, set_bits
from allocator.core.numba.wide_tables import untouched, write
from allocator.core.snapshot import BitWords, Bools, Ints

_FEW = 64
"""Up to this many agents are evaluated one by one instead of by attribute."""
_BLOCK = 16
"""Maximum number of words of each agent that are recomputed at a time."""
_AGENTS_A_CLIENT = 16
"""Evaluating this many agents costs about as much as evaluating one client on all agents."""


@dataclass(slots=True, eq=False)
class _Painted:
    """The computed bits, and the parts of them that must be recomputed.

    `excluded`, `excluding`: as in `Eligibility`.
    `some`: the set of clients that may be excluded somewhere.
    `agents`: agents that have changed. `rules`: clients whose rule may have changed.
    `clients`: the set of clients to recompute even if their rule has not changed.
    """

    index: RuleIndex
    excluded: BitWords
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


def _column(words: BitWords, client: int) -> Bools:
    word = words[:, client // BITS] >> np.uint64(client % BITS)
    return (word & np.uint64(1)).astype(np.bool_)


class Eligibility:
    """Which clients may be served on which agents."""

    DERIVED: ClassVar[tuple[str, ...]] = ("_late", "_painted")

    def __init__(self) -> None:
        self._told: BitWords = np.zeros((0, 0), np.uint64)
        self._traits: list[AgentTraits | None] = []
        self._marked: set[int] = set()  # clients that the host may have excluded
        self._rule: dict[int, Rule] = {}
        self._late = NONE_LATE
        self._painted: _Painted | None = None

    def reserve(self, *, agents: int = 0, clients: int = 0) -> None:
        words = max(self._told.shape[1], -(-clients // BITS), 1)
        self._told = grow(self._told, agents, words)
        self._traits.extend([None] * (len(self._told) - len(self._traits)))

    # Inputs.

    def set_agents(self, agents: Ints, traits: Sequence[AgentTraits]) -> None:
        rows = agents.tolist()
        for agent, its in zip(rows, traits, strict=True):
            self._traits[agent] = its
        if self._painted is not None:
            self._painted.agents.update(rows)

    def drop_agent(self, agent: int) -> None:
        self._traits[agent] = None
        self._told[agent, np.flatnonzero(self._told[agent])] = 0
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
        words = np.flatnonzero(row := to_words([mask], self._told.shape[1])[0])
        for word in words.tolist():
            its = np.flatnonzero(self._told[:, word] & row[word])
            self._told[its, word] &= ~row[word]
        if self._painted is not None:
            self._painted.clients |= mask

    def tell(self, client: Ints, agent: Ints, excluded: Bools) -> None:
        """Record exclusions (N,) that begin or end, in order; N may be large.

        One change of offer constraints reports each role of the framework on each agent.
        """
        # Of equal pairs, the last row counts.
        pairs = client * len(self._told) + agent
        last = len(pairs) - 1 - np.unique(pairs[::-1], return_index=True)[1]
        client, agent, excluded = client[last], agent[last], excluded[last]
        begins, ends = np.flatnonzero(excluded), np.flatnonzero(~excluded)
        set_bits(self._told, agent[begins], client[begins])
        clear_bits(self._told, agent[ends], client[ends])
        begun = np.unique(client[begins]).tolist()
        self._marked.update(begun)
        painted = self._painted
        if painted is None:
            return
        self._fit(painted)
        set_bits(painted.excluded, agent[begins], client[begins])
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
    def excluded(self) -> BitWords:
        """Bits (A, W): bit ``c % 64`` of word ``c // 64`` means that client c is barred there."""
        return self._now().excluded

    @property
    def excluding(self) -> Bools:
        """Whether any client may be barred from each agent, (A,). True may be out of date."""
        return self._now().excluding

    def barred(self, client: Ints, agent: Ints) -> Bools:
        return bits(self.excluded, agent, client)

    @property
    def traits(self) -> Sequence[AgentTraits | None]:
        return self._traits

    def rule_of(self, client: int) -> Rule:
        return self._rule.get(client, Rule())

    def excluded_of(self, client: int) -> Bools:
        return _column(self.excluded, client)

    def late_of(self, client: int) -> Bools:
        """Return the agents (A,) from which a client is barred because its tasks end too late."""
        late = np.zeros(len(self._told), np.bool_)
        barred = [bool(clients >> client & 1) for clients in self._late.clients]
        late[self._late.agent] = np.array(barred, np.bool_)[self._late.group]
        return late

    def told_of(self, client: int) -> Bools:
        return _column(self._told, client)

    def _now(self) -> _Painted:
        """Recompute what has changed, and return all bits."""
        painted = self._painted
        if painted is None:
            painted = self._painted = _Painted(
                RuleIndex(self._traits),
                untouched(self._told.shape, np.uint64),
                np.zeros(0, np.bool_),
            )
            painted.rules.update(self._rule)
            painted.clients = set_of(self._marked)
            painted.agents.update(self._late.agent.tolist())
        if len(painted.excluding) < len(self._told) or painted.excluded.shape != self._told.shape:
            self._fit(painted)
        if painted.agents or painted.rules or painted.clients:
            self._paint(painted)
        return painted

    def _fit(self, painted: _Painted) -> None:
        agents, words = self._told.shape
        painted.excluded = grow(painted.excluded, agents, words)[:agents, :words]
        painted.excluding = grow(painted.excluding, agents)[:agents]
        painted.index.columns.reserve(agents)

    def _paint(self, painted: _Painted) -> None:
        index, agents = painted.index, sorted(painted.agents)
        if agents:
            index.put(np.array(agents), [self._traits[agent] for agent in agents])
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
        if agents:
            self._paint_agents(painted, agents)
        painted.agents, painted.rules, painted.clients = set(), set(), 0

    def _paint_clients(self, painted: _Painted, changed: int, entries: list[RuleClass]) -> None:
        """Recompute some clients on all agents, from the host's exclusions and their rules."""
        told, words = self._told, self._told.shape[1]
        mask, found = to_words([changed], words)[0], 0
        named: dict[str, Named] = {}
        late = to_words(self._late.clients, words)
        for block in _blocks(mask):
            theirs = mask[block.start : block.stop]
            bad = painted.index.barred_on(None, block, entries, named)
            if self._marked:
                bad |= told[:, block.start : block.stop]
            bad[self._late.agent] |= late[self._late.group, block.start : block.stop]
            bad &= theirs
            excluded = painted.excluded[:, block.start : block.stop]
            write(excluded, excluded & ~theirs | bad)
            painted.excluding |= bad.any(axis=1)
            some = np.bitwise_or.reduce(bad, axis=0).tobytes()
            found |= int.from_bytes(some, "little") << BITS * block.start
        painted.some = painted.some & ~changed | found

    def _paint_agents(self, painted: _Painted, agents: list[int]) -> None:
        rows, words, index = np.array(agents), self._told.shape[1], painted.index
        if len(agents) <= _FEW:
            its = (self._traits[agent] for agent in agents)
            barred = [0 if each is None else index.barred(each) for each in its]
            write(painted.excluded, self._told[rows] | to_words(barred, words), rows)
            for clients in set(barred):
                painted.some |= clients
        else:
            named: dict[str, Named] = {}
            for start in range(0, words, _BLOCK):
                block = range(start, min(start + _BLOCK, words))
                bad = index.barred_on(rows, block, None, named)
                some = np.bitwise_or.reduce(bad, axis=0).tobytes()
                painted.some |= int.from_bytes(some, "little") << BITS * start
                bad |= self._told[rows, block.start : block.stop]
                write(painted.excluded[:, block.start : block.stop], bad, rows)
        if len(self._late.agent):
            at, group = self._late.on(rows)
            painted.excluded[rows[at]] |= to_words(self._late.clients, words)[group]
            for clients in self._late.clients:
                painted.some |= clients
        painted.excluding[rows] = painted.excluded[rows].any(axis=1)

    def check(self) -> None:
        excluded, excluding = self.excluded, self.excluding
        assert not excluded[~excluding].any()
        assert self._painted is not None
        self._painted.index.check()
        some = int.from_bytes(np.bitwise_or.reduce(excluded, axis=0).tobytes(), "little")
        assert not some & ~self._painted.some
        groups = zip(self._late.agent.tolist(), self._late.group.tolist(), strict=True)
        late_on = {agent: self._late.clients[group] for agent, group in groups}
        assert not (some & ~set_of(self._rule)), "bits of a client that does not exist"
        for client, rule in self._rule.items():
            word, bit = client // BITS, np.uint64(1 << client % BITS)
            assert client in self._marked or not (self._told[:, word] & bit).any()
            for agent, traits in enumerate(self._traits):
                expected = bool(self._told[agent, word] & bit)
                expected = expected or bool(late_on.get(agent, 0) >> client & 1)
                if traits is not None:
                    expected = expected or not rule.allows(traits)
                assert bool(excluded[agent, word] & bit) == expected


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


def _blocks(mask: BitWords) -> Iterable[range]:
    """Yield ranges of consecutive words with a bit set, each at most `_BLOCK` long."""
    some = np.flatnonzero(mask)
    for run in np.split(some, np.flatnonzero(np.diff(some) > 1) + 1):
        for start in range(0, len(run), _BLOCK):
            yield range(int(run[start]), int(run[min(start + _BLOCK, len(run)) - 1]) + 1)
