"""The interior-point method for alpha-fairness over agents where numbers lie far apart.

`proportional_fairness_agents` eliminates the volumes from each step, which leaves a small system.
Where marginal utilities differ by many orders, and an alpha well above 1 makes that of ordinary
sizes, this system is so nearly singular that float64 cannot solve it. Here volumes stay in it, and
every unknown is a *relative* change, of a volume or of a price: then no coefficient is far above 1,
whatever the sizes. The system is larger, so it is for problems of few frameworks and agents.

Marginal utilities are unknowns of their own, too: it is their logarithms that go straight with
those of the volumes.

References
----------
.. [1] Wright. "Primal-Dual Interior-Point Methods." SIAM 1997, ch. 11 (on the larger system).
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNKNOWNS_MAX = 400
"""Of a step, beyond which it takes too long: pairs, and resources of agents."""

STEPS_MAX = 200
PATH_END = 1e-10
"""Mean complementarity, of the smallest income, at which the method stops."""

_TO_BOUNDARY = 0.99  # the part of the way to the boundary that a step may go


def relative_path(
    matrix: Floats, of: Ints, volume: Floats, weight: Floats, alpha: float
) -> tuple[Floats, Floats]:
    """Volumes of each pair, (P,), and prices of each resource, (Q,).

    Where rounding ends the way, the certificate judges what was found.

    `matrix` (Q, P), >= 0: parts of each resource that a task of each pair takes; the resources are
        1.
    `of` (P,): the framework of each pair.
    `volume` (P,), > 0: where to begin; it fits.
    `weight` (F,), of a sum of 1.
    """
    resources, frameworks = len(matrix), len(weight)
    slack, price = 1 - matrix @ volume, np.full(resources, 1 / resources)
    bar = np.ones(len(of)) / len(of)
    utility = weight * np.bincount(of, volume, frameworks) ** -alpha
    for _ in range(STEPS_MAX):
        total: Floats = np.bincount(of, volume, frameworks).astype(np.float64)
        behind = np.log(weight / utility) - alpha * np.log(total)
        short = utility[of] - price @ matrix + bar
        middle = float((volume @ bar + price @ slack) / (len(of) + resources))
        end = PATH_END * min(1.0, float((utility * total).min()))
        if middle < end and max(np.abs(short * volume).max() / end, np.abs(behind).max()) < 1:
            break
        target, over = 0.1 * middle, 1 - matrix @ volume - slack
        right = -short - target / volume + bar
        found = _solved(
            _system(matrix, of, alpha, (volume, price, bar, slack, utility, total)),
            np.concatenate([right / utility[of] - behind[of], over - target / price + slack]),
        )
        if found is None:
            break
        grown, dearer = found[: len(of)], found[len(of) :]
        step = volume * grown
        steps = (
            step,
            price * dearer,
            target / volume - bar - bar * grown,
            over - matrix @ step,
            utility * (behind - alpha * np.bincount(of, step, frameworks) / total),
        )
        volume, price, bar, slack, utility = moved((volume, price, bar, slack, utility), steps)
    return volume, price


def _system(matrix: Floats, of: Ints, alpha: float, now: tuple[Floats, ...]) -> Floats:
    """What relative changes of volumes and prices do to the conditions, each in parts of itself."""
    volume, price, bar, slack, utility, total = now
    pairs = len(of)
    system = np.zeros((pairs + len(price), pairs + len(price)))
    system[:pairs, :pairs] = -alpha * (of[:, None] == of) * (volume / total[of])
    system[:pairs, :pairs] -= np.diag(bar / utility[of])
    system[:pairs, pairs:] = -(matrix * price[:, None]).T / utility[of, None]
    system[pairs:, :pairs] = matrix * volume
    system[pairs:, pairs:] = -np.diag(slack)
    return system


def _solved(system: Floats, right: Floats) -> Floats | None:
    """Solve with rows and columns whose largest numbers are made 1; None where that fails."""
    with np.errstate(all="ignore"):
        by_row = np.abs(system).max(axis=1)
        even = system / by_row[:, None]
        by_column = np.abs(even).max(axis=0)
        even /= by_column
        if not np.isfinite(even).all():
            return None
        try:
            result = np.linalg.solve(even, right / by_row) / by_column
        except np.linalg.LinAlgError:
            return None
    return result if np.isfinite(result).all() else None


def moved(values: tuple[Floats, ...], steps: tuple[Floats, ...]) -> Iterator[Floats]:
    """Go a step, or as much of it as keeps all values positive."""
    length = min(1.0, _TO_BOUNDARY * min(map(_room, values, steps)))
    return (value + length * step for value, step in zip(values, steps, strict=True))


def _room(value: Floats, step: Floats) -> float:
    """How many steps lead from positive values to the boundary."""
    falling = step < 0
    return float((value[falling] / -step[falling]).min(initial=np.inf))
