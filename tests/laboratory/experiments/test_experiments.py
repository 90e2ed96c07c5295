"""Experiments, from the workload to the numbers, the pictures and the verdicts."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from allocator.cli.render.terminal import Lines
from allocator.core import Reason
from allocator.policies import POLICIES
from laboratory.experiments import claims
from laboratory.experiments import demo_runs as catalogue
from laboratory.experiments.claims import Claim, Measures, judge_claim
from laboratory.reports import plots
from laboratory.reports import run_report as report
from laboratory.reports.run_report import RoleLevel, fairness
from laboratory.resources import AgentSpec
from laboratory.workloads.play import RoleShares, UnfinishedError, play
from laboratory.workloads.spark_experiment import (
    HETEROGENEOUS,
    HOMOGENEOUS,
    ONE_OF_EACH,
    PI,
    WORD_COUNT,
    experiment,
    lognormal_ms,
)
from laboratory.workloads.traces import Arrival, Replay
from tests.laboratory.master.masters import wire_link


@pytest.fixture(scope="module")
def played():
    return play(experiment(3, jobs=3), wire_link("ps-dsf", "characterised"), tell_demand=True)


# The workload.


def total(cluster, name):
    return sum(spec.capacity[name] for spec in cluster)


def test_the_cluster_is_the_papers():
    sizes = [(s.capacity["cpus"] // 1000, s.capacity["mem"] // 1_024_000) for s in HETEROGENEOUS]
    assert sizes == [(4, 14)] * 2 + [(8, 8)] * 2 + [(6, 11)] * 2
    assert [total(ONE_OF_EACH, name) * 2 for name in ("cpus", "mem")] == [
        total(HETEROGENEOUS, name) for name in ("cpus", "mem")
    ]
    for name in ("cpus", "mem"):
        assert total(HOMOGENEOUS, name) == total(HETEROGENEOUS, name)


def test_the_agents_are_well_used_as_the_paper_says():
    """Type 1 by four WordCount, type 2 by four Pi, type 3 by two of each."""
    pi, words = PI.executor, WORD_COUNT.executor
    mixtures = ((0, 4), (4, 0), (2, 2))
    for spec, (pis, counts) in zip(ONE_OF_EACH, mixtures, strict=True):
        for name, capacity in spec.capacity.items():
            assert pis * pi[name] + counts * words[name] == capacity


def test_ten_queues_of_fifty_jobs_and_a_seed_fixes_them():
    whole = experiment(1)
    assert [len(queue.jobs) for queue in whole.queues] == [50] * 10
    assert [queue.role for queue in whole.queues] == ["Pi"] * 5 + ["WordCount"] * 5
    assert whole == experiment(1)
    assert whole != experiment(2)


def test_durations_have_the_mean_and_variation_they_are_asked_for():
    drawn = np.array(lognormal_ms(np.random.default_rng(0), 2000.0, 0.3, 50_000))
    assert drawn.mean() == pytest.approx(2000, rel=0.01)
    assert drawn.std() / drawn.mean() == pytest.approx(0.3, rel=0.02)
    assert drawn.min() >= 1


def test_jobs_of_a_queue_follow_each_other(played):
    assert len(played.progress.ended_ms) == 30
    assert len(played.progress.exhausted_ms) == 10
    assert played.loaded_ms < played.makespan_ms


def test_all_that_was_used_is_given_back_and_nothing_was_rejected(played):
    assert played.record.used[-1] == (0, 0)
    assert set(played.record.outcomes) == {Reason.OFFERED}
    played.master.ledger.check()


def test_no_more_is_used_than_there_is(played):
    used, total_ = np.array(played.record.used), np.array(played.record.total)
    assert (used <= total_).all()
    assert used.max() > 0


def test_a_run_that_does_not_end_in_time_says_so():
    with pytest.raises(UnfinishedError, match=r"of 10 jobs by \d+ ms"):
        play(experiment(0, jobs=1), wire_link(), tell_demand=False, until_ms=20_000)


# The numbers.


def test_figures_describe_the_run(played):
    numbers = report.figures(played, "ps-dsf", "characterised", 3)
    assert numbers.makespan_s == played.makespan_ms / 1000
    assert numbers.offers == played.record.offers
    assert 0.3 < numbers.mean["cpus"] <= 1
    assert 0 < numbers.deviation["mem"] < 0.5
    assert numbers.latency_p99_ms >= numbers.latency_p50_ms > 0
    assert not numbers.rejected


def test_the_mean_is_weighted_by_time(played):
    """Compared with a naive computation: a sum over milliseconds of the loaded time."""
    numbers = report.figures(played, "", "", 0)
    record = played.record
    row = np.searchsorted(record.time_ms, np.arange(played.loaded_ms), side="right") - 1
    part = np.array(record.used)[row] / np.array(record.total)[row]
    assert [numbers.mean[k] for k in ("cpus", "mem")] == pytest.approx(part.mean(axis=0))
    assert [numbers.deviation[k] for k in ("cpus", "mem")] == pytest.approx(part.std(axis=0))


def test_samples_are_what_held_at_each_second(played):
    time_s, part = report.sampled(played)
    assert time_s[0] == 0
    assert time_s[-1] >= played.makespan_ms / 1000
    assert not part[-1].any()
    assert part.max() <= 1


def test_figures_are_written_and_read_back(played, tmp_path):
    rows = [report.figures(played, "ps-dsf", "characterised", 3)]
    report.write_json(tmp_path / "runs.json", rows, {"seed": 3})
    report.write_csv(tmp_path / "runs.csv", rows)
    report.write_series(tmp_path / "series.csv", {"one": report.sampled(played)}, ("cpus", "mem"))
    data = json.loads((tmp_path / "runs.json").read_text())
    assert data["runs"][0]["makespan_s"] == rows[0].makespan_s
    (line,) = csv.DictReader((tmp_path / "runs.csv").read_text().splitlines())
    assert float(line["makespan_s"]) == rows[0].makespan_s
    assert line["rejected"] == "0"
    series = list(csv.DictReader((tmp_path / "series.csv").read_text().splitlines()))
    assert len(series) == len(report.sampled(played)[0])


def test_pictures_are_drawn(played, tmp_path):
    path = tmp_path / "picture.png"
    plots.over_time(path, "title", {"one": report.sampled(played)}, ("cpus", "mem"))
    assert path.read_bytes().startswith(b"\x89PNG")


def test_smoothing_keeps_the_level():
    level = np.full(100, 0.7)
    assert plots.smooth(level) == pytest.approx(level)
    assert plots.smooth(np.arange(100.0))[50] == pytest.approx(50)
    assert len(plots.smooth(np.ones(3))) == 3


# Traces as scenarios.


def test_arrivals_with_constraints_run_where_they_may():
    agents = tuple(
        (0, AgentSpec(f"h{n}", {"cpus": 2000, "mem": 4_096_000}, {"zone": zone}))
        for n, zone in enumerate("nnss")
    )
    arrivals = tuple(
        Arrival(
            time_ms=100 * n,
            name=f"job-{n}",
            role="r",
            need={"cpus": 1000, "mem": 512_000},
            durations_ms=(4000,) * 6,
            allowed={"zone": frozenset("s")},
        )
        for n in range(3)
    )
    replay = Replay(("cpus", "mem"), agents, arrivals)
    for mode in ("oblivious", "characterised"):
        played = play(replay, wire_link("drf", mode), tell_demand=True, until_ms=120_000)
        # 18 tasks of 4 s on 4 CPUs of zone s.
        assert 18 / 4 * 4000 <= played.makespan_ms < 35_000
        assert not played.record.rejected
        assert played.record.tasks == 18
        assert max(used[0] for used in played.record.used) == 4000


def test_a_run_in_which_nothing_happens_any_more_is_given_up(monkeypatch):
    monkeypatch.setattr("laboratory.workloads.play.STALL_MS", 60_000)
    agents = ((0, AgentSpec("small", {"cpus": 1000, "mem": 512_000})),)
    large = Arrival(0, "large", "r", {"cpus": 2000, "mem": 1000}, (1000,))
    with pytest.raises(UnfinishedError, match="0 of 1 jobs"):
        play(Replay(("cpus", "mem"), agents, (large,)), wire_link(), tell_demand=False)


def test_the_demo_plays_what_was_asked_for():
    runs = catalogue.section_v(("drf", "bf-drf"), catalogue.MODES, seed=1, scale=0.1)
    assert [run.name for run in runs] == [
        "drf oblivious",
        "bf-drf oblivious",
        "drf characterised",
        "bf-drf characterised",
        "bf-drf characterised staged",
    ]
    assert runs[0].scenario.jobs == 50
    assert [when for when, _ in runs[-1].scenario.agents] == [0, 10_000, 20_000]


def test_pictures_are_of_runs_that_the_demo_plays():
    runs = catalogue.section_v(catalogue.POLICIES, catalogue.MODES, seed=0, scale=0.02)
    named = {name for picture in catalogue.PICTURES for name in picture.runs}
    assert named <= {run.name for run in runs}


def test_a_trace_has_a_picture_for_each_mode_that_was_played():
    played = ["drf oblivious", "tsf oblivious", "drf characterised"]
    first, second = catalogue.pictures("swim", "hour 3", played)
    assert (first.file, first.runs) == ("swim-oblivious.png", tuple(played[:2]))
    assert (second.file, second.title) == (
        "swim-characterised.png",
        "swim, characterised: hour 3",
    )
    assert [each.file for each in catalogue.pictures("swim", "", played[:1])] == [first.file]


def test_a_policy_has_one_colour_and_no_two_share_one():
    assert len({plots.colour_of(name) for name in POLICIES}) == len(POLICIES)
    assert plots.colour_of("my.policy") == plots.colour_of("my.policy")
    for name in ("drf oblivious", "drf characterised", "drf characterised staged"):
        assert plots.line_of(name)["color"] == plots.colour_of("drf")


def test_an_axis_begins_at_nothing():
    """If the axis of a plot began higher, a small difference would look like a large one."""
    axes = Figure().add_subplot()
    axes.plot([0, 1], [95, 99], label="drf")
    plots.finish(axes, "allocated CPU (%)", 102)
    assert axes.get_ylim() == (0, 102)


# Fairness.


def samples(*rows):
    """Samples, ten seconds apart, of a cluster with 10 CPUs and 100 of memory."""
    taken = RoleShares()
    for number, held in enumerate(rows):
        taken.time_ms.append(number * 10_000)
        taken.held.append({role: np.array(amount, float) for role, amount in held.items()})
        taken.total.append(np.array([10.0, 100.0]))
    return taken


def test_fairness_is_of_the_roles_that_are_there():
    taken = samples(
        {"a": (10, 0)},  # before the measured period
        {"a": (4, 10), "b": (1, 20)},  # 0.4 and 0.2
        {"a": (2, 50), "b": (1, 50)},  # 0.5 and 0.5
        {"b": (1, 80)},  # no other framework to compare with
        {"a": (10, 0), "b": (0, 0)},  # after the measured period
    )
    found = fairness(taken, 10_000, 30_000)
    one, other = found.roles["a"], found.roles["b"]
    assert (one.mean, other.mean) == pytest.approx((0.45, 0.5))
    assert (one.least, other.least) == pytest.approx((0.4, 0.2))
    assert found.jain_least == pytest.approx(0.6**2 / (2 * (0.16 + 0.04)))
    assert found.jain == pytest.approx((found.jain_least + 1.0) / 2)


def test_one_role_alone_is_even():
    found = fairness(samples({"a": (4, 10)}), 0, 90_000)
    assert found.roles == {"a": RoleLevel(0.4, 0.4)}
    assert (found.jain, found.jain_least) == (1.0, 1.0)


def test_a_short_run_counts_from_its_beginning():
    found = fairness(samples({"a": (4, 10), "b": (4, 0)}, {}), 60_000, 10_000)
    assert found.jain == 1.0


def test_jobs_times_are_from_registration_to_the_end(played):
    """Compared with a naive computation: jobs of a queue run in order, so they pair up in order."""
    numbers = report.figures(played, "", "", 0)
    for role in ("Pi", "WordCount"):
        begun = [at for each, at in played.progress.submitted_ms if each == role]
        left = [at for each, at in played.progress.ended_ms if each == role]
        assert len(begun) == len(left) == 15
        assert all(b < e for b, e in zip(sorted(begun), sorted(left), strict=True))
        assert numbers.job_s[role] * 1000 * 15 == pytest.approx(sum(left) - sum(begun))


def test_samples_are_of_what_the_tasks_take(played):
    """The minimum sum of shares cannot exceed the recorded use at that moment."""
    taken, record = played.role_shares, played.record
    for time_ms, held in zip(taken.time_ms, taken.held, strict=True):
        row = int(np.searchsorted(record.time_ms, time_ms, side="right")) - 1
        used = np.array(record.used[row]) if row >= 0 else np.zeros(2)
        assert sum(held.values(), np.zeros(2)).tolist() == used.tolist()
    assert len(taken.time_ms) > 5


# Progress.


def test_without_a_terminal_progress_is_a_line_now_and_then():
    out, now_s = io.StringIO(), [0.0]
    tell = Lines("starting", "jobs", 8, out, lambda: now_s[0])
    for second in range(25):
        now_s[0] = float(second)
        tell(second, what="playing")
    assert out.getvalue().splitlines() == [
        "starting: 0 of 8 jobs, 0 s",
        "playing: 10 of 8 jobs, 10 s",
        "playing: 20 of 8 jobs, 20 s",
    ]


# Claims.


def measures(makespan_s, variance=1.0, early=50.0, late=60.0):
    return Measures(makespan_s, variance, early, late)


ONE, TWO = (claims.ClaimCase(name, "oblivious", claims.HETERO) for name in ("drf", "ps-dsf"))
LARGER = Claim("two is faster", "", (ONE, TWO), claims.earlier)
EQUAL = replace(LARGER, margin=2.0)


@pytest.mark.parametrize(
    ("claim", "faster_by", "outcome"),
    [
        (LARGER, [3, 4, 5], "holds"),
        (LARGER, [-3, -4, -5], "contrary"),
        (LARGER, [-3, 4, 1], "not shown"),
        (EQUAL, [0.1, -0.1, 0.2], "holds"),
        (EQUAL, [5, 5.5, 6], "contrary"),
        (EQUAL, [-5, -5.5, -6], "contrary"),
        (EQUAL, [1, 3, -4], "not shown"),
    ],
)
def test_a_claim_is_judged_by_its_confidence_interval(claim, faster_by, outcome):
    measured = {}
    for seed, percent in enumerate(faster_by):
        measured[ONE, seed] = measures(100.0)
        measured[TWO, seed] = measures(100.0 - percent)
    verdict = judge_claim(claim, range(len(faster_by)), measured)
    assert verdict.outcome == outcome
    assert verdict.mean == pytest.approx(np.mean(faster_by))
    assert verdict.low < verdict.mean < verdict.high


def test_one_run_of_each_case_is_held_against_the_claims_it_can_be():
    drf, ps_dsf, tsf = (
        claims.ClaimCase(name, "characterised", claims.HETERO) for name in ("drf", "ps-dsf", "tsf")
    )
    runs = {drf: measures(100.0), ps_dsf: measures(110.0), tsf: measures(101.0)}
    seen = {each.claim.text: each for each in claims.look_once(runs)}
    assert set(seen) == {"PS-DSF ends the batch before DRF", "TSF takes about as long as DRF"}
    before = seen["PS-DSF ends the batch before DRF"]
    assert before.value == pytest.approx(-10.0)
    assert not before.agrees
    assert seen["TSF takes about as long as DRF"].agrees  # 1 %, of 2 allowed


def test_the_interval_is_students():
    """Of 1, 2, 3: mean 2, standard error 1/sqrt(3), t(0.975, 2) = 4.3027."""
    measured = {(ONE, seed): measures(100.0) for seed in range(3)}
    measured |= {(TWO, seed): measures(100.0 - seed - 1) for seed in range(3)}
    verdict = judge_claim(LARGER, range(3), measured)
    assert verdict.high - verdict.mean == pytest.approx(4.3027 / np.sqrt(3), rel=1e-4)


def test_measures_compare_as_they_say():
    slow, fast = measures(200.0, 4.0), measures(150.0, 1.0, early=40.0, late=80.0)
    assert claims.earlier(slow, fast) == 25.0
    assert claims.steadier(slow, fast) == 75.0
    assert claims.recovered(fast) == 40.0
    assert claims.fuller(slow, fast) == 20.0


def test_every_claim_of_the_paper_is_there():
    texts = {claim.text for claim in claims.CLAIMS}
    for wanted in (
        "PS-DSF ends the batch before DRF",
        "characterised ends the batch before oblivious",
        "characterised has a lower variance of utilisation",
        "TSF takes about as long as DRF",
        "BF-DRF takes about as long as PS-DSF",
        "rPS-DSF takes about as long as PS-DSF",
        "on equal agents PS-DSF takes about as long as DRF",
        "rPS-DSF recovers memory efficiency",
        "BF-DRF does not",
    ):
        assert wanted in texts


def test_claims_are_played_seed_by_seed():
    wanted = [claim for claim in claims.CLAIMS if claim.text == "PS-DSF ends the batch before DRF"]
    told = []
    verdicts = claims.check_claims(
        [0, 1], 0.04, wanted[:1], watch=lambda done, whole: told.append((done, whole))
    )
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert len(verdicts[0].values) == 2


def test_equal_agents_are_served_alike_by_ps_dsf_and_drf():
    """On equal agents both criteria differ by one factor, so they decide the same."""
    case = claims.ClaimCase("drf", "characterised", claims.EQUAL)
    one = claims.run_case((case, 4), 0.1)
    other = claims.run_case((replace(case, policy="ps-dsf"), 4), 0.1)
    assert one == other
