"""Allocated CPU and memory over time, runs beside each other."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from allocator.core import Floats

Series = tuple[Floats, Floats]

SMOOTH_S = 31
COLOURS = ("C0", "C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9")

NAMES = {"cpus": "CPU", "mem": "memory", "gpus": "GPU"}


def over_time(path: Path, title: str, runs: Mapping[str, Series], kinds: Sequence[str]) -> None:
    """Draw one picture: a column for each resource, a line for each run.

    The strong lines are means over half a minute, the faint ones what was allocated each second.

    Parameters
    ----------
    path : Path
        PNG to write.
    title : str
    runs : mapping of str to (T,) seconds, each one later, and (T, R) parts, 0 to 1
        At most ten.
    kinds : sequence of str
        Names of the R resources.
    """
    with mpl.rc_context({"font.size": 9, "axes.grid": True, "grid.alpha": 0.3}):
        figure = Figure(figsize=(5.2 * len(kinds), 3.4), layout="constrained")
        for place, kind in enumerate(kinds):
            axes = figure.add_subplot(1, len(kinds), place + 1)
            for colour, (name, (time_s, part)) in zip(COLOURS, runs.items(), strict=False):
                percent = part[:, place] * 100
                axes.step(time_s, percent, where="post", color=colour, linewidth=0.5, alpha=0.35)
                axes.plot(time_s, smooth(percent), color=colour, label=name, linewidth=1.3)
            axes.set(
                xlabel="time (s)",
                ylabel=f"allocated {NAMES.get(kind, kind)} (%)",
                ylim=(0, 105),
                xlim=(0, None),
            )
            axes.legend(loc="lower left", framealpha=0.85)
        figure.suptitle(title)
        figure.savefig(path, dpi=120)


def smooth(values: Floats) -> Floats:
    """Means over `SMOOTH_S` values around each; over those that there are, at the ends."""
    width = min(SMOOTH_S, len(values))
    kernel = np.ones(width)
    return np.convolve(values, kernel, "same") / np.convolve(np.ones(len(values)), kernel, "same")
