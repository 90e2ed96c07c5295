"""Usage within an hour or a day, as integers, for a bounded number of names.

All amounts are integrals over time: thousandths of a resource times milliseconds.
"""

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class Part(IntEnum):
    """How the amounts of a resource were used; the sum of all parts is the capacity."""

    USED = 0
    OFFERED = 1
    IDLE = 2
    UNKNOWN = 3


HELD = (Part.USED, Part.OFFERED)
"""The parts that clients hold, in the order of their columns."""

BY = ("role", "framework", "principal")
"""Kinds of names by which usage is summed."""

OTHERS = "\n"
"""Name for usage that is not kept by name; no role or framework can have this name."""

NOT_KNOWN = ""
"""Name and principal of a framework that holds something but has not subscribed yet."""

NAMES_MAX = 1000
"""Maximum number of names of each kind in a closed bucket: those that held most."""

OPEN_NAMES_MAX = 16_384
"""Maximum number of names of each kind in the current hour; further ones count as `OTHERS`."""

NAME_LENGTH_MAX = 256

Amounts = Counter[tuple[str, str, Part]]
"""Integrals by name, resource and part."""


class BucketError(ValueError):
    """A saved bucket cannot be read."""


@dataclass
class Bucket:
    """The usage of one hour or one day.

    `span_ms`: the time that is counted.
    `parts`: integrals of the cluster by resource and part; the sum of all parts is capacity times
        time.
    `held`: for each of `BY`: what is used and offered, by name.
    `names`: for each of `BY`: the names that are kept; all others count as `OTHERS`.
    """

    span_ms: int = 0
    parts: Counter[tuple[str, Part]] = field(default_factory=Counter)
    held: dict[str, Amounts] = field(default_factory=lambda: {by: Counter() for by in BY})
    names: dict[str, dict[str, None]] = field(default_factory=lambda: {by: {} for by in BY})
    titles: dict[str, str] = field(default_factory=dict)

    def place(self, by: str, name: str) -> str:
        """Return the name under which a name is counted."""
        name, known = name[:NAME_LENGTH_MAX], self.names[by]
        if name not in known:
            if len(known) >= OPEN_NAMES_MAX:
                return OTHERS
            known[name] = None
        return name

    def add(self, other: "Bucket") -> None:
        self.span_ms += other.span_ms
        self.parts.update(other.parts)
        for by in BY:
            self.held[by].update(other.held[by])
            self.names[by].update(other.names[by])
        self.titles.update(other.titles)

    def add_roles(self, other: "Bucket") -> None:
        """Add the usage of another bucket, by name only for roles."""
        self.span_ms += other.span_ms
        self.parts.update(other.parts)
        for (name, resource, part), amount in other.held["role"].items():
            self.held["role"][self.place("role", name), resource, part] += amount

    def close(self) -> None:
        """Merge the names that held least into `OTHERS`; sums stay the same."""
        for by, amounts in self.held.items():
            kept = self._largest(by)
            found = Amounts()
            for (name, resource, part), amount in amounts.items():
                found[name if name in kept else OTHERS, resource, part] += amount
            self.held[by], self.names[by] = found, dict.fromkeys(sorted(kept))
        frameworks = self.names["framework"]
        self.titles = {each: name for each, name in self.titles.items() if each in frameworks}

    def shares(self, by: str) -> dict[str, int]:
        """Dominant share of each name, times 2**64."""
        held = Counter[tuple[str, str]]()
        for (name, resource, _), amount in self.held[by].items():
            held[name, resource] += amount
        share = dict[str, int]()
        for (name, resource), amount in held.items():
            capacity = max(sum(self.parts[resource, part] for part in Part), 1)
            share[name] = max(share.get(name, 0), (amount << 64) // capacity)
        return share

    def _largest(self, by: str) -> set[str]:
        """Names with the largest dominant shares; of equals, the first in name order."""
        share = self.shares(by)
        share.pop(OTHERS, None)
        return set(sorted(share, key=lambda name: (-share[name], name))[:NAMES_MAX])

    def resources(self) -> list[str]:
        return sorted({resource for resource, _ in self.parts})

    def copied(self) -> "Bucket":
        held = {by: amounts.copy() for by, amounts in self.held.items()}
        names = {by: names.copy() for by, names in self.names.items()}
        return Bucket(self.span_ms, self.parts.copy(), held, names, self.titles.copy())

    # Serialisation.

    def to_bytes(self) -> bytes:
        """Serialise the bucket; equal buckets give equal bytes on one machine."""
        content: dict[str, Any] = {"span_ms": self.span_ms, "titles": self.titles}
        content["parts"] = _rows((resource, int(part), value) for (resource, part), value in
                                 self.parts.items())  # fmt: skip
        for by in BY:
            rows = ((*name[:2], int(name[2]), value) for name, value in self.held[by].items())
            content[by] = _rows(rows)
            content[f"{by}_names"] = list(self.names[by])
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return zlib.compress(text.encode())

    @classmethod
    def from_bytes(cls, data: bytes) -> "Bucket":
        try:
            return cls._read(json.loads(zlib.decompress(data)))
        except (zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BucketError(f"{type(error).__name__}: {error}") from None

    @classmethod
    def _read(cls, content: Mapping[str, Any]) -> "Bucket":
        bucket = cls(span_ms=content["span_ms"], titles=content["titles"])
        for resource, part, value in content["parts"]:
            bucket.parts[resource, Part(part)] = value
        for by in BY:
            bucket.names[by] = dict.fromkeys(content[f"{by}_names"])
            for name, resource, part, value in content[by]:
                bucket.held[by][name, resource, Part(part)] = value
        return bucket


def _rows(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(row for row in rows if row[-1])
