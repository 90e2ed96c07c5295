"""Quincy: the paper's jobs, its measures computed by hand, its claims at small size."""

import numpy as np
import pytest

from laboratory.network.cluster import ClusterRun, Outcome
from laboratory.network.workflow import JOB_INPUT
from laboratory.papers.quincy import runs
from laboratory.papers.quincy.figures import (
    CHOICES,
    TABLE_2,
    Claim,
    FigureSetting,
    compare,
    departures,
    figure_8,
    figures_5_to_7,
    starts,
    worst_slowdown,
)
from laboratory.papers.quincy.runs import (
    QuincyCase,
    QuincyRun,
    make_scheduler,
    measure,
    play_all,
)
from laboratory.papers.report import judged

SHRINK = 8
"""Thirty computers, three jobs at once."""


def bytes_of(kinds):
    return sum(
        stage.tasks * sum(need.gb for need in stage.needs)
        for kind in kinds
        for stage in kind.stages
    )


def test_the_jobs_are_the_thirty_of_table_3_and_read_what_table_2_says():
    for moved in runs.SORT_MOVED.values():
        kinds = runs.kinds(moved)
        assert [kind.name for kind in kinds] == list(runs.IDEAL_S)
        assert len(kinds) == 30
        assert bytes_of(kinds) / 1000 == pytest.approx(TABLE_2["G"][1], rel=0.03)
    inputs = {
        kind.name: sum(
            stage.tasks * need.gb
            for stage in kind.stages[:1]
            for need in stage.needs
            if need.stage == JOB_INPUT
        )
        for kind in kinds
    }
    assert inputs["Join40"] == pytest.approx(11.8 + 41.8)
    assert inputs["PageRank240"] == pytest.approx(240.0)
    assert inputs["WordCount100"] == pytest.approx(100 * 0.05)


def test_the_cluster_is_the_paper_s():
    topology = runs.cluster()
    sizes = np.bincount(topology.rack_of)
    assert topology.computers == 243
    assert len(sizes) == 8
    assert sizes.min() >= 29
    assert sizes.max() <= 31
    assert topology.uplink_gb_s == 6 * runs.cluster(uplinks=1).uplink_gb_s


def test_a_seed_draws_the_same_jobs_for_every_network():
    wide, narrow = (
        runs.draw_jobs(runs.cluster(uplinks), 1.0, 7, large=uplinks == 6) for uplinks in (6, 1)
    )
    assert wide[0].kind.name == runs.PRIME_LARGE
    assert [job.kind.name for job in wide[1:]] == [job.kind.name for job in narrow]
    for one, other in zip(wide[1:], narrow, strict=True):
        assert one.partition_at.tolist() == other.partition_at.tolist()


def test_join5_lies_on_five_computers_of_a_rack():
    topology = runs.cluster()
    plans = runs.draw_jobs(topology, 1.0, 3)
    at = next(plan.partition_at for plan in plans if plan.kind.name == "Join5")
    assert np.bincount(at)[np.unique(at)].tolist() == [8] * 5
    assert len(np.unique(topology.rack_of[at])) == 1


def run_of(times, bound=(True, False)):
    outcome = Outcome(
        np.array(times), 9.0, np.array([1000.0, 500.0, 500.0]), 0, np.zeros((1, len(times)))
    )
    return QuincyRun(outcome, ("a", "b"), np.array(bound))


def test_measures_are_those_of_section_5_2():
    # Alone 10 s each; here 10 and 40: performances 1 and 1/4, slowdowns 1 and 4.
    got = measure(run_of([10.0, 40.0]), {"a": 10.0, "b": 10.0})
    assert got.performance == pytest.approx(0.5)
    assert (got.mean, got.worst) == (2.5, 4.0)
    assert got.root_mean_square == pytest.approx(8.5**0.5)
    # Mean 0.625, standard deviation 0.375.
    assert got.unfairness == pytest.approx(0.6)
    assert got.network_performance == pytest.approx(1)
    assert got.cpu_performance == pytest.approx(0.25)
    assert (got.total_tb, got.rack_tb, got.core_tb) == (2.0, 0.5, 0.5)


def test_a_claim_holds_is_contrary_or_is_not_shown():
    alone = {"a": 10.0, "b": 10.0}
    slow = [measure(run_of([10.0, 10.0 * n]), alone) for n in (20, 21, 22)]
    quick = [measure(run_of([10.0, 10.0]), alone) for _ in range(3)]
    found = {"slow": slow, "quick": quick}
    cell = Claim("", "slow", "quick", "worst").row(found).cells[0]
    assert cell.computed == pytest.approx(2000)
    assert cell.outcome == "holds"
    assert Claim("", "quick", "slow", "worst").row(found).cells[0].outcome == "contrary"
    assert worst_slowdown("slow", found, above=True).cells[0].outcome == "holds"
    assert worst_slowdown("slow", found, above=False).cells[0].outcome == "contrary"
    assert judged([1.0, -1.0, 0.5]).outcome == "not shown"


def mean(found, scheduler, name):
    return float(np.mean([getattr(each, name) for each in found[scheduler]]))


@pytest.mark.long
def test_alone_preemption_moves_less_across_the_core_and_costs_no_time():
    """Table 2."""
    cases = {name: QuincyCase(name, 0, alone=True, shrink=SHRINK) for name in ("G", "QP")}
    runs = play_all(cases.values(), processes=1)
    greedy, quincy = (runs[cases[name]].outcome for name in ("G", "QP"))
    assert quincy.moved_gb[2] < greedy.moved_gb[2]
    assert quincy.makespan_s < 1.02 * greedy.makespan_s
    assert greedy.killed == 0 < quincy.killed


@pytest.fixture(scope="module")
def narrow():
    """Three seeds on the constrained network."""
    setting = FigureSetting(range(3), 1, "QFPX", shrink=SHRINK, processes=1)
    return compare(("GFP", "QFP", "QFPX"), setting)[1]


@pytest.mark.long
def test_quincy_moves_less_across_a_narrow_core(narrow):
    """Table 4: GFP moves most, QFPX least."""
    core = [mean(narrow, name, "core_tb") for name in ("GFP", "QFP", "QFPX")]
    assert core == sorted(core, reverse=True)
    assert core[0] > 1.5 * core[2]


@pytest.mark.long
def test_quincy_ends_sooner_and_serves_network_bound_jobs_better(narrow):
    """Figure 8, and the headline."""
    assert mean(narrow, "GFP", "makespan_s") > 1.05 * mean(narrow, "QFPX", "makespan_s")
    network = [mean(narrow, name, "network_performance") for name in ("GFP", "QFP", "QFPX")]
    assert network == sorted(network)


@pytest.fixture(scope="module")
def wide():
    """A seed on the unconstrained network."""
    setting = FigureSetting(range(1), 6, "QP", shrink=SHRINK, processes=1)
    return compare(("G", "GFP", "Q", "QF", "QFP"), setting)


@pytest.mark.long
def test_only_preemption_kills(wide):
    """Under the greedy schedulers, roots of jobs may take a computer from a task."""
    runs, _ = wide
    killed = {name: each[0].outcome.killed for name, each in runs.items()}
    assert killed["Q"] == killed["QF"] == 0
    assert killed["G"] < killed["GFP"]
    assert killed["QFP"] > 0


@pytest.mark.long
def test_fairness_with_preemption_keeps_small_jobs_from_waiting_long(wide):
    """Section 6.2: without it some job is slowed down far more."""
    _, found = wide
    for name, fair in (("G", "GFP"), ("Q", "QFP")):
        assert mean(found, fair, "worst") < mean(found, name, "worst") / 2
        assert mean(found, fair, "mean") < mean(found, name, "mean")


@pytest.mark.long
def test_fairness_with_preemption_moves_less_across_the_core_with_quincy(wide):
    _, found = wide
    assert mean(found, "QFP", "core_tb") < mean(found, "GFP", "core_tb")


@pytest.mark.long
def test_the_report_of_the_constrained_network_has_what_the_page_shows():
    report = figure_8(trials=2, shrink=12)
    assert report.holds
    assert [panel.title for panel in report.panels] == ["Time of each job", "Time and data"]
    assert {len(line.x) for line in report.panels[0].lines} == {29}
    ideal = report.row("ideal").cells
    assert ideal[0].published == 2.47
    assert ideal[2].computed < report.row("GFP").cells[2].computed


@pytest.fixture(scope="module")
def open_network():
    """Figures 5 to 7."""
    return figures_5_to_7(trials=2, shrink=12)


@pytest.mark.long
def test_the_report_of_the_unconstrained_network_has_what_the_page_shows(open_network):
    report = open_network
    assert report.holds
    names = [row.name for row in report.rows]
    assert names[:10] == ["G", "GF", "GFP", "GFH", "GFPH", "Q", "QF", "QP", "QFP", "QFPX"]
    assert [panel.title for panel in report.panels] == [
        "Time of each job",
        "Time and data",
        "Use under QF",
        "Use under QFP",
    ]
    assert {len(line.x) for line in report.panels[0].lines} == {30}
    # Each claim has a verdict, with its interval.
    claims = [row.cells[0] for row in report.rows[10:-1]]
    assert {cell.outcome for cell in claims} <= {"holds", "contrary", "not shown"}
    assert all(cell.half is not None for cell in claims)


@pytest.mark.long
def test_the_departures_are_made_one_at_a_time():
    report = departures(trials=2, shrink=12)
    assert [row.name for row in report.rows] == list(CHOICES)
    core = {row.name: [cell.computed for cell in row.cells[:2]] for row in report.rows}
    # The data that Sort redistributes crosses the core under any scheduler.
    for scheduler in (0, 1):
        moved_all = core["Sort redistributes all"][scheduler]
        assert moved_all > core["as on this page"][scheduler]
    # The frequency of decisions changes a run.
    assert core["decided at every event"] != core["as on this page"]
    assert core["both as in the text"] != core["Sort redistributes all"]


@pytest.mark.long
def test_how_often_is_decided_is_bounded(monkeypatch):
    """A scheduler is called at every event, or at least after a fixed time."""

    def times_asked(decide_s):
        topology = runs.cluster(shrink=SHRINK)
        plans = runs.draw_jobs(topology, 0.1, 0, large=False, shrink=SHRINK)
        scheduler, asked = make_scheduler("GF", 0), []
        decide = scheduler.decide

        def note(slots, now_s):
            asked.append(now_s)
            return decide(slots, now_s)

        monkeypatch.setattr(scheduler, "decide", note)
        ClusterRun(topology, plans, 3, scheduler, decide_s=decide_s).play()
        return np.diff(asked)

    assert times_asked(2.0).min() >= 2.0
    assert 0 <= times_asked(0.0).min() < 0.1


@pytest.mark.long
def test_jobs_that_start_apart_let_the_first_one_hold_the_cluster():
    """Figure 7: under QF almost no other job makes progress until PrimeLarge's tasks end."""

    def held(apart_s):
        run = play_all([QuincyCase("QF", 0, shrink=SHRINK, apart_s=apart_s)], processes=1)
        (found,) = run.values()
        after_100_s = found.outcome.use[5]
        return after_100_s[found.names.index(runs.PRIME_LARGE)] / after_100_s.sum()

    assert held(0.0) < held(runs.APART_S)
    assert held(runs.APART_S) > 0.99


@pytest.mark.long
def test_the_effect_of_the_starts_is_reported_claim_by_claim(open_network):
    report = starts(trials=2, shrink=12, aparts_s=(0.0,))
    assert report.columns == ("at once",)
    figures = {row.name: row.cells for row in open_network.rows[10:-1]}
    at_once = {row.name: row.cells for row in report.rows}
    assert list(at_once) == list(figures)
    assert at_once != figures  # whose jobs start apart
