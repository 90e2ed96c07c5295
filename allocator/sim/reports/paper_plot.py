"""The figures of the papers, drawn from reports."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from allocator.sim.papers.report import Line, Panel, Report
from allocator.sim.reports.palette import COLOURS

COLUMNS = 3
"""Pictures beside each other at most."""

SETTINGS: dict[Any, Any] = {
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    # The same results give the same file, byte by byte.
    "svg.hashsalt": "mesos-allocator",
    "svg.fonttype": "none",
}


def draw(path: Path, report: Report) -> None:
    """Draw all pictures of a report into one SVG or PNG; it must have some."""
    panels = report.panels
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(4.4 * columns, 3.3 * rows), layout="constrained")
        for number, panel in enumerate(panels):
            _panel(figure.add_subplot(rows, columns, number + 1), panel)
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, dpi=120, metadata=metadata)


def _panel(axes: Axes, panel: Panel) -> None:
    for number, line in enumerate(panel.lines):
        _line(axes, line, COLOURS[number % len(COLOURS)], stepped=panel.stepped)
    axes.set(title=panel.title, xlabel=panel.xlabel, ylabel=panel.ylabel)
    if len(panel.lines) > 1:
        axes.legend(fontsize=7, framealpha=0.85, loc="upper right")


def _line(axes: Axes, line: Line, colour: str, *, stepped: bool) -> None:
    style = "--" if line.dashed else "-"
    if line.points:
        bars = line.half or None
        axes.errorbar(
            line.x, line.y, yerr=bars, fmt="o", markersize=3, color=colour, label=line.name
        )
        return
    if stepped:
        axes.step(line.x, line.y, style, where="post", color=colour, label=line.name, linewidth=1)
    else:
        axes.plot(line.x, line.y, style, color=colour, label=line.name, linewidth=1.2)
    if line.half:
        low = [y - half for y, half in zip(line.y, line.half, strict=True)]
        high = [y + half for y, half in zip(line.y, line.half, strict=True)]
        axes.fill_between(line.x, low, high, color=colour, alpha=0.2, linewidth=0)
