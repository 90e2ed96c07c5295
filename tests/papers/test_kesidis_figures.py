"""Kesidis et al., Figures 1 to 5, played on few jobs: pictures, comparisons, verdicts."""

import numpy as np
import pytest

from laboratory.experiments.claims import Measures
from laboratory.papers.kesidis import figures as paper

FIGURES = {
    1: ("DRF", "PS-DSF"),
    2: ("DRF", "PS-DSF"),
    3: ("TSF", "BF-DRF", "rPS-DSF"),
    4: ("oblivious", "characterised"),
    5: ("BF-DRF", "rPS-DSF"),
}


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Runs without jobs: makespans by policy and mode, from which everything else follows."""
    makespan = {
        "drf oblivious": 130.0,
        "ps-dsf oblivious": 120.0,
        "drf characterised": 110.0,
        "ps-dsf characterised": 100.0,
        "tsf characterised": 110.0,
        "bf-drf characterised": 100.0,
        "rps-dsf characterised": 100.0,
    }

    def run(which, _scale):
        case, seed = which
        took = makespan[f"{case.policy} {case.mode}"] + seed / 100
        late = 90.0 if case.policy == "rps-dsf" else 70.0
        part = np.full((int(took), 2), 50 / took)
        part[-20:, 1] = 0.1
        return Measures(took, took / 1000, 70.0, late), part

    monkeypatch.setattr(paper, "_run", run)
    return makespan


@pytest.mark.parametrize("number", FIGURES)
def test_a_figure_draws_its_runs_and_compares_them(number: int, made_up) -> None:
    report = getattr(paper, f"figure_{number}")(trials=3)
    assert report.name == f"kesidis-fig-{number}"
    assert [tuple(line.name for line in panel.lines) for panel in report.panels] == [
        FIGURES[number]
    ] * 2
    assert all(row.agrees for row in report.rows)


def test_the_contrary_differs(made_up) -> None:
    made_up["ps-dsf oblivious"] = 140.0
    report = paper.figure_1(trials=3)
    assert report.rows[0].differs
    assert not report.holds


def test_an_interval_across_the_bound_shows_nothing(made_up, monkeypatch) -> None:
    monkeypatch.setattr(paper.Runs, "makespans", lambda *_: [0.8, 1.15, 0.9])
    assert paper.figure_2(trials=3).rows[0].cells[0].verdict == "not shown"


@pytest.mark.long
@pytest.mark.parametrize("number", FIGURES)
def test_figures_are_played_by_the_real_allocator(number: int) -> None:
    report = getattr(paper, f"figure_{number}")(trials=2, scale=0.04)
    assert all(max(line.y) > 20 for panel in report.panels for line in panel.lines)
    assert all(cell.published is not None for row in report.rows for cell in row.cells)
