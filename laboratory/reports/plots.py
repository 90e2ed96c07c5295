"""Plots: styles of policies and modes, and runs over time."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from allocator.core import Floats
from allocator.policies import POLICIES
from laboratory.resources import NAMES

# Styles of policies and modes, the same in all plots.
#
# The first eight colours are those of Okabe and Ito, which colour-blind readers can distinguish.

COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#b8a800"),
    *("#7f7f7f", "#8c564b", "#6a3d9a", "#b2182b", "#1b7837"),
)

_DASHED = "oblivious"

SETTINGS: dict[Any, Any] = {
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    # Makes the file a function of the results, byte for byte.
    "svg.hashsalt": "mesos-allocator",
    "svg.fonttype": "none",
}


def colour_of(policy: str) -> str:
    """Give a policy's colour; a plugin's is derived from its name."""
    known = list(POLICIES)
    place = known.index(policy) if policy in known else zlib.crc32(policy.encode())
    return COLOURS[place % len(COLOURS)]


def line_of(name: str) -> dict[str, Any]:
    """Give colour and line style to a run whose name begins with policy and mode.

    Examples
    --------
    >>> line_of("drf oblivious")
    {'color': '#0072b2', 'linestyle': '--'}
    >>> line_of("drf characterised staged")
    {'color': '#0072b2', 'linestyle': '-'}
    """
    policy, _, rest = name.partition(" ")
    return {"color": colour_of(policy), "linestyle": "--" if rest.startswith(_DASHED) else "-"}


def bar_of(name: str) -> dict[str, Any]:
    """Give colour and hatching to a bar of such a run."""
    look = line_of(name)
    return {"color": look["color"], "hatch": "//" if look["linestyle"] == "--" else ""}


# Allocated CPU and memory over time, one plot beside another.

Series = tuple[Floats, Floats]


@contextmanager
def beside(path: Path, size: tuple[float, float], names: Sequence[str]) -> Iterator[list[Axes]]:
    """Draw one PNG with a plot for each name, side by side; `size` in inches is of the whole."""
    with mpl.rc_context({"font.size": 9, "axes.grid": True, "grid.alpha": 0.3}):
        figure = Figure(figsize=size, layout="constrained")
        yield [figure.add_subplot(1, len(names), place + 1) for place in range(len(names))]
        figure.savefig(path, dpi=120)


def finish(axes: Axes, what: str, high: float) -> None:
    """Label the axes of a plot of percentages over time."""
    axes.set(xlabel="time (s)", ylabel=what, ylim=(0, high), xlim=(0, None))
    axes.legend(loc="lower left", framealpha=0.85)


SMOOTH_S = 31


def over_time(path: Path, title: str, runs: Mapping[str, Series], kinds: Sequence[str]) -> None:
    """Draw one picture: a column for each resource, a line for each run.

    Strong lines are means over half a minute, faint ones the values of each second.

    path: PNG to write.
    runs (T,) (T, R): seconds, and allocated parts; names begin with policy and mode, which
        determine the style.
    kinds: names of the R resources.
    """
    with beside(path, (5.2 * len(kinds), 3.4), kinds) as pictures:
        for place, (kind, axes) in enumerate(zip(kinds, pictures, strict=True)):
            for name, (time_s, part) in runs.items():
                look, percent = line_of(name), part[:, place] * 100
                faint = {"color": look["color"], "linewidth": 0.4, "alpha": 0.2}
                axes.step(time_s, percent, where="post", **faint)
                axes.plot(time_s, smooth(percent), label=name, linewidth=1.3, **look)
            finish(axes, f"allocated {NAMES.get(kind, kind)} (%)", 102)
        pictures[0].figure.suptitle(title)


def smooth(values: Floats) -> Floats:
    """Means over `SMOOTH_S` values around each; over fewer at the ends."""
    width = min(SMOOTH_S, len(values))
    kernel = np.ones(width)
    return np.convolve(values, kernel, "same") / np.convolve(np.ones(len(values)), kernel, "same")
