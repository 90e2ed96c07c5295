"""Averages over time of what clients hold, in which older use counts less.

The weight of past use halves with every half-life. Time is divided into slots, 64 in a half-life;
the weight is constant within a slot, so the average of a constant holding is that holding. The
average is

    u = (sum over earlier slots j of q^j * integral of slot j + integral of this slot) / norm

where j is 1 for the latest earlier slot, ``q = 2^(-1/64)``, and ``norm = slot * q / (1 - q) + time
in this slot``. The time before a client came counts as zeros. Only multiplications and additions in
double precision are used, whose results are equal on all machines; rounding errors fade with time.
"""

from collections.abc import Container, Iterable, Iterator, Mapping

from allocator.core.demand.budget_memory import GAP_MS

SLOTS = 64
DECAY = 0.9892280131939755
"""2 ** (-1 / SLOTS)."""

PAST = DECAY / (1 - DECAY)
"""The weight of all earlier slots together, in slots."""

ABSENT_MAX = 10_000
"""Maximum number of clients that left whose averages are kept one by one."""

HALVINGS = 40
"""Use is forgotten after this many half-lives."""


class UsageMemory:
    """The clock of all averages, and the averages of clients that left. It outlives sessions.

    Only time in sessions counts; use outside of sessions is unknown, and so is that of a step of
    more than `GAP_MS`.

    `half_life_ms`: 0: no averages are kept.
    `into_ms`: elapsed time of the current slot.
    `absent`: averages by (role path, framework id), each amounts by name, in thousandths / `scale`,
        at the beginning of the current slot. The entry with an empty id is the sum of a role's
        oldest averages, which are no longer kept one by one.
    `scale`: the factor by which all entries of `absent` have faded since they were stored.
    `version`: grows whenever a client leaves or returns.
    """

    def __init__(self) -> None:
        self.half_life_ms = 0
        self.into_ms = 0
        self.absent: dict[tuple[str, str], dict[str, float]] = {}
        self.scale = 1.0
        self.version = 0
        self._clock_ms = -1

    @property
    def slot_ms(self) -> int:
        return max(self.half_life_ms // SLOTS, 1)

    @property
    def norm(self) -> float:
        """The factor from a stored average, as of the beginning of the slot, to the average now."""
        return PAST / (PAST + self.into_ms / self.slot_ms)

    def begin_session(self) -> None:
        """Begin a session, whose clock may differ from the previous one."""
        self._clock_ms = -1

    def set_half_life(self, half_life_ms: int) -> None:
        """Change the half-life but keep the averages; 0 deletes all of them."""
        self.half_life_ms = half_life_ms
        self.into_ms = min(self.into_ms, self.slot_ms - 1)
        if not half_life_ms:
            self.absent.clear()
            self.into_ms, self.scale = 0, 1.0
            self.version += 1

    def pass_time(self, now_ms: int) -> Iterator[tuple[float, float]]:
        """Advance to `now_ms`, by the session's clock.

        A session's first call, and a step of more than `GAP_MS`, only set the clock.

        Yields pairs (added, factor) by which to update the average of a constant holding, in order:
        average = (average + holding * added) * factor.
        """
        passed = now_ms - self._clock_ms if self._clock_ms >= 0 else 0
        if passed > GAP_MS:
            passed = 0
        self._clock_ms = now_ms
        slot = self.slot_ms
        if self.into_ms and self.into_ms + passed >= slot:
            yield (slot - self.into_ms) / slot / PAST, DECAY
            passed -= slot - self.into_ms
            self.into_ms = 0
            self._fade(DECAY)
        if slots := passed // slot:
            # All whole slots at once, as a geometric series: equal to single slots except for
            # rounding.
            factor = _power(DECAY, min(slots, SLOTS * HALVINGS))
            yield (1 - factor) / factor, factor
            passed -= slots * slot
            self._fade(factor)
        if passed:
            self.into_ms += passed
            yield passed / slot / PAST, 1.0

    def _fade(self, factor: float) -> None:
        self.scale *= factor
        if self.scale < 2.0**-HALVINGS:
            kept = self.scale
            self.scale = 1.0
            faded = (
                (key, {name: each * kept for name, each in amounts.items()})
                for key, amounts in self.absent.items()
            )
            self.absent = {
                key: amounts for key, amounts in faded if max(amounts.values(), default=0.0) >= 1
            }
            self.version += 1

    def leave(self, role: str, framework_id: str, amounts: Mapping[str, float]) -> None:
        """Store the average of a client that leaves; of too many, add up the oldest by role."""
        if not any(amounts.values()):
            return
        self._add((role, framework_id), amounts, 1 / self.scale)
        while len(self.absent) > ABSENT_MAX:
            oldest = next(iter(self.absent))
            given = self.absent.pop(oldest)
            if oldest[1]:
                self._add((oldest[0], ""), given, 1.0)
        self.version += 1

    def _add(self, key: tuple[str, str], amounts: Mapping[str, float], factor: float) -> None:
        kept = self.absent.pop(key, {})
        for name, amount in amounts.items():
            kept[name] = kept.get(name, 0.0) + amount * factor
        self.absent[key] = kept

    def come(self, role: str, framework_id: str, names: Container[str]) -> Mapping[str, float]:
        """Remove and return the average of a client that returns; empty: none is stored.

        `names`: the resources to return; the others stay stored.
        """
        found = self.absent.get((role, framework_id), {}) if framework_id else {}
        taken = {name: amount * self.scale for name, amount in found.items() if name in names}
        for name in taken:
            del found[name]
        if taken:
            self.version += 1
            if not found:
                del self.absent[role, framework_id]
        return taken

    def forget(self, keys: Iterable[tuple[str, str]]) -> None:
        """Delete averages of clients that left, by role path and framework id."""
        for key in keys:
            del self.absent[key]
        self.version += 1

    def of_roles(self) -> dict[str, dict[str, float]]:
        """Return the averages of clients that left, added up by role, in thousandths / `scale`."""
        found: dict[str, dict[str, float]] = {}
        for (role, _), amounts in self.absent.items():
            its = found.setdefault(role, {})
            for name, amount in amounts.items():
                its[name] = its.get(name, 0.0) + amount
        return found


def _power(base: float, exponent: int) -> float:
    """Compute a power by squaring: unlike library functions, with equal bits on all machines."""
    result = 1.0
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result
