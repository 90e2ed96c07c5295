"""Who may not be served where: a bit for each (agent, client).

Three sources bar a pair: exclusions that the host told us of, rules on attributes (operator or
label), and capabilities. The host's exclusions are kept bit by bit. The other two depend on the
client's *rule* alone, and most clients share theirs with others. So each rule is evaluated once an
agent, and the result is set for all its clients at once, by a mask.

Strangers write rules, and each may ask for many attributes. A rule whose attributes no agent has
costs a look at the names, however many agents there are.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from allocator.core.books.agent_rules import AgentColumns, AgentTraits, Rule, SortedRule
from allocator.core.numba.array_structures import grow
from allocator.core.snapshot import Bools, Ints, Words

_BITS = 64
_BIT = tuple(np.uint64(1 << bit) for bit in range(_BITS))
_FEW = 8
"""So few agents are judged one by one: columns of them would cost more."""
_BLOCK = 1 << 16
"""So many words are painted at a time: they stay near the processor."""


@dataclass(slots=True, eq=False)
class _RuleClass:
    """The clients with one rule, and the agents that it bars."""

    clients: set[int] = field(default_factory=set)
    mask: Words = field(default_factory=lambda: np.zeros(0, np.uint64))
    bars: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))


@dataclass(slots=True, eq=False)
class _Lookups:
    """What is worked out from the classes of rules, so that no rule is hashed or read again.

    `of_client`: the class that each client is in.
    `rules`: the rule of each class, sorted when an agent is first judged by it.
    """

    of_client: dict[int, _RuleClass]
    rules: dict[_RuleClass, SortedRule] = field(default_factory=dict)


def _spanned(mask: Words) -> slice:
    """The words from the first to the last one that has a bit."""
    some = np.flatnonzero(mask)
    return slice(int(some[0]), int(some[-1]) + 1)


def _one_by_one(traits: Sequence[AgentTraits]) -> Callable[[SortedRule], Bools | None]:
    """What `AgentColumns.barred_by` gives, for few agents."""

    def barred_by(rule: SortedRule) -> Bools | None:
        bars = [not rule.allows(its) for its in traits]
        return np.array(bars, np.bool_) if any(bars) else None

    return barred_by


def _words(rule: Rule) -> tuple[object, ...]:
    """The same for rules that are made of the same words; for as long as these live."""
    flags = rule.gpus, rule.any_region, rule.many_roles, rule.nested_role
    return *flags, *map(id, rule.clauses)


def _column(words: Words, client: int) -> Bools:
    """One client's bits."""
    word = words[:, client // _BITS] >> np.uint64(client % _BITS)
    return (word & np.uint64(1)).astype(np.bool_)


def bits(words: Words, row: Ints, client: Ints) -> Bools:
    """Look up bits of pairs in words (A, W), such as `Eligibility.excluded`."""
    word = words[row, client // _BITS]
    return ((word >> (client % _BITS).astype(np.uint64)) & np.uint64(1)).astype(np.bool_)


class Eligibility:
    """Which clients may be served on which agents.

    `excluded` (A, W): bit ``c % 64`` of word ``c // 64``: client c may not be served on this agent.
    `excluding` (A,): False: no bit of the agent is set. True: some are, or were.
    """

    DERIVED: ClassVar[tuple[str, ...]] = ("_columns", "_found")

    def __init__(self) -> None:
        self.excluded: Words = np.zeros((0, 0), np.uint64)
        self.excluding: Bools = np.zeros(0, np.bool_)
        self._told: Words = np.zeros((0, 0), np.uint64)
        self._traits: list[AgentTraits | None] = []
        self._columns: AgentColumns | None = None  # of these traits, once a rule asks
        self._marked: set[int] = set()  # clients that the host may have told us of
        self._rule: dict[int, Rule] = {}
        self._classes: dict[Rule, _RuleClass] = {}
        self._found: _Lookups | None = None

    def reserve(self, *, agents: int = 0, clients: int = 0) -> None:
        words = max(self.excluded.shape[1], -(-clients // _BITS), 1)
        self.excluded = grow(self.excluded, agents, words)
        self.excluding = grow(self.excluding, agents)
        self._told = grow(self._told, agents, words)
        self._traits.extend([None] * (len(self.excluded) - len(self._traits)))
        if self._columns is not None:
            self._columns.reserve(len(self.excluded))
        # Masks and bars of the rules keep exactly the size of the relation.
        for entry in self._classes.values():
            entry.mask = grow(entry.mask, words)[:words]
            entry.bars = grow(entry.bars, len(self.excluded))[: len(self.excluded)]

    def set_agents(self, agents: Ints, traits: Sequence[AgentTraits]) -> None:
        """Tell what agents (N,) are like."""
        rows = agents.tolist()
        new = not any(self._traits[agent] for agent in rows)
        for agent, its in zip(rows, traits, strict=True):
            self._traits[agent] = its
        if self._columns is not None:
            self._columns.put(agents, traits)
        # Begin with what the host said, then paint each rule that bars an agent over it.
        self.excluded[agents] = self._told[agents]
        for entries in self._judge(agents, traits, new=new):
            barred = agents[entries[0].bars[agents]]
            mask = entries[0].mask.copy()
            for entry in entries[1:]:
                mask |= entry.mask
            words = _spanned(mask)
            self.excluded[barred, words] |= mask[words]
        self.excluding[agents] = self.excluded[agents].any(axis=1)

    def _judge(
        self, agents: Ints, traits: Sequence[AgentTraits], *, new: bool
    ) -> Iterable[list[_RuleClass]]:
        """Work out which of some agents (N,) each rule bars.

        `new`: none of them was there before, so that no rule bars one yet.
        Returns the classes that bar some of them; those that bar the same ones stand together.
        """
        barred_by = _one_by_one(traits) if len(traits) <= _FEW else AgentColumns(traits).barred_by
        alike: dict[bytes, list[_RuleClass]] = {}
        for rule, entry in self._classes.items():
            bars = barred_by(self._sorted(entry, rule))
            if bars is not None:
                entry.bars[agents] = bars
                alike.setdefault(np.packbits(bars).tobytes(), []).append(entry)
            elif not new:
                entry.bars[agents] = False
        return alike.values()

    def drop_agent(self, agent: int) -> None:
        """Forget an agent, with the exclusions on it."""
        self._traits[agent] = None
        if self._columns is not None:
            self._columns.put(np.array([agent]), [None])
        self._told[agent] = 0
        self.excluded[agent] = 0
        self.excluding[agent] = False
        for entry in self._classes.values():
            entry.bars[agent] = False

    def set_rule(self, client: int, rule: Rule | None) -> None:
        """Give a client its rule; None: it is gone, with the exclusions of it."""
        self.set_rules({client: rule})

    def set_rules(self, rules: Mapping[int, Rule | None]) -> None:
        """Give many clients their rules at once, which costs little more than one."""
        # Clients that go, though the host told us of them; and all by what they leave and join.
        gone = list[int]()
        left: dict[_RuleClass, list[int]] = {}
        joined: dict[_RuleClass, list[int]] = {}
        # The roles of a framework share its words: those are hashed and compared once.
        met: dict[tuple[object, ...], _RuleClass] = {}
        for client, rule in rules.items():
            before, after = self._lookups.of_client.get(client), None
            if rule is not None and (after := met.get(_words(rule))) is None:
                after = met[_words(rule)] = self._class(rule)
            if after is not None and before is after:
                continue
            if before is not None:
                self._leave(client, before)
                left.setdefault(before, []).append(client)
            if rule is not None and after is not None:
                self._join(client, rule, after)
                joined.setdefault(after, []).append(client)
            elif client in self._marked:
                self._marked.discard(client)
                gone.append(client)
        # The usual newcomer: nobody barred it so far, and nothing bars it now.
        freed = [client for entry, some in left.items() if entry.bars.any() for client in some]
        barred = {entry: self._mask(some) for entry, some in joined.items() if entry.bars.any()}
        if gone or freed or barred:
            self._paint(self._mask(freed), self._mask(gone), barred)

    def _mask(self, clients: Sequence[int]) -> Words:
        """Clients as bits (W,)."""
        rows = np.array(clients, np.uint64)
        mask = np.zeros(self.excluded.shape[1], np.uint64)
        np.bitwise_or.at(mask, rows // _BITS, np.uint64(1) << rows % _BITS)
        return mask

    def _paint(self, freed: Words, gone: Words, barred: Mapping[_RuleClass, Words]) -> None:
        """Work clients' exclusions out again: what the host said, and what their rules bar.

        All are clients as bits (W,). `freed`: those whose old rule barred some agent. `gone`: those
        of whom what the host said counts no more. `barred`: those with a rule, by its class.
        """
        changed = np.bitwise_or.reduce([freed, gone, *barred.values()])
        words, some_told = _spanned(changed), bool(self._marked) or gone.any()
        # Where each has a rule of its own, those in one word are gathered, and painted at once.
        wide: list[tuple[Bools, slice, Words]] = []
        column: dict[int, Words] = {}
        for entry, mask in barred.items():
            theirs = _spanned(mask)
            if theirs.stop - theirs.start > 1:
                wide.append((entry.bars, theirs, mask[theirs]))
                continue
            if theirs.start not in column:
                column[theirs.start] = np.zeros(len(self.excluded), np.uint64)
            column[theirs.start][entry.bars] |= mask[theirs.start]
        rows = max(1, _BLOCK // (words.stop - words.start))
        for start in range(0, len(self.excluded), rows):
            block = slice(start, start + rows)
            excluded, told = self.excluded[block, words], self._told[block, words]
            excluded &= ~changed[words]
            # Mostly the host has said nothing of anybody.
            if some_told:
                told &= ~gone[words]
                excluded |= told & changed[words]
                self.excluding[block] |= excluded.any(axis=1)
            for bars, theirs, mask in wide:
                self.excluded[block, theirs][bars[block]] |= mask
                self.excluding[block] |= bars[block]
        for word, bits in column.items():
            self.excluded[:, word] |= bits
            self.excluding |= bits != 0

    def forget(self, client: int) -> None:
        """Take back every exclusion of a client that the host told us of."""
        if client not in self._marked:
            return
        self._marked.discard(client)
        # What is left is what the client's rule bars.
        mask, entry = self._mask([client]), self._lookups.of_client.get(client)
        self._paint(mask, mask, {} if entry is None else {entry: mask})

    def tell(self, client: Ints, agent: Ints, excluded: Bools) -> None:
        """Take note of exclusions (N,) that begin or end, in order.

        There is one for each role of a framework and each agent whenever the framework says other
        offer constraints, so a row must cost little.
        """
        # Of a pair that is told of several times the last row counts.
        pairs = client * len(self._told) + agent
        last = len(pairs) - 1 - np.unique(pairs[::-1], return_index=True)[1]
        client, agent, excluded = client[last], agent[last], excluded[last]
        word, bit = client // _BITS, np.uint64(1) << (client % _BITS).astype(np.uint64)
        begins, ends = np.flatnonzero(excluded), np.flatnonzero(~excluded)
        for words in (self._told, self.excluded):
            np.bitwise_or.at(words, (agent[begins], word[begins]), bit[begins])
            np.bitwise_and.at(words, (agent[ends], word[ends]), ~bit[ends])
        self.excluding[agent[begins]] = True
        self._marked.update(client[begins].tolist())
        # The host takes it back, but the client's rule may bar the pair all the same.
        barred = ends[self._bars(client[ends], agent[ends])]
        np.bitwise_or.at(self.excluded, (agent[barred], word[barred]), bit[barred])

    def _bars(self, client: Ints, agent: Ints) -> Bools:
        """Which pairs (N,) the client's rule bars."""
        found = np.zeros(len(client), np.bool_)
        order = np.argsort(client, kind="stable")
        some, first = np.unique(client[order], return_index=True)
        for one, rows in zip(some.tolist(), np.split(order, first[1:]), strict=False):
            entry = self._lookups.of_client.get(one)
            if entry is not None:
                found[rows] = entry.bars[agent[rows]]
        return found

    def barred(self, client: Ints, agent: Ints) -> Bools:
        """Which pairs (N,) are excluded."""
        return bits(self.excluded, agent, client)

    @property
    def traits(self) -> Sequence[AgentTraits | None]:
        """What agents are like, by handle."""
        return self._traits

    def rule_of(self, client: int) -> Rule:
        return self._rule.get(client, Rule())

    def excluded_of(self, client: int) -> Bools:
        """Where a client may not be served, by handle of the agent, (A,)."""
        return _column(self.excluded, client)

    def told_of(self, client: int) -> Bools:
        """Where that is so because the host said it, (A,)."""
        return _column(self._told, client)

    @property
    def _lookups(self) -> _Lookups:
        if self._found is None:
            entries = self._classes.values()
            self._found = _Lookups({client: each for each in entries for client in each.clients})
        return self._found

    def _sorted(self, entry: _RuleClass, rule: Rule) -> SortedRule:
        rules = self._lookups.rules
        found = rules.get(entry)
        if found is None:
            found = rules[entry] = SortedRule.of(rule)
        return found

    def _class(self, rule: Rule) -> _RuleClass:
        """Give the class of a rule; one met first is evaluated on every agent."""
        entry = self._classes.get(rule)
        if entry is None:
            if self._columns is None:
                self._columns = AgentColumns(self._traits)
            entry = _RuleClass(mask=np.zeros(self.excluded.shape[1], np.uint64))
            bars = self._columns.barred_by(self._sorted(entry, rule))
            entry.bars = np.zeros(len(self.excluded), np.bool_) if bars is None else bars.copy()
            self._classes[rule] = entry
        return entry

    def _leave(self, client: int, entry: _RuleClass) -> None:
        """Take a client out of its class; one that nobody is in is forgotten."""
        rule = self._rule.pop(client)
        del self._lookups.of_client[client]
        entry.clients.discard(client)
        if not entry.clients:
            del self._classes[rule]
            self._lookups.rules.pop(entry, None)
        else:
            entry.mask[client // _BITS] &= ~_BIT[client % _BITS]

    def _join(self, client: int, rule: Rule, entry: _RuleClass) -> None:
        entry.clients.add(client)
        entry.mask[client // _BITS] |= _BIT[client % _BITS]
        self._rule[client] = rule
        self._lookups.of_client[client] = entry

    def check(self) -> None:
        """Verify the relation against the rules, pair by pair."""
        assert not self.excluded[~self.excluding].any()
        for client, rule in self._rule.items():
            assert client in self._classes[rule].clients
            word, bit = client // _BITS, _BIT[client % _BITS]
            assert client in self._marked or not (self._told[:, word] & bit).any()
            for agent, traits in enumerate(self._traits):
                expected = bool(self._told[agent, word] & bit)
                if traits is not None:
                    expected = expected or not rule.allows(traits)
                assert bool(self.excluded[agent, word] & bit) == expected
