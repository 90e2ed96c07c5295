"""Allocated CPU and memory over time, runs beside each other."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from allocator.core import Floats
from allocator.lab.reports.palette import line_of
from allocator.lab.reports.resource_names import NAMES

Series = tuple[Floats, Floats]

SMOOTH_S = 31

_ENDS = 0.04
"""What part of a run at its beginning and its end may lie below the axis: filling, running out."""


def over_time(path: Path, title: str, runs: Mapping[str, Series], kinds: Sequence[str]) -> None:
    """Draw one picture: a column for each resource, a line for each run.

    The strong lines are means over half a minute, the faint ones what was allocated each second.
    The axis begins where the strong lines need it, the first and last moments of the runs aside.

    path: PNG to write.
    runs (T,) (T, R): seconds; names begin with policy and mode, which say how the lines look.
    kinds: names of the R resources.
    """
    with mpl.rc_context({"font.size": 9, "axes.grid": True, "grid.alpha": 0.3}):
        figure = Figure(figsize=(5.2 * len(kinds), 3.4), layout="constrained")
        for place, kind in enumerate(kinds):
            axes = figure.add_subplot(1, len(kinds), place + 1)
            strong = {name: smooth(part[:, place] * 100) for name, (_, part) in runs.items()}
            low = lowest_of(strong.values())
            for name, (time_s, part) in runs.items():
                look, percent = line_of(name), part[:, place] * 100
                faint = {"color": look["color"], "linewidth": 0.4, "alpha": 0.2}
                axes.step(time_s, percent, where="post", **faint)
                axes.plot(time_s, strong[name], label=name, linewidth=1.3, **look)
            axes.set(
                xlabel="time (s)",
                ylabel=f"allocated {NAMES.get(kind, kind)} (%)" + (f", from {low}" if low else ""),
                ylim=(low, 102),
                xlim=(0, None),
            )
            axes.legend(loc="lower left", framealpha=0.85)
        figure.suptitle(title)
        figure.savefig(path, dpi=120)


def lowest_of(lines: Iterable[Floats]) -> int:
    """Where a percent axis begins so that lines show their range: a multiple of ten."""
    low = 100.0
    for line in lines:
        cut = int(len(line) * _ENDS)
        low = min(low, float(line[cut : len(line) - cut].min()))
    return max(0, int((low - 5) // 10) * 10)


def smooth(values: Floats) -> Floats:
    """Means over `SMOOTH_S` values around each; over those that there are, at the ends."""
    width = min(SMOOTH_S, len(values))
    kernel = np.ones(width)
    return np.convolve(values, kernel, "same") / np.convolve(np.ones(len(values)), kernel, "same")
