"""Advice as a self-contained HTML page."""

from io import StringIO
from pathlib import Path

import matplotlib as mpl
import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.figure import Figure

from allocator.plain import printable
from laboratory.advise import words
from laboratory.advise.advising import AdviceReport
from laboratory.advise.comparing import Comparison
from laboratory.reports.plots import SETTINGS, line_of

SHOWN = 16
"""Number of candidates drawn, the best ones."""


def write(path: Path, report: AdviceReport) -> None:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined
    )
    environment.finalize = _clean
    text = environment.get_template("page.html").render(
        headline=report.advice.headline,
        sentences=list(words.sentences(report)),
        configuration=words.to_paste(report),
        quotas=words.quota_calls(report),
        picture=picture(report.compared),
        tables=list(words.tables(report)),
        about=words.about(report),
        model=words.model(report),
        guessed=words.GUESSED,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _clean(value: object) -> object:
    """Remove control characters of a framework's name."""
    if type(value) is str:
        return printable(value, also="\n")
    return value


def picture(compared: tuple[Comparison, ...]) -> str:
    """Draw how much earlier or later tasks are done, as SVG."""
    shown = compared[:SHOWN][::-1]
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(8.5, 0.9 + 0.28 * len(shown)), layout="constrained")
        axes = figure.add_subplot()
        for row, each in enumerate(shown):
            by, colour = each.stay.by, line_of(each.name)["color"]
            known = not np.isnan(by.half)
            axes.errorbar(
                by.mean * 100,
                row,
                xerr=by.half * 100 if known else None,
                fmt="o",
                markersize=5,
                color=colour,
                markerfacecolor=colour if known else "white",
            )
        axes.axvline(0, color="black", linewidth=0.8)
        # Escape dollars, which would enclose a formula.
        axes.set_yticks(range(len(shown)), [each.name.replace("$", r"\$") for each in shown])
        axes.set_xlabel("tasks done earlier (left) or later (right), %")
        out = StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]
