"""Tables of the papers' experiments, as `allocator-lab reproduce` prints them."""

from collections.abc import Iterator

from rich.box import HORIZONTALS
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from allocator.cli.render.terminal import Printer
from laboratory.papers.report import AGREES, DIFFERS, NOT_SHOWN, PaperReport, TableCell

_WIDTH_IN_FILES = 100
_NAME_WIDTH = 24  # minimum width of the names of rows; longer ones wrap
_SIGNS = {
    AGREES: "[green]✓[/green]",
    DIFFERS: "[red]✗[/red]",
    NOT_SHOWN: f"[yellow]{NOT_SHOWN}[/yellow]",
}
_EXPLANATION = "computed number, below it the published one with its tolerance; < marks a bound"


def print_report(report: PaperReport) -> None:
    """Print a report: its table, split if it is wider than the terminal, and its notes."""
    console = Printer()
    wide = console if console.is_terminal else Printer(width=_WIDTH_IN_FILES)
    parts = list(_parts(report, wide.width))
    for number, columns in enumerate(parts):
        title = report.title if number == 0 else f"{report.title}, continued"
        wide.print(_table(report, columns, title))
    lines = [_EXPLANATION]
    lines += [f"[{number}] {departure}" for number, departure in enumerate(report.departures, 1)]
    for line in (*lines, *report.notes):
        wide.print(f"- {line}", markup=False, highlight=False)
    wide.print()


def _parts(report: PaperReport, width: int) -> Iterator[range]:
    """Split the columns into ranges that fit into `width` characters, of at least one column."""
    begin, used = 0, _NAME_WIDTH
    for column in range(len(report.columns)):
        needs = _width(report, column) + 2
        if column > begin and used + needs > width:
            yield range(begin, column)
            begin, used = column, _NAME_WIDTH
        used += needs
    yield range(begin, len(report.columns))


def _width(report: PaperReport, column: int) -> int:
    """The minimum width of a column: that of its numbers, and of the longest word of its title."""
    texts = [_text(row.cells[column]) for row in report.rows if column < len(row.cells)]
    lines = [len(line) for text in texts for line in Text.from_markup(text).plain.split("\n")]
    return max([*lines, *map(len, report.columns[column].split())], default=1)


def _table(report: PaperReport, columns: range, title: str) -> Table:
    table = Table(
        title=title,
        caption=report.source,
        title_justify="left",
        caption_justify="left",
        box=HORIZONTALS,
        show_lines=True,
        padding=(0, 1, 0, 0),
    )
    table.add_column("", min_width=_NAME_WIDTH - 2, overflow="fold")
    for column in columns:
        table.add_column(report.columns[column], justify="right", min_width=_width(report, column))
    for row in report.rows:
        name = escape(row.name)
        if row.departure:
            name += f" \\[{report.departures.index(row.departure) + 1}]"
        if columns.start < max(len(row.cells), 1):
            table.add_row(name, *map(_text, row.cells[columns.start : columns.stop]))
    return table


def _text(cell: TableCell) -> str:
    """Format the computed number with its verdict, and below it the published number."""
    computed = cell.computed_text()
    if cell.published is None:
        return f"{computed}\n[dim]{cell.outcome}[/dim]" if cell.outcome else computed
    return f"{computed} {_SIGNS[cell.verdict]}\n[dim]{cell.published_text('±')}[/dim]"
