"""Means with confidence intervals (Student's t)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, and half the width of its confidence interval (NaN where there is one value)."""

    mean: float
    half: float

    @property
    def low(self) -> float:
        """Lower end."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """Upper end."""
        return self.mean + self.half

    def __str__(self) -> str:
        """As ``12.3 ± 0.4``."""
        if np.isnan(self.mean):
            return "-"
        return f"{self.mean:.4g}" + ("" if np.isnan(self.half) else f" ± {self.half:.2g}")


def interval(values: Sequence[float]) -> Interval:
    """Mean of independent values, with its interval; values that are not there (NaN) are left out.

    Examples
    --------
    >>> str(interval([1.0, 2.0, 3.0]))
    '2 ± 2.5'
    >>> str(interval([5.0]))
    '5'
    """
    there = np.array([each for each in values if not np.isnan(each)])
    if not len(there):
        return Interval(float("nan"), float("nan"))
    if len(there) == 1:
        return Interval(float(there[0]), float("nan"))
    half = stats.sem(there) * stats.t.ppf((1 + CONFIDENCE) / 2, len(there) - 1)
    return Interval(float(there.mean()), float(half))
