"""The command `reproduce`: tables beside the published numbers, verdicts, exit codes."""

import json

import pytest
from typer.testing import CliRunner

from laboratory.cli import reproduce
from laboratory.cli.app import app
from laboratory.cli.render.paper_tables import print_report
from laboratory.papers import report
from laboratory.papers.choosy import macro
from laboratory.papers.report import PaperReport, Row, TableCell

QUICK = ("kesidis-table-1", "kesidis-table-2", "drf-example", "pf-examples")


def call(*arguments: str):
    """Run the command line."""
    return CliRunner().invoke(app, ["reproduce", *arguments])


def made_up(*rows: Row) -> PaperReport:
    """An empty report."""
    return PaperReport("made-up", "Title", "Author, sec. 1", ("a", "b"), rows, ("A note.",))


def test_list_names_every_experiment() -> None:
    assert json.loads(call("list", "--json").stdout).keys() == reproduce.EXPERIMENTS.keys()
    assert call("list").stdout.count("\n") == len(reproduce.EXPERIMENTS)


@pytest.mark.parametrize("name", QUICK)
def test_a_table_shows_its_source_and_agrees(name: str) -> None:
    result = call(name)
    assert result.exit_code == 0
    assert "sec." in result.stdout
    assert "✓" in result.stdout


def test_json_carries_what_the_table_shows() -> None:
    plain = json.loads(call("kesidis-table-1", "--json", "--trials", "50").stdout)
    assert plain["columns"] == ["x(1,1)", "x(1,2)", "x(2,1)", "x(2,2)", "total"]
    by_name = {row["name"]: row for row in plain["rows"]}
    assert [cell["computed"] for cell in by_name["rPS-DSF"]["cells"]] == [19, 2, 2, 19, 42]
    assert by_name["BF-DRF"]["agrees"] is False
    assert by_name["BF-DRF"]["departure"]
    assert plain["holds"] is True


def test_the_seed_decides_the_numbers() -> None:
    first, again, other = (
        call("kesidis-table-2", "--json", "--trials", "20", "--seed", seed).stdout
        for seed in ("1", "1", "2")
    )
    assert first == again != other


def test_an_unexplained_difference_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = made_up(Row("row", (TableCell(1.0, 2.0, 0.5), TableCell(1.0))))
    monkeypatch.setattr(reproduce, "run", lambda *_, **__: wrong)
    result = call("drf-example")
    assert result.exit_code == 1
    assert "✗" in result.stdout
    assert "made-up" in result.stderr


def test_an_explained_difference_is_shown_with_its_reason(monkeypatch) -> None:
    explained = made_up(
        Row("row", (TableCell(1.0, 2.0, 0.5),), departure="The paper divides by zero.")
    )
    monkeypatch.setattr(reproduce, "run", lambda *_, **__: explained)
    result = call("drf-example")
    assert result.exit_code == 0
    assert "row [1]" in result.stdout
    assert "[1] The paper divides by zero." in result.stdout


def test_wrong_usage_is_refused() -> None:
    assert call("kesidis-table-1", "--trials", "1").exit_code == 2
    assert call("kesidis-table-9").exit_code == 2


@pytest.mark.parametrize(
    ("cell", "agrees"),
    [
        (TableCell(1.04, 1.0, 0.05), True),
        (TableCell(1.06, 1.0, 0.05), False),
        (TableCell(0.94, 1.0, 0.05), False),
        (TableCell(0.5, 1.0, at_most=True), True),
        (TableCell(1.5, 1.0, at_most=True), False),
        (TableCell(float("nan"), 1.0, 5.0), False),
        (TableCell(7.0), True),
        (TableCell(0.1 + 0.2, 0.3), True),
    ],
)
def test_a_cell_agrees_within_its_tolerance(cell: TableCell, agrees: bool) -> None:
    assert cell.agrees is agrees


@pytest.mark.parametrize(
    ("half", "verdict"), [(0.01, "agrees"), (0.2, "not shown"), (1e9, "not shown")]
)
def test_an_interval_that_is_wider_than_the_effect_shows_nothing(half, verdict) -> None:
    """However close the mean: the noise of few seeds is no agreement."""
    assert TableCell(1.02, 1.0, 0.05, half=half).verdict == verdict
    assert TableCell(0.9, 1.0, at_most=True, half=half).verdict == verdict


def test_a_mean_far_from_what_is_published_differs() -> None:
    assert TableCell(1.5, 1.0, 0.05, half=0.1).verdict == "differs"
    assert report.averaged([1.0], 1.0, 0.1).verdict == "not shown"
    assert report.averaged([1.0, 2.0], 1.5, 0.1).verdict == "not shown"


def test_two_trials_of_the_macrobenchmark_show_nothing_of_short_jobs() -> None:
    """Its tolerance grew with the noise, up to 1.8: any result agreed."""
    cell = macro._slowdown([1.0, 1.4], 1.07)
    assert cell.tolerance == macro._TOLERANCE
    assert cell.verdict == "not shown"


def test_a_report_holds_when_every_row_agrees_or_is_explained() -> None:
    good, bad = Row("good", report.beside([1.0], [1.0])), Row("bad", (TableCell(1.0, 2.0),))
    assert made_up(good).holds
    assert not made_up(good, bad).holds
    assert made_up(good, Row("bad", (TableCell(1.0, 2.0),), departure="Because.")).holds
    assert made_up(good, bad).row("bad") is bad


def test_a_wide_table_comes_in_parts_and_loses_nothing(capsys) -> None:
    columns = tuple(f"column-{at}" for at in range(12))
    cells = tuple(TableCell(1234.5 + at, half=200.0) for at in range(12))
    name = "the name of a row that has more words than fit beside numbers"
    rows = Row(name, cells), Row("only the first", cells[:1], departure="It is one.")
    print_report(PaperReport("made-up", "Title", "Author, sec. 1", columns, rows))
    words = capsys.readouterr().out.split()
    assert all(cell.computed_text().split()[0] in words for cell in cells)
    assert all(words.count(column) == 1 for column in columns)
    assert all(word in words for word in name.split())
    assert words.count("[1]") == 2  # the row, and the reason
    assert "Title," in words


def test_numbers_are_written_without_powers_of_ten() -> None:
    assert TableCell(2345.6, half=234.5).computed_text() == "2346 ± 234"
    assert TableCell(2.5, half=1e-15).computed_text() == "2.5 ± 0"
    assert TableCell(1.0, 5239.0, 785.85).published_text() == "5239 ± 786"
    assert TableCell(1.0, 7.64, at_most=True).published_text() == "<7.64"
    assert TableCell(0.5, half=0.0123).computed_text() == "0.5 ± 0.012"
