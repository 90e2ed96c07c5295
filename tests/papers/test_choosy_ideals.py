"""Choosy's ideals are optimal at each moment, and differ from Choosy as in the paper."""

import numpy as np
import pytest

from allocator.solvers.max_min import whole as max_min_whole
from laboratory.papers.choosy import macro, micro
from laboratory.papers.choosy.ideals import SCHEDULERS, Coming, Machines
from tests.tiers import seeds

"""The ideals that may move running tasks."""


def endless(types, at=0.0, leaves=None, seed=0):
    return Coming(at, types, micro.exponential(seed), 2**40, leaves)


def random_users(seed, users=5, types=6):
    rng = np.random.default_rng(seed)
    count = rng.integers(0, 6, types).tolist()
    able = rng.random((users, types)) < 0.4
    able[able.sum(axis=1) == 0, 0] = True
    return count, able


@pytest.mark.parametrize("seed", seeds(5, 25))
@pytest.mark.parametrize("scheduler", ["migration", "preemption"])
def test_ideals_reach_the_optimum_as_users_come(scheduler, seed):
    """The whole-machine solver is the oracle; no task ends before that moment."""
    count, able = random_users(seed)
    users = [
        Coming(float(number), tuple(np.flatnonzero(row).tolist()), [1e6] * 100, 100)
        for number, row in enumerate(able)
    ]
    history = Machines(count, scheduler, seed).play(users, [len(users) + 1.0], until=len(users) + 2)
    best = np.sort(max_min_whole.solve(able, np.array(count)).machines)
    got = np.sort(history.held[0])
    if scheduler == "preemption":
        assert got.tolist() == best.tolist()
    else:  # running tasks stay: late users find less, but all usable machines are used
        assert got.sum() == best.sum()


@pytest.mark.parametrize("seed", seeds(5, 15))
def test_restricted_gives_out_an_empty_cluster_optimally(seed):
    """All users wait while a blocker holds everything; then it frees all machines at once."""
    count, able = random_users(seed)
    blocker = Coming(0.0, tuple(range(len(count))), [1e6] * 1000, 1000, leaves=5.0)
    users = [Coming(1.0, tuple(np.flatnonzero(row).tolist()), [1e6] * 100, 100) for row in able]
    history = Machines(count, "restricted", seed).play([blocker, *users], [6.0], until=7.0)
    best = np.sort(max_min_whole.solve(able, np.array(count)).machines)
    assert np.sort(history.held[0][1:]).tolist() == best.tolist()


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_machines_are_neither_lost_nor_made_and_all_jobs_end(scheduler):
    hour = macro.draw_hour(0, machines=100)
    machines = Machines(hour.count, scheduler, 0)
    history = machines.play(hour.jobs[:60], list(range(0, 3600, 20)))
    assert machines.idle == list(hour.count)
    assert history.held.sum(axis=1).max() <= 100
    assert not np.isnan(history.stay).any()


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_alone_a_job_takes_as_long_as_its_waves(scheduler):
    """Seven tasks of 10 s on three machines, one of which it cannot use: four waves of two."""
    job = Coming(5.0, (0,), (10.0,) * 7, 7)
    assert Machines([2, 1], scheduler, 0).play([job], []).stay.tolist() == [40.0]


def test_paused_tasks_resume():
    """One machine each after the second arrives; the first's second task waits from 4 to 14 s."""
    first = Coming(0.0, (0,), (10.0, 10.0), 2)
    second = Coming(4.0, (0,), (10.0,), 1)
    stay = Machines([2], "preemption", 0).play([first, second], []).stay
    # One task ends at 10 s; then the paused one, with 6 s left.
    assert stay.tolist() == [16.0, 10.0]


def test_the_distance_of_a_run_from_itself_is_zero():
    hour = macro.draw_hour(1, machines=60)
    run = macro.play(hour, "choosy", 0).history
    assert macro.rmse_percent(run, run, 60).max() == 0


@pytest.mark.long
def test_freer_schedulers_are_farther_from_choosy():
    """Figure 8: the restricted user has less than the others."""
    off: dict[str, list[float]] = {name: [] for name in macro.IDEALS}
    for seed in range(3):
        hour = macro.draw_hour(seed, machines=100)
        runs = {name: macro.play(hour, name, seed).history for name in ("choosy", *off)}
        for name, values in off.items():
            values.append(macro.rmse_percent(runs["choosy"], runs[name], 100).mean())
    means = {name: np.mean(values) for name, values in off.items()}
    assert means["restricted"] <= means["preemption"]


def test_nine_users_settle_near_the_optimum():
    report = micro.empty_cluster(trials=4)
    first, settled = (row.cells[0].computed for row in report.rows)
    assert settled < first
    assert report.holds


@pytest.mark.long
def test_joins_and_leaves_are_drawn_and_compared():
    report = micro.joins_and_leaves(trials=2)
    assert len(report.panels) == 3
    assert all(cell.computed >= 0 for row in report.rows[:4] for cell in row.cells)
