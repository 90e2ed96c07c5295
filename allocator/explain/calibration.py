"""Corrects forecasts of next offers by what came of earlier ones.

Each earlier forecast has a ratio: the time until the offer came, divided by the p50 of the
forecast. The median and the 95th percentile of recent ratios, times the p50 of a new forecast, are
its corrected p50 and p95 (split conformal prediction [1]_). The forecast p95 itself is not used,
because the end of a task that runs longer than all known ones may be arbitrarily late.

Waits that have not ended count as longer than they are now (Kaplan-Meier estimate [2]_). Forecasts
during one wait depend on each other, so the rank of the 95th percentile is computed from the number
of waits. A forecast is corrected by those of the most similar sizes of which enough waits ended.

Frameworks influence what comes of their forecasts: one that changes its demand after a forecast
makes it wrong. Therefore a principal's forecasts are corrected by its own earlier ones once there
are enough. Before, they are corrected by those of all principals, of which each counts for few.

References
----------
.. [1] Lei, G'Sell, Rinaldo, Tibshirani, Wasserman. "Distribution-free predictive inference for
   regression." Journal of the American Statistical Association 113, 2018, sec. 2.2.
.. [2] Kaplan, Meier. "Nonparametric estimation from incomplete observations." Journal of the
   American Statistical Association 53, 1958.
"""

from collections import Counter, deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Generic, NamedTuple, TypeVar

from allocator.explain.next_offer import NextOffer
from allocator.plain import counted

Who = TypeVar("Who", bound=Hashable)

WINDOW = 200
"""Maximum number of outcomes to remember of a principal's forecasts of one size."""

PRINCIPALS_MAX = 64
"""Maximum number of principals whose outcomes are remembered: those with the latest outcomes."""

OF_EACH_MAX = 20
"""Maximum number of a principal's outcomes that correct forecasts of others."""

OPEN_MAX = 256
"""Maximum number of forecasts whose offer is awaited."""

WAITS_MIN = 5
"""Minimum number of ended waits for a correction."""

WAITS_ENOUGH = 19
"""Number of ended waits with which a correction needs no further sizes, and no other principals:
fewer waits show no p95."""

SIZES = 12
"""Sizes of forecasts: below 2, 4, 8, ... allocation intervals; the last has no limit."""


@dataclass(slots=True)
class ForecastResults:
    """Outcomes of forecasts of next offers.

    `early`, `held`, `late`: the offer was decided before the p50, from then to the p95, and after
        it or not yet.
    `withdrawn`: the client left, or no longer wanted offers.
    """

    early: int = 0
    held: int = 0
    late: int = 0
    withdrawn: int = 0


class Outcome(NamedTuple):
    """What came of a forecast.

    `ratio`: the time until the offer, or until the end of observation, divided by the p50.
    `ended`: whether the offer came.
    `wait`: number of the wait during which the forecast was made.
    `size`: of the forecast, see `size_of`.
    """

    ratio: float
    ended: bool
    wait: int
    size: int = 0


class Correction(NamedTuple):
    """Factors of the forecast p50 that give the corrected p50 and p95.

    `forecasts`, `waits`: number of ended ones that it rests on.
    """

    p50: float
    p95: float
    forecasts: int
    waits: int


def correction(outcomes: Sequence[Outcome]) -> Correction | None:
    """Compute the correction by these outcomes; None: no wait has ended."""
    ended = [each for each in outcomes if each.ended]
    if not ended:
        return None
    waits = len({each.wait for each in ended})
    rank = -(-95 * (waits + 1) // 100)
    rows = sorted(outcomes, key=lambda each: (each.ratio, not each.ended))
    return Correction(
        _percentile(rows, 0.5), _percentile(rows, min(rank / waits, 1.0)), len(ended), waits
    )


def _percentile(rows: Sequence[Outcome], part: float) -> float:
    """Return the ratio that this part does not exceed; the largest ratio if that is not known.

    `rows`: ascending; of equal ratios, ended waits come first.
    """
    exceeding, left = 1.0, len(rows)
    for each in rows:
        if each.ended:
            exceeding *= 1 - 1 / left
            if exceeding <= 1 - part + 1e-9:
                return each.ratio
        left -= 1
    return rows[-1].ratio


def _by_nearest(outcomes: Sequence[Outcome], size: int) -> Correction | None:
    """Compute the correction by outcomes of the nearest sizes with enough waits, or by all."""
    found = None
    for reach in range(SIZES):
        found = correction([each for each in outcomes if abs(each.size - size) <= reach])
        if found is not None and found.waits >= WAITS_ENOUGH:
            break
    return found


@dataclass(frozen=True)
class Corrections:
    """What forecasts are corrected by; empty: by nothing.

    `known`: outcomes by principal, in the order of their waits.
    """

    known: Mapping[str, Sequence[Outcome]] = field(default_factory=dict)
    _found: dict[tuple[str | None, int], Correction | None] = field(
        default_factory=dict, compare=False, repr=False
    )

    def corrected(self, offer: NextOffer, principal: str = "") -> NextOffer:
        """Correct a principal's forecast; its text says how many earlier ones that rests on."""
        if offer.expected_ms < 0:
            return offer
        its = self.of(principal, size_of(offer))
        if its is None:
            return offer
        expected_ms = max(round(its.p50 * offer.base_ms), offer.interval_ms)
        by = counted(its.forecasts, "earlier forecast")
        return replace(
            offer,
            expected_ms=expected_ms,
            latest_ms=max(round(its.p95 * offer.base_ms), expected_ms),
            text=f"{offer.text}; corrected by what came of {by}",
        )

    def of(self, principal: str, size: int) -> Correction | None:
        """Return the correction of a principal's forecasts of one size; None: too few waits."""
        key = (principal if principal in self.known else None, size)
        if key not in self._found:
            its = _by_nearest(self.known.get(principal, ()), size)
            if its is None or its.waits < WAITS_ENOUGH:
                few = (each[-OF_EACH_MAX:] for each in self.known.values())
                its = _by_nearest([*chain.from_iterable(few)], size)
            self._found[key] = its if its is not None and its.waits >= WAITS_MIN else None
        return self._found[key]


def size_of(offer: NextOffer) -> int:
    """Return the size of a forecast: its p50 in allocation intervals, as a power of two."""
    return min((offer.base_ms // max(offer.interval_ms, 1)).bit_length() - 1, SIZES - 1)


@dataclass(slots=True)
class _Open(Generic[Who]):
    """A forecast whose offer has not come; times on the master's clock.

    `due_ms`: its p95.
    `is_counted`: whether its result is counted: it is late, or has no p95.
    """

    who: Who
    principal: str
    wait: int
    made_ms: int
    size: int
    base_ms: int
    expected_ms: int
    due_ms: int
    is_counted: bool

    def outcome(self, now_ms: int, *, ended: bool) -> Outcome:
        return Outcome((now_ms - self.made_ms) / self.base_ms, ended, self.wait, self.size)


class Calibration(Generic[Who]):
    """Remembers what came of forecasts, to correct later ones.

    `results`: outcomes of corrected forecasts.
    """

    def __init__(self) -> None:
        self.results = ForecastResults()
        self._open: list[_Open[Who]] = []
        self._known: dict[str, list[deque[Outcome]]] = {}  # the latest outcomes are of the last
        self._waits = count()

    def awaited(self, now_ms: int) -> set[Who]:
        """Return the clients with a forecast whose p50 has not passed."""
        return {each.who for each in self._open if now_ms < each.expected_ms}

    def everyone(self) -> list[Who]:
        """List the clients whose offer is awaited."""
        return list(dict.fromkeys(each.who for each in self._open))

    def expect(
        self,
        who: Who,
        now_ms: int,
        offer: NextOffer,
        corrections: Corrections,
        principal: str = "",
    ) -> NextOffer:
        """Remember a client's forecast until its offer comes, and return it corrected."""
        found = corrections.corrected(offer, principal)
        if found.expected_ms < 0:
            return found
        if len(self._open) >= OPEN_MAX:
            self._drop_one(now_ms, principal)
        if len(self._open) < OPEN_MAX:
            wait = next((each.wait for each in self._open if each.who == who), None)
            self._open.append(
                _Open(
                    who=who,
                    principal=principal,
                    wait=next(self._waits) if wait is None else wait,
                    made_ms=now_ms,
                    size=size_of(offer),
                    base_ms=offer.base_ms,
                    expected_ms=now_ms + found.expected_ms,
                    due_ms=now_ms + found.latest_ms,
                    is_counted=found.latest_ms < 0,
                )
            )
        return found

    def came(self, who: Who, when_ms: int) -> None:
        """Note when a client's offer was decided; forecasts made at that time are for the next."""
        for each in self._of(who, when_ms):
            if not each.is_counted:
                self.results.early += when_ms < each.expected_ms
                self.results.held += each.expected_ms <= when_ms <= each.due_ms
                self.results.late += when_ms > each.due_ms
            self._remember(each, each.outcome(when_ms, ended=True))

    def left(self, who: Who, now_ms: int) -> None:
        """Note that a client left, or wants no offers any more."""
        for each in self._of(who):
            self.results.withdrawn += not each.is_counted
            if now_ms > each.made_ms:
                self._remember(each, each.outcome(now_ms, ended=False))

    def tick(self, now_ms: int) -> None:
        """Count forecasts that are late by now."""
        for each in self._open:
            if not each.is_counted and now_ms > each.due_ms:
                each.is_counted = True
                self.results.late += 1

    def corrections(self, now_ms: int) -> Corrections:
        """Return the corrections by everything that is known now."""
        known = {who: [*chain.from_iterable(sizes)] for who, sizes in self._known.items()}
        for each in self._open[-WINDOW:]:
            known.setdefault(each.principal, []).append(each.outcome(now_ms, ended=False))
        for outcomes in known.values():
            outcomes.sort(key=lambda each: each.wait)
        return Corrections(known)

    def _of(self, who: Who, before_ms: int | None = None) -> list[_Open[Who]]:
        """Remove and return a client's forecasts; `before_ms`: those made before."""
        found: list[_Open[Who]] = []
        rest: list[_Open[Who]] = []
        for each in self._open:
            its = each.who == who and (before_ms is None or each.made_ms < before_ms)
            (found if its else rest).append(each)
        self._open = rest
        return found

    def _drop_one(self, now_ms: int, principal: str) -> None:
        """No longer await a forecast of the principal that has the most: the oldest that is late.

        If none is late, the oldest one, but only to make room for another principal.
        """
        most, _ = Counter(each.principal for each in self._open).most_common(1)[0]
        mine = [each for each in self._open if each.principal == most]
        late = [each for each in mine if each.is_counted]
        if not late and most == principal:
            return
        dropped = (late or mine)[0]
        self._open.remove(dropped)
        self.results.withdrawn += not dropped.is_counted
        self._remember(dropped, dropped.outcome(now_ms, ended=False))

    def _remember(self, each: _Open[Who], outcome: Outcome) -> None:
        sizes = self._known.pop(each.principal, None)
        if sizes is None:
            sizes = [deque[Outcome](maxlen=WINDOW) for _ in range(SIZES)]
        self._known[each.principal] = sizes
        sizes[each.size].append(outcome)
        if len(self._known) > PRINCIPALS_MAX:
            del self._known[next(iter(self._known))]
