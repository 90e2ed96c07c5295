"""Pages of the papers (``docs/papers``), written from results kept as JSON.

`allocator-lab reproduce pages` computes experiments, stores each result next to the pages, and
writes the pages from the stored results. All numbers on the pages are computed. A stored result
contains its seed and number of trials.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from laboratory.papers.report import AGREES, DIFFERS, NOT_SHOWN, PaperReport, TableCell

RESULTS = "results"
SIGNS = {AGREES: "✓", DIFFERS: "✗", NOT_SHOWN: NOT_SHOWN}

PAPERS: Mapping[str, tuple[str, str]] = {
    "drf": ("Dominant Resource Fairness", "Ghodsi et al., NSDI 2011"),
    "kesidis": (
        "Scheduling Distributed Resources in Heterogeneous Private Clouds",
        "Kesidis et al., MASCOTS 2018",
    ),
    "choosy": (
        "Choosy: Max-Min Fair Sharing for Datacenter Jobs with Constraints",
        "Ghodsi et al., EuroSys 2013",
    ),
    "pf": (
        "Enhanced Cluster Computing Performance through Proportional Fairness",
        "Bonald and Roberts, Performance Evaluation 2014",
    ),
    "quincy": (
        "Quincy: Fair Scheduling for Distributed Computing Clusters",
        "Isard et al., SOSP 2009",
    ),
}
"""Pages by the first word of the experiments' names: title and source."""

_REPORT = TypeAdapter(PaperReport)

Kept = tuple[PaperReport, Mapping[str, int]]
"""A report, and the options that it was computed with."""


def page_of(name: str) -> str:
    """The page of an experiment: the first word of its name, except for `ps-dsf-...`."""
    return "kesidis" if name.startswith("ps-dsf-") else name.split("-", maxsplit=1)[0]


def keep(directory: Path, report: PaperReport, options: Mapping[str, int]) -> None:
    from laboratory.papers.drawing import draw_report as draw

    results = directory / RESULTS
    results.mkdir(parents=True, exist_ok=True)
    text = f'{{"options": {json.dumps(dict(options))},\n"report": {_in_lines(asdict(report))}}}\n'
    (results / f"{report.name}.json").write_text(text, encoding="utf-8")
    if report.panels:
        draw(directory / f"{report.name}.svg", report)


def _in_lines(data: Mapping[str, Any]) -> str:
    """JSON with one line for each entry, and for each element of a list in an entry."""
    entries = []
    for key, value in data.items():
        if isinstance(value, list | tuple):
            inner = ",\n".join(json.dumps(each, ensure_ascii=False) for each in value)
            entries.append(f'"{key}": [\n{inner}]')
        else:
            entries.append(f'"{key}": {json.dumps(value, ensure_ascii=False)}')
    return "{" + ",\n".join(entries) + "}"


def load(directory: Path, name: str) -> Kept | None:
    """Read a kept result; None if there is none."""
    path = directory / RESULTS / f"{name}.json"
    if not path.is_file():
        return None
    data = json.loads(path.read_text(encoding="utf-8"))
    return _REPORT.validate_python(data["report"]), data["options"]


def form(report: PaperReport) -> tuple[Any, ...]:
    """The structure of a report, without its numbers; a stored report of another form is stale."""
    lines = [(panel.title, [line.name for line in panel.lines]) for panel in report.panels]
    shape = [(row.name, len(row.cells)) for row in report.rows]
    return report.name, report.title, report.source, report.columns, shape, lines


def write(directory: Path, names: Sequence[str]) -> list[Path]:
    """Write the pages of these experiments from kept results; returns the files."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for page in dict.fromkeys(page_of(name) for name in names):
        path = directory / f"{page}.md"
        path.write_text(render(directory, page, names), encoding="utf-8")
        written.append(path)
    return written


def render(directory: Path, page: str, names: Sequence[str]) -> str:
    title, source = PAPERS[page]
    parts = [
        f"# {title}",
        (
            f"This page compares published results with results computed here: {source}. "
            "Written by `allocator-lab reproduce pages`; no number on it was entered by hand."
        ),
        (
            "Each cell of a table has the computed value; for a mean over seeds, also its 95 % "
            "confidence interval. The published value follows in brackets, with a tolerance. ✓: "
            "the whole interval is within the tolerance. ✗: no part of it is. No mark: a part of "
            "it is, so these seeds do not decide. A published upper bound is written with <."
        ),
    ]
    here = [name for name in names if page_of(name) == page]
    parts += [_section(name, load(directory, name)) for name in here]
    return "\n\n".join(parts) + "\n"


def _section(name: str, kept: Kept | None) -> str:
    if kept is None:
        return f"## {name}\n\nNot computed here; `allocator-lab reproduce {name}` computes it."
    report, options = kept
    lines = [f"## {report.title}", "", f"{report.source}."]
    given = "".join(f" --{key} {value}" for key, value in options.items())
    lines += ["", f"`allocator-lab reproduce {name}{given}`", ""]
    lines += ["| | " + " | ".join(report.columns) + " |", "|---|" + "---:|" * len(report.columns)]
    departures = report.departures
    for row in report.rows:
        head = row.name
        if row.departure:
            head += f" [{departures.index(row.departure) + 1}]"
        cells = [cell_text(cell) for cell in row.cells]
        cells += [""] * (len(report.columns) - len(cells))
        lines.append(f"| {head} | " + " | ".join(cells) + " |")
    if report.panels:
        lines += ["", f"![{report.title}]({report.name}.svg)"]
    lines.append("")
    lines += [f"- [{number}] {text}" for number, text in enumerate(departures, 1)]
    lines += [f"- {note}" for note in report.notes]
    return "\n".join(lines)


def cell_text(cell: TableCell) -> str:
    """A cell on a page.

    Examples
    --------
    >>> cell_text(TableCell(1.61, 2.0, 0.5, half=0.02))
    '1.61 ± 0.02 ✓ (2 ± 0.5)'
    >>> cell_text(TableCell(-0.3, half=0.1, outcome="contrary"))
    '-0.3 ± 0.1 contrary'
    """
    text = cell.computed_text()
    if cell.published is None:
        return f"{text} {cell.outcome}".rstrip()
    off = f", off by {cell.computed - cell.published:+.3g}" if cell.verdict == DIFFERS else ""
    return f"{text} {SIGNS[cell.verdict]} ({cell.published_text()}{off})"
