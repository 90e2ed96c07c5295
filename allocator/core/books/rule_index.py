"""An index of rules: which clients each value of an attribute bars.

For a new agent, the clients barred by each of its attributes are looked up once, because rules that
treat a value alike are stored together. For a new rule, each *value* of an attribute is evaluated
once. Only the result, one bit for each pair, grows with rules times agents.

A set of clients is an integer with a bit for each client.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from allocator.core.books.agent_rules import RARE, AgentColumns, AgentTraits, Rule, SortedRule
from allocator.core.books.attribute_column import AttributeColumn
from allocator.core.constraints import Condition
from allocator.core.numba.bit_tables import BITS
from allocator.core.snapshot import BitWords, Ints

NAMING_BYTES = 256
"""Memory for the cached set of clients of a value, in bytes per rule that names the value: about
the size of the rule itself."""

_KEPT_BYTES = 80
"""Memory of a cached value without its set of clients, in bytes."""


@dataclass(slots=True, eq=False)
class RuleClass:
    """The clients that share one rule.

    `lost`: the rule requires an attribute that no agent has, and so bars all agents.
    """

    rule: SortedRule
    clients: int = 0
    lost: bool = False


class RuleChange(NamedTuple):
    """The clients whose rule has changed.

    `clients`: the set of them, including those that have left.
    `entries`: the classes that some of them have joined.
    """

    clients: int
    entries: list[RuleClass]


class _Opinion(NamedTuple):
    """How a rule treats the values of an attribute; see `Condition` for the fields."""

    must_be: bool
    bars_others: bool
    exceptions: AbstractSet[str]

    @classmethod
    def of(cls, condition: Condition) -> "_Opinion":
        return cls(condition.must_be, condition.bars_others, condition.exceptions)


class _Asked:
    """The rules on one attribute that some agent has.

    `lacking`: clients barred from agents that lack the attribute.
    `other`: clients barred from agents with a value that no rule names.
    """

    def __init__(self) -> None:
        self.opinions: dict[RuleClass, _Opinion] = {}
        self.lacking = self.other = 0
        # The rules that name each value, usually one. Values of new rules are indexed only when an
        # agent's value is looked up.
        self._naming: dict[str, RuleClass | set[RuleClass]] = {}
        self._unread: dict[RuleClass, None] = {}
        self._kept: dict[str, int] = {}  # by value: cached bits of clients whose rules name it

    def add(self, entry: RuleClass, condition: Condition) -> None:
        self.opinions[entry] = _Opinion.of(condition)
        self._unread[entry] = None

    def _read(self) -> None:
        """Index the values in rules that were added since the last look-up."""
        naming = self._naming
        for entry in self._unread:
            values = self.opinions[entry].exceptions
            known = naming.keys() & values
            naming.update(dict.fromkeys(values - known, entry))
            for value in known:
                its = naming[value]
                if not isinstance(its, set):
                    its = naming[value] = {its}
                its.add(entry)
                kept = self._kept.pop(value, None)
                if kept is not None:
                    self._keep(value, its, kept | entry.clients)
        self._unread.clear()

    def remove(self, entry: RuleClass) -> None:
        opinion = self.opinions.pop(entry)
        if entry in self._unread:
            del self._unread[entry]
            return
        for value in opinion.exceptions:
            its = self._naming[value]
            if not isinstance(its, set):
                del self._naming[value]
                continue
            its.remove(entry)
            kept = self._kept.pop(value, None)
            if len(its) == 1:
                self._naming[value] = its.pop()
            elif kept is not None:
                self._keep(value, its, kept)

    def change(self, entry: RuleClass, gone: int, came: int) -> None:
        """Update the sets after clients have left (`gone`) or joined (`came`) a class."""
        opinion = self.opinions[entry]
        if opinion.must_be:
            self.lacking = self.lacking & ~gone | came
        if opinion.bars_others:
            self.other = self.other & ~gone | came
        if entry in self._unread:
            return
        for value in opinion.exceptions & self._kept.keys():
            its = self._naming[value]
            assert isinstance(its, set)
            self._keep(value, its, self._kept.pop(value) & ~gone | came)

    def barred(self, value: str | None) -> int:
        """Return the clients barred by this value; None: by the lack of the attribute."""
        if value is None:
            return self.lacking
        if self._unread:
            self._read()
        its = self._naming.get(value)
        if its is None:
            return self.other
        # A rule that names a value treats it in the opposite way to all other values.
        return self.other ^ (self._named_by(value, its) if isinstance(its, set) else its.clients)

    def _named_by(self, value: str, its: set[RuleClass]) -> int:
        clients = self._kept.get(value)
        if clients is None:
            clients = union(its)
            self._keep(value, its, clients)
        return clients

    def _keep(self, value: str, its: set[RuleClass], clients: int) -> None:
        """Cache the clients of a value, unless that takes more memory than its rules."""
        if _kept_bytes(clients) <= NAMING_BYTES * len(its):
            self._kept[value] = clients

    def check(self) -> None:
        self._read()
        pairs = sum(len(opinion.exceptions) for opinion in self.opinions.values())
        named = [its if isinstance(its, set) else {its} for its in self._naming.values()]
        assert pairs == sum(map(len, named))
        for value, its in zip(self._naming, named, strict=True):
            assert all(value in self.opinions[entry].exceptions for entry in its)
            assert self._kept.get(value, union(its)) == union(its)
        assert sum(map(_kept_bytes, self._kept.values())) <= NAMING_BYTES * pairs

    def named(self, column: AttributeColumn, entries: Iterable[RuleClass]) -> "Named":
        """Return the values that rules of `entries` name and some agent has, as codes."""
        opinions = self.opinions
        naming = [each for each in entries if each in opinions and opinions[each].exceptions]
        values = [value for each in naming for value in opinions[each].exceptions]
        codes = column.find(values)
        met = np.flatnonzero(codes >= 0)
        ends = np.cumsum([len(opinions[each].exceptions) for each in naming])
        whose = np.searchsorted(ends, met, side="right")
        found = dict[int, list[int]]()
        for place, code in zip(whose.tolist(), codes[met].tolist(), strict=True):
            found.setdefault(place, []).append(code)
        return [(naming[place], its) for place, its in found.items()]

    def rows(self, codes: int, named: "Named", shift: int, mask: int) -> tuple[Ints, list[int]]:
        """Compute `barred` for all values at once.

        `codes`: the number of codes; code 0 means that the agent lacks the attribute.
        `named`: the values named by the classes of interest; the result is undefined for clients of
            other classes.
        `shift`, `mask`: select the bits of interest.
        Returns the index of the row for each code, and the distinct rows.
        """
        rows = [self.lacking >> shift & mask, self.other >> shift & mask]
        place = dict[int, int]()
        for entry, its in named:
            if not (clients := entry.clients >> shift & mask):
                continue
            for code in its:
                if (row := place.get(code)) is None:
                    row = place[code] = len(rows)
                    rows.append(rows[1])
                rows[row] ^= clients
        which = np.ones(codes, np.int64)
        which[0] = 0
        which[list(place)] = list(place.values())
        return which, rows


Named = list[tuple[RuleClass, list[int]]]
"""For each class of rules: the codes of the values that it names and some agent has."""


def _kept_bytes(clients: int) -> int:
    return _KEPT_BYTES + clients.bit_length() // 8


def union(classes: Iterable[RuleClass]) -> int:
    clients = 0
    for entry in classes:
        clients |= entry.clients
    return clients


def to_words(rows: Sequence[int], words: int) -> BitWords:
    """Convert integers to rows of this many words, (n, words); the result is read-only."""
    text = b"".join(row.to_bytes(8 * words, "little") for row in rows)
    return np.frombuffer(text, np.uint64).reshape(len(rows), words)


def clients_in(clients: int) -> list[int]:
    text = clients.to_bytes(-(-clients.bit_length() // 8), "little")
    return np.flatnonzero(np.unpackbits(np.frombuffer(text, np.uint8), bitorder="little")).tolist()


_FLAGS: tuple[tuple[str, bool, Callable[[Rule], bool]], ...] = (
    ("gpus", True, lambda rule: not rule.gpus),
    ("remote", True, lambda rule: not rule.any_region),
    ("many_roles", False, lambda rule: rule.many_roles),
    ("nested_roles", False, lambda rule: rule.nested_role),
)
"""Traits of agents other than attributes: the name, a value, and whether agents with this value are
excluded for a rule."""


class RuleIndex:
    """All rules and all agents, indexed by attribute."""

    def __init__(self, traits: Sequence[AgentTraits | None]) -> None:
        self.columns = AgentColumns(traits)
        self._classes: dict[Rule, RuleClass] = {}
        self._of_client: dict[int, RuleClass] = {}
        self._asked: dict[str, _Asked] = {}
        self._asking: Counter[str] = Counter()  # number of rules that name each attribute
        self._lost = 0
        self._incapable = [0] * len(_FLAGS)

    # Rules.

    def set_rules(self, rules: Mapping[int, Rule | None]) -> RuleChange:
        """Set the rules of clients; None: the client has left."""
        gone: dict[RuleClass, int] = {}
        came: dict[RuleClass, int] = {}
        # All roles of a framework share its labels, so compare its clauses only once.
        met: dict[tuple[object, ...], RuleClass] = {}
        for client, rule in rules.items():
            before, after = self._of_client.get(client), None
            if rule is not None and (after := met.get(_words(rule))) is None:
                after = met[_words(rule)] = self._class(rule)
            if after is before:
                continue
            if before is not None:
                gone[before] = gone.get(before, 0) | 1 << client
            if after is None:
                del self._of_client[client]
                continue
            came[after] = came.get(after, 0) | 1 << client
            self._of_client[client] = after
        changed = 0
        for entry, clients in gone.items():
            self._change(entry, clients, 0)
            changed |= clients
        for entry, clients in came.items():
            self._change(entry, 0, clients)
            changed |= clients
        # All clients of a rule may have left, or none joined.
        for entry in [*gone, *met.values()]:
            if not entry.clients and self._classes.get(entry.rule.rule) is entry:
                self._remove(entry)
        return RuleChange(changed, list(came))

    def _class(self, rule: Rule) -> RuleClass:
        entry = self._classes.get(rule)
        if entry is None:
            entry = self._classes[rule] = RuleClass(SortedRule.of(rule))
            its, having = entry.rule, self.columns.having if rule.clauses else {}
            for conditions in (its.must, its.may):
                self._asking.update(conditions.keys())
                for name in conditions.keys() & having.keys():
                    if (asked := self._asked.get(name)) is None:
                        asked = self._asked[name] = _Asked()
                    asked.add(entry, conditions[name])
            entry.lost = not its.must.keys() <= having.keys()
        return entry

    def _remove(self, entry: RuleClass) -> None:
        del self._classes[entry.rule.rule]
        for name in (*entry.rule.must, *entry.rule.may):
            self._asking[name] -= 1
            if not self._asking[name]:
                del self._asking[name]
            if (asked := self._asked.get(name)) is not None:
                asked.remove(entry)
                if not asked.opinions:
                    del self._asked[name]

    def _change(self, entry: RuleClass, gone: int, came: int) -> None:
        """Update the sets after clients have left (`gone`) or joined (`came`) a class."""
        entry.clients = entry.clients & ~gone | came
        if entry.lost:
            self._lost = self._lost & ~gone | came
        for place, (_, _, is_barred) in enumerate(_FLAGS):
            if is_barred(entry.rule.rule):
                self._incapable[place] = self._incapable[place] & ~gone | came
        for name in self._names_of(entry):
            self._asked[name].change(entry, gone, came)

    def _names_of(self, entry: RuleClass) -> AbstractSet[str]:
        """Return the attributes that a rule names and some agent has."""
        known, rule = self._asked.keys(), entry.rule
        return (rule.must.keys() & known) | (rule.may.keys() & known)

    def class_of(self, client: int) -> RuleClass | None:
        return self._of_client.get(client)

    def may_bar(self, entry: RuleClass) -> bool:
        incapable = self.columns.incapable_of(entry.rule.rule) is not None
        return incapable or entry.lost or bool(self._names_of(entry))

    # Agents.

    def put(self, agents: Ints, traits: Sequence[AgentTraits | None]) -> None:
        columns, asking = self.columns, self._asking
        rows, names = agents.tolist(), set[str]()
        if asking:
            names.update(*map(columns.said, rows))
        columns.reserve(max(rows, default=-1) + 1)
        columns.put(agents, traits)
        if not asking:
            return
        names.update(*map(columns.said, rows))
        for name in names & asking.keys():
            if name not in columns.having:
                self._end(name)
            elif name not in self._asked:
                self._begin(name)

    def _begin(self, name: str) -> None:
        asked = self._asked[name] = _Asked()
        for entry in self._classes.values():
            must = entry.rule.must.get(name)
            condition = entry.rule.may.get(name) if must is None else must
            if condition is None:
                continue
            asked.add(entry, condition)
            asked.change(entry, 0, entry.clients)
            if must and entry.lost and entry.rule.must.keys() <= self.columns.having.keys():
                entry.lost = False
                self._lost &= ~entry.clients

    def _end(self, name: str) -> None:
        asked = self._asked.pop(name, None)
        if asked is None:
            return
        for entry, opinion in asked.opinions.items():
            if opinion.must_be:
                entry.lost = True
                self._lost |= entry.clients

    # Pairs.

    def barred(self, agent: AgentTraits) -> int:
        clients = self._lost
        for (name, bars, _), incapable in zip(_FLAGS, self._incapable, strict=True):
            if getattr(agent, name) is bars:
                clients |= incapable
        get = agent.attributes.get
        for name, asked in self._asked.items():
            clients |= asked.barred(get(name))
        return clients

    def barred_on(
        self,
        rows: Ints | None,
        words: range,
        entries: Sequence[RuleClass] | None,
        named: dict[str, Named],
    ) -> BitWords:
        """Compute which clients rules bar from agents, as bits, (n, len(words)).

        `rows` (n,): the agents; None: all.
        `words`: the range of words of the clients to compute, each with `BITS` clients.
        `entries`: the classes of interest; None: all. The result is undefined for other clients.
        `named`: a cache by attribute, to be shared by calls that differ only in `words`.
        """
        columns, shift, mask = self.columns, BITS * words.start, (1 << BITS * len(words)) - 1
        there = _at(columns.there, rows)
        bad = np.zeros((len(there), len(words)), np.uint64)

        def row(clients: int) -> BitWords:
            return to_words([clients >> shift & mask], len(words))[0]

        bad |= row(self._lost)
        for (name, bars, _), incapable in zip(_FLAGS, self._incapable, strict=True):
            if incapable >> shift & mask:
                bad[_at(columns.flag(name), rows) == bars] |= row(incapable)
        if entries is None:
            entries, names = list(self._classes.values()), set(self._asked)
        else:
            names = set[str]().union(*map(self._names_of, entries))
        place = None
        for name in names:
            asked, having = self._asked[name], columns.having[name]
            if len(having) > RARE:
                column = columns.column(name)
                if name not in named:
                    named[name] = asked.named(column, entries)
                which, clients = asked.rows(len(column), named[name], shift, mask)
                if any(clients):
                    table = to_words(clients, len(words))
                    bad |= table[which[_at(column.of, rows)]]
                continue
            if place is None:
                place = _places(rows, len(columns.there))
            its = [agent for agent in having if place[agent] >= 0]
            at = place[its]
            before = bad[at]
            if asked.lacking >> shift & mask:
                bad |= row(asked.lacking)
            values = [asked.barred(columns.said(agent)[name]) >> shift & mask for agent in its]
            bad[at] = before | to_words(values, len(words))
        bad[~there] = 0
        return bad

    def check(self) -> None:
        classes = self._classes
        for client, entry in self._of_client.items():
            assert entry.clients >> client & 1
            assert classes[entry.rule.rule] is entry
        assert sum(entry.clients.bit_count() for entry in classes.values()) == len(self._of_client)
        assert self._asked.keys() == self._asking.keys() & self.columns.having.keys()
        lost = 0
        for entry in classes.values():
            lost |= entry.clients * entry.lost
            assert entry.lost == (not entry.rule.must.keys() <= self.columns.having.keys())
        assert lost == self._lost
        for asked in self._asked.values():
            asked.check()


def _at(array: np.ndarray, rows: Ints | None) -> np.ndarray:
    return array if rows is None else array[rows]


def _places(rows: Ints | None, count: int) -> Ints:
    """Return the index of each of `count` agents in `rows` (n,); -1: absent."""
    if rows is None:
        return np.arange(count)
    place = np.full(count, -1)
    place[rows] = np.arange(len(rows))
    return place


def _words(rule: Rule) -> tuple[object, ...]:
    """Return a key, equal for rules made from the same clauses, and valid while these exist."""
    flags = rule.gpus, rule.any_region, rule.many_roles, rule.nested_role
    return *flags, *map(id, rule.clauses)
