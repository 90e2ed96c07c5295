"""How long tasks take, drawn by law and mean."""

import numpy as np

from allocator.lab.scenarios.schema import Duration


def draw_ms(duration: Duration, count: int, rng: np.random.Generator) -> list[int]:
    """Draw durations in ms; none is shorter than 1.

    The mean is `mean_s` under every law. Pareto: the shortest is ``mean * (alpha - 1) / alpha``.
    """
    mean = duration.mean_s * 1000
    match duration.law:
        case "constant":
            drawn = np.full(count, mean)
        case "exponential":
            drawn = rng.exponential(mean, count)
        case "erlang":
            drawn = rng.gamma(duration.phases, mean / duration.phases, count)
        case "lognormal":
            sigma = np.sqrt(np.log1p(duration.variation**2))
            drawn = rng.lognormal(np.log(mean) - sigma**2 / 2, sigma, count)
        case "pareto":
            least = mean * (duration.alpha - 1) / duration.alpha
            drawn = least * (1 - rng.random(count)) ** (-1 / duration.alpha)
    return np.maximum(np.rint(drawn), 1).astype(np.int64).tolist()
