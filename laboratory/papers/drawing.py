"""The figures of the papers, drawn from reports."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from laboratory.papers.report import Panel, PaperReport, PlotLine
from laboratory.reports.plots import COLOURS, SETTINGS

COLUMNS = 3
"""Limit on the plots in a row."""

_WIDTH = 4.4  # inches per plot
_ENTRY_HEIGHT = 0.17  # inches per line of its legend


def draw_report(path: Path, report: PaperReport) -> None:
    """Draw all panels of a report into one SVG or PNG; it must have some."""
    panels = report.panels
    columns = 2 if len(panels) == 4 else min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    with mpl.rc_context(SETTINGS):
        height = 3.3 + _ENTRY_HEIGHT * max(
            -(-len(panel.lines) // _entries_beside(panel)) for panel in panels
        )
        figure = Figure(figsize=(_WIDTH * columns, height * rows), layout="constrained")
        for number, panel in enumerate(panels):
            _panel(figure.add_subplot(rows, columns, number + 1), panel)
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, dpi=120, metadata=metadata)


def _panel(axes: Axes, panel: Panel) -> None:
    for number, line in enumerate(panel.lines):
        _line(axes, line, COLOURS[number % len(COLOURS)], stepped=panel.stepped)
    axes.set(title=panel.title, xlabel=panel.xlabel, ylabel=panel.ylabel)
    if len(panel.lines) > 1:
        # Below the plot, so that it hides nothing.
        axes.legend(
            fontsize=7,
            frameon=False,
            ncols=_entries_beside(panel),
            loc="upper center",
            bbox_to_anchor=(0.5, -0.16),
        )
    if panel.stepped:
        axes.set_ylim(0, 1.05 * axes.dataLim.ymax)


def _entries_beside(panel: Panel) -> int:
    """How many entries of the legend fit in a row."""
    longest = max((len(line.name) for line in panel.lines), default=0)
    return max(1, min(3, int(_WIDTH / (0.5 + 0.06 * longest))))


def _line(axes: Axes, line: PlotLine, colour: str, *, stepped: bool) -> None:
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
