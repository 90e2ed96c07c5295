"""One attribute of all agents, stored in little memory even if every agent has its own value."""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from allocator.core.constraints import Condition
from allocator.core.numba.array_structures import grow
from allocator.core.snapshot import Bools, Indices, Ints

VALUE_BYTES = 24
"""Memory per value, in bytes: hash, code and reference. The text itself belongs to the agents."""

_LATE_BYTES = 100
"""Additional memory, in bytes, of a value that was added since the last sort."""

_FEW = 4

_IDLE_MAX = 64
"""A column is not rebuilt for up to this many unused values."""


def hashes_of(texts: Collection[str], salt: int) -> Ints:
    """Hash texts, (n,). Texts with equal hashes get different ones with another salt."""
    salted = (text + "\0" * salt for text in texts) if salt else texts
    return np.fromiter(map(hash, salted), np.int64, len(texts))


class AttributeColumn:
    """The values of one attribute on all agents (N,), as codes of the distinct values.

    A value is looked up by binary search among the sorted hashes, and then compared. A dictionary
    would take five times the memory if each of 50,000 agents has its own value.

    `nbytes`: approximate size in bytes.
    `of` (N,): code of each agent's value; 0: the agent lacks the attribute.
    """

    def __init__(self, count: int) -> None:
        self.of: Indices = np.zeros(count, np.int32)
        self._texts = [""]  # values by code; the entry of code 0 is unused
        self._hash: Ints = np.empty(0, np.int64)  # (D,), ascending
        self._code: Indices = np.empty(0, np.int32)  # (D,): code of the value with each hash
        self._late: dict[str, int] = {}  # codes of values added since the last sort
        self._added_bytes = 0
        self._salt = 0

    @property
    def nbytes(self) -> int:
        values = VALUE_BYTES * len(self._texts) + _LATE_BYTES * len(self._late)
        return self.of.nbytes + values + self._added_bytes

    def __len__(self) -> int:
        return len(self._texts)

    def reserve(self, count: int) -> None:
        self.of = grow(self.of, count)[:count]

    def put(self, agents: Ints, values: Sequence[str | None]) -> None:
        """Set the values of some agents (n,); None: the agent lacks the attribute."""
        if len(values) <= _FEW:  # arrays cost more than they save
            self.of[agents] = [self._code_for(value) for value in values]
            return
        distinct = [value for value in dict.fromkeys(values) if value is not None]
        codes = self.find(distinct)
        fresh, size = np.flatnonzero(codes < 0), len(self._texts)
        codes[fresh] = np.arange(size, size + len(fresh))
        added = [distinct[row] for row in fresh.tolist()]
        if len(distinct) == len(values):
            self.of[agents] = codes
        else:
            code: dict[str | None, int] = dict(zip(distinct, codes.tolist(), strict=True))
            code[None] = 0
            self.of[agents] = [code[value] for value in values]
        self._texts.extend(added)
        if size > 1:  # agents may drop these values later; then only the column keeps them
            self._added_bytes += sum(map(len, added))
        if len(self._late) + len(added) > _IDLE_MAX + len(self._hash) // 8:
            self._sort()
        else:
            self._late.update(zip(added, range(size, size + len(added)), strict=True))

    def _code_for(self, value: str | None) -> int:
        if value is None:
            return 0
        if (code := self._late.get(value)) is not None:
            return code
        if count := len(self._hash):
            wanted = int(hashes_of((value,), self._salt)[0])
            place = bisect_left(self._hash, wanted)
            if place < count and self._hash[place] == wanted:
                code = int(self._code[place])
                if self._texts[code] == value:
                    return code
        code = self._late[value] = len(self._texts)
        self._texts.append(value)
        self._added_bytes += len(value)
        if len(self._late) > _IDLE_MAX + count // 8:
            self._sort()
        return code

    def _sort(self) -> None:
        self._late.clear()
        texts = self._texts[1:]
        while True:
            self._hash, first = np.unique(hashes_of(texts, self._salt), return_index=True)
            if len(first) == len(texts):
                break
            self._salt += 1
        self._code = (first + 1).astype(np.int32)

    def has_idle_values(self, agents: int) -> bool:
        """Whether many values are unused; `agents`: the number of agents with the attribute."""
        return len(self._texts) > 2 * agents + _IDLE_MAX

    def find(self, values: Collection[str]) -> Ints:
        """Return codes of values (n,); -1: not in the column, like most values of a long rule."""
        codes = np.full(len(values), -1)
        if late := self._late:
            codes[:] = [late.get(value, -1) for value in values]
        if not len(self._hash):
            return codes
        hashes = hashes_of(values, self._salt)
        place = np.searchsorted(self._hash, hashes)
        place[place == len(self._hash)] = 0
        met = np.flatnonzero(self._hash[place] == hashes)
        found = self._code[place[met]]
        # Another text may have the same hash.
        named, texts = list(values), self._texts
        pairs = zip(met.tolist(), found.tolist(), strict=True)
        same = np.array([texts[code] == named[row] for row, code in pairs], np.bool_)
        codes[met[same]] = found[same]
        return codes

    def holds(self, condition: Condition) -> Bools:
        """Return which agents (N,) satisfy a condition; each value is evaluated once."""
        good = np.full(len(self._texts), not condition.must_lack)
        if condition.one_of is not None:
            good[:] = False
            good[self._known(condition.one_of)] = not condition.must_lack
        good[self._known(condition.none_of)] = False
        good[0] = not condition.must_be
        return good[self.of]

    def _known(self, values: Collection[str]) -> Ints:
        codes = self.find(values)
        return codes[codes >= 0]


def values_of(said: Sequence[Mapping[str, str]], agents: Ints, name: str) -> list[str | None]:
    if len(agents) == len(said):
        return [each.get(name) for each in said]
    return [said[agent].get(name) for agent in agents.tolist()]
