"""The generated pages: all figures come from stored results in the current format."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from laboratory.cli import reproduce
from laboratory.cli.app import app
from laboratory.papers import pages
from laboratory.papers.report import Panel, PaperReport, PlotLine, Row, TableCell

DOCS = Path(__file__).parents[2] / "docs" / "papers"
QUICK = ("drf-example", "pf-examples", "pf-fig-4")


def made_up(name="drf-made-up"):
    line = PlotLine("a line", (0.0, 1.0), (1.0, 2.0), (0.1, 0.2))
    return PaperReport(
        name,
        "A title",
        "Author, sec. 1",
        ("a", "b"),
        (
            Row("agrees", (TableCell(1.0, 1.0), TableCell(2.0, half=0.5))),
            Row("differs", (TableCell(1.0, 2.0, 0.25),), departure="The paper divides by zero."),
        ),
        ("A note.",),
        (Panel("picture", "x", "y", (line,)),),
    )


def test_the_pages_say_what_was_kept():
    """If not, `allocator-lab reproduce pages` rewrites them without computing anything."""
    for page in pages.PAPERS:
        text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
        assert text == pages.render(DOCS, page, list(reproduce.EXPERIMENTS)), page


def test_every_kept_result_is_of_an_experiment_and_has_its_figure():
    for path in (DOCS / pages.RESULTS).glob("*.json"):
        assert path.stem in reproduce.EXPERIMENTS
        kept = pages.load(DOCS, path.stem)
        assert kept is not None
        report, options = kept
        assert report.name == path.stem
        assert options.keys() <= set(reproduce.EXPERIMENTS[path.stem].parameters)
        assert (DOCS / f"{path.stem}.svg").is_file() is bool(report.panels)
        assert report.holds


@pytest.mark.parametrize("name", QUICK)
def test_a_result_that_was_kept_is_what_is_computed_today(name):
    kept = pages.load(DOCS, name)
    assert kept is not None
    now = reproduce.run(name, **kept[1])
    assert pages.form(kept[0]) == pages.form(now)
    for before, after in zip(kept[0].rows, now.rows, strict=True):
        was, is_now = ([cell.computed for cell in row.cells] for row in (before, after))
        assert was == pytest.approx(is_now, rel=1e-6)


def test_a_result_is_read_back_as_it_was_kept(tmp_path):
    pages.keep(tmp_path, made_up(), {"seed": 3})
    assert pages.load(tmp_path, "drf-made-up") == (made_up(), {"seed": 3})
    before = (tmp_path / "drf-made-up.svg").read_bytes()
    pages.keep(tmp_path, made_up(), {"seed": 3})
    assert (tmp_path / "drf-made-up.svg").read_bytes() == before


def test_a_page_shows_verdicts_departures_and_what_is_missing(tmp_path):
    pages.keep(tmp_path, made_up(), {"seed": 3})
    text = pages.render(tmp_path, "drf", ["drf-made-up", "drf-other", "choosy-fig-6"])
    assert "`allocator-lab reproduce drf-made-up --seed 3`" in text
    assert "| agrees | 1 ✓ (1) | 2 ± 0.5 |" in text
    assert "| differs [1] | 1 ✗ (2 ± 0.25, off by -1) |  |" in text
    assert "- [1] The paper divides by zero." in text
    assert "![A title](drf-made-up.svg)" in text
    assert "Not computed here; `allocator-lab reproduce drf-other` computes it." in text
    assert "choosy" not in text


def test_another_form_is_noticed():
    assert pages.form(made_up()) == pages.form(made_up())
    assert pages.form(made_up()) != pages.form(made_up("drf-other"))


def test_the_command_computes_keeps_and_writes(tmp_path):
    done = CliRunner().invoke(
        app, ["reproduce", "pages", "--only", "pf-fig-4,drf-example", "--out", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    assert "best beside 5" in (tmp_path / "pf.md").read_text()
    assert (tmp_path / "pf-fig-4.svg").is_file()
    wrong = CliRunner().invoke(app, ["reproduce", "pages", "--only", "pf-fig-44"])
    assert wrong.exit_code == 2
    assert "--only: pf-fig-44; choose from" in wrong.stderr
