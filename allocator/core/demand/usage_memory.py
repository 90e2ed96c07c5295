"""What clients used before: averages over time in which older use counts less.

The weight of a moment halves with every half-life. Time is divided into slots, 64 in a half-life,
and the weight is constant within a slot, so the average of a constant holding is that holding. It
is

    u = (sum over earlier slots j of q^j * integral of slot j + integral of this slot) / norm

with ``q = 2^(-1/64)`` and ``norm = slot * q / (1 - q) + time in this slot``: the time before a
client came counts as zeros. Multiplications and additions of double precision are the same on every
machine; no other operation is used, and errors fade like the past itself.
"""

from collections.abc import Container, Iterator, Mapping

SLOTS = 64
DECAY = 0.9892280131939755
"""2 ** (-1 / SLOTS)."""

PAST = DECAY / (1 - DECAY)
"""The weight of all earlier slots together, in slots."""

ABSENT_MAX = 10_000
"""Averages that are kept of clients that left."""

HALVINGS = 40
"""Use that is this many half-lives old no longer counts."""


class UsageMemory:
    """The clock of all averages, and the averages of clients that left. It outlives sessions.

    Time counts only in sessions: what is used outside of them is unknown.

    `half_life_ms`: of the averages; 0: nothing is kept.
    `into_ms`: how much of the current slot has passed.
    `absent` (dict of (role path, framework id) to amounts by name): averages at the beginning of
        the current slot, in thousandths / `scale`. Without an id: of all frameworks of the role
        whose own averages are not kept any more.
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
        """The length of a slot."""
        return max(self.half_life_ms // SLOTS, 1)

    @property
    def norm(self) -> float:
        """Factor from an average as it is kept, at the beginning of the slot, to the present."""
        return PAST / (PAST + self.into_ms / self.slot_ms)

    def begin_session(self) -> None:
        """Expect another clock."""
        self._clock_ms = -1

    def set_half_life(self, half_life_ms: int) -> None:
        """Change the half-life; averages stay what they are. 0 forgets all of them."""
        self.half_life_ms = half_life_ms
        self.into_ms = min(self.into_ms, self.slot_ms - 1)
        if not half_life_ms:
            self.absent.clear()
            self.into_ms, self.scale = 0, 1.0
            self.version += 1

    def pass_time(self, now_ms: int) -> Iterator[tuple[float, float]]:
        """Let time pass until `now_ms`, on the session's clock; the first time only sets it.

        Yields pairs for the averages of what is held all that time: add it, times the first number,
        to the average; then multiply the average by the second.
        """
        passed = now_ms - self._clock_ms if self._clock_ms >= 0 else 0
        self._clock_ms = now_ms
        slot = self.slot_ms
        if self.into_ms and self.into_ms + passed >= slot:
            yield (slot - self.into_ms) / slot / PAST, DECAY
            passed -= slot - self.into_ms
            self.into_ms = 0
            self._fade(DECAY)
        if slots := passed // slot:
            # A geometric series: as slot by slot, but for rounding.
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
        """Keep the average of a client that leaves; of too many, the oldest become their roles'."""
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
        """Take back the average of a client that returns, of these resources; empty: there is none.

        That of other resources stays here.
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

    def of_roles(self) -> dict[str, dict[str, float]]:
        """The averages of clients that left, by role, in thousandths / `scale`."""
        found: dict[str, dict[str, float]] = {}
        for (role, _), amounts in self.absent.items():
            its = found.setdefault(role, {})
            for name, amount in amounts.items():
                its[name] = its.get(name, 0.0) + amount
        return found


def _power(base: float, exponent: int) -> float:
    """By squaring: the same bits everywhere, unlike a library's function."""
    result = 1.0
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result
