"""The pure functions of advice: measures, intervals, bounds, and verdicts."""

import json
import tomllib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from allocator.core import PolicySpec, Settings
from allocator.policies import MODES, POLICIES, build
from allocator.server.config import Config
from laboratory.advise.bottlenecks import bottlenecks_of
from laboratory.advise.comparing import Comparison, MeasureChange, RoleChanges, Verdict, judge
from laboratory.advise.limits import Finding, Sort, bounds_of, cut_down
from laboratory.advise.measuring import RoleFigures, fair_shares, measure, table_of
from laboratory.advise.playing import (
    AdviceCell,
    Candidate,
    Past,
    absences_ms,
    changes,
    collects_of,
    every_policy,
    gangs_of,
    in_words,
    more_of,
    pasts_of,
    plain,
    play_cell,
    shaken,
)
from laboratory.advise.reading import busiest, cut
from laboratory.advise.recommending import harmed, recommend
from laboratory.advise.words import to_paste, toml_of
from laboratory.master.ledger import Quota
from laboratory.reports.run_report import Interval
from laboratory.workloads.recorded_day import Day, DayAgent, DayFramework, Ran

NOW = PolicySpec("drf")
CHARACTERISED = PolicySpec("drf", mode="characterised")
SECOND = 1000
KINDS = ("cpus", "mem")


def ran(who: str, role: str, cpus: int, *times_s: float, agent: str = "a1") -> Ran:
    wanted, start, end = (round(each * SECOND) for each in times_s)
    return Ran(
        who, role, {"cpus": cpus * 1000, "mem": cpus * 1000}, wanted, start, end, agent=agent
    )


def day_of(*tasks: Ran, agents: int = 1, cpus: int = 4, **more) -> Day:
    amounts = {"cpus": cpus * 1000, "mem": cpus * 1000}
    return Day(
        begin_ms=0,
        end_ms=240 * SECOND,
        settings=Settings(NOW),
        kinds=KINDS,
        agents={
            f"a{n + 1}": DayAgent(f"a{n + 1}", f"host-{n + 1}", amounts, 0) for n in range(agents)
        },
        frameworks={
            name: DayFramework(name, name, (), 0) for name in {task.framework for task in tasks}
        },
        ran=list(tasks),
        **more,
    )


# Candidates.


def test_all_of_the_registry_is_tried_in_both_modes_and_what_is_in_force_first():
    now = PolicySpec("tsf", "best_fit", "characterised")
    tried = every_policy(now)
    assert tried[0] == now
    assert {(spec.name, spec.mode) for spec in tried} == {(n, m) for n in POLICIES for m in MODES}
    assert len({in_words(spec) for spec in tried}) == len(tried) == 2 * len(POLICIES) + 1


def test_every_candidate_and_each_of_its_settings_can_be_built():
    tried = every_policy(PolicySpec("drf", subtrees={"eng": "tsf"}))
    more = more_of(tried, tried)
    assert len(more) > 50
    for spec in (*tried, *more):
        build(spec)


def test_explicit_defaults_are_no_change():
    spelt = PolicySpec("choosy", "random", parameters={"unit": "machines"})
    first = POLICIES["choosy"].parameters["unit"][0]
    assert plain(replace(spelt, parameters={"unit": first})) == PolicySpec("choosy")
    assert changes(PolicySpec("ps-dsf", mode="characterised"), NOW) == 2


# Candidates where tenants come and go.


def back_again() -> Day:
    """The first role runs a minute of each two, the second all the time, the third once."""
    quiet = [ran(f"q{n}", "quiet", 4, 120 * n, 120 * n, 120 * n + 60) for n in range(3)]
    steady = [ran("s", "steady", 4, 0, 60 * n, 60 * n + 60) for n in range(4)]
    return day_of(*quiet, *steady, ran("once", "once", 1, 30, 30, 40))


def test_half_lives_are_tried_where_roles_come_back():
    day = back_again()
    assert absences_ms(day) == [60 * SECOND] * 2
    shorter = [Past(60, 0.5), Past(60, 1.0)]
    assert pasts_of([day], NOW) == [*shorter, Past(240, 0.5), Past(240, 1.0)]
    short = replace(day, end_ms=239 * SECOND)
    assert pasts_of([short], NOW) == shorter, "a longer one has no effect within the day"


def test_without_the_past_is_tried_where_it_counts_now():
    kept = Settings(NOW, half_life_ms=60_000, usage_weight=1.0)
    day = replace(back_again(), end_ms=239 * SECOND, settings=kept)
    assert pasts_of([day], NOW) == [Past(60, 0.5), Past(0, 1.0)]


def test_no_half_life_is_tried_where_none_matters():
    assert pasts_of([back_again()], PolicySpec("cmmf")) == [], "plans ignore it"
    steady = day_of(ran("a", "a", 4, 0, 0, 100), ran("b", "b", 4, 0, 100, 200))
    assert pasts_of([steady], NOW) == []


def test_a_half_life_changes_who_comes_first():
    """One role was alone for 100 s; then both want the cluster at once, for six tasks each."""
    alone = [ran("a", "a", 4, 0, 20 * n, 20 * n + 20) for n in range(5)]
    both = [ran(who, who, 4, 95, 100, 120) for who in "ab" for _ in range(6)]
    day = day_of(*alone, *both)

    def waits_s(past: Past | None) -> dict[str, float]:
        cell = AdviceCell(Candidate(PolicySpec("drf", mode="characterised"), past=past), 0, 0)
        figures = play_cell([day], cell).figures.roles
        return {role: each.wait_s for role, each in figures.items()}

    now, then = waits_s(None), waits_s(Past(100, 1.0))
    assert then["b"] < 0.8 * now["b"]
    assert then["a"] > now["a"]


# Candidates where tasks start together.


def gang_and_singles() -> Day:
    """A gang needs two agents at once; single tasks of 30 s follow each other on both, shifted."""
    alone = [
        ran(f"s{n}", "single", 4, 15 * n, 15 * n, 15 * n + 30, agent=f"a{n % 2 + 1}")
        for n in range(14)
    ]
    day = day_of(
        *alone, *(ran("g", "gang", 4, 40, 240, 260, agent=a) for a in ("a1", "a2")), agents=2
    )
    day.frameworks["g"].gang = 2
    day.frameworks["g"].demand = {"cpus": 4000, "mem": 4000}
    return replace(day, settings=Settings(NOW, patience_cycles=5, collect_ms=300_000))


def test_how_long_gangs_collect_is_tried_where_there_are_gangs():
    day = gang_and_singles()
    assert gangs_of(day) == {"g"}
    assert collects_of([day]) == [0, 60, 600, 3600]
    kept = replace(day, settings=Settings(NOW, collect_ms=60_000))
    assert collects_of([kept]) == [0, 600, 3600]
    assert collects_of([replace(day, settings=Settings(NOW, patience_cycles=0))]) == []
    assert collects_of([back_again()]) == []


def test_a_gang_that_collects_waits_less():
    """Without collecting, both agents are free at once only after the single tasks."""
    day = gang_and_singles()

    def waits_s(collect_s: int) -> float:
        cell = AdviceCell(Candidate(CHARACTERISED, collect_s=collect_s), 0, 0)
        found = play_cell([day], cell)
        assert not found.figures.never_began
        return found.gang_wait_s

    never, collecting = waits_s(0), waits_s(600)
    assert collecting <= 45, "five cycles, then at most one task"
    assert never > 2 * collecting


def test_a_candidate_that_collects_is_named_and_pasted():
    chosen = Candidate(NOW, collect_s=600)
    found = recommend(NOW, {chosen.name: chosen}, [candidate(chosen.name, changed(-0.3))], [], [])
    assert found.headline.endswith("to drf oblivious collect_s=600.")
    assert chosen.changes(NOW) == 1
    report: Any = SimpleNamespace(advice=found, now=NOW)
    pasted = tomllib.loads(to_paste(report))
    assert pasted["starvation"] == {"collect_s": 600}
    Config.model_validate(pasted)


# Measures.


def test_fair_shares_are_bounded_by_what_is_wanted_and_follow_weights():
    wants = np.array([[2.0, 0.0], [9.0, 9.0], [0.0, 0.0]])
    fair = fair_shares(wants, np.array([10.0, 10.0]), np.array([1.0, 3.0, 1.0]))
    # The first has all it wants; the second the other eight tenths; the third wants nothing.
    assert fair.round(9).tolist() == [0.2, 0.8, 0.0]


def test_a_day_is_measured():
    day = day_of(ran("f", "red", 4, 0, 0, 120), ran("g", "blue", 2, 0, 120, 240))
    found = measure(day, table_of(day.ran, KINDS), 240 * SECOND)
    assert (found.roles["red"].wait_s, found.roles["blue"].wait_s) == (0, 120)
    assert (found.roles["red"].stay_s, found.roles["blue"].stay_s) == (120, 240)
    assert found.stay_s == pytest.approx(np.sqrt(120 * 240))
    # While blue waits red has all; half of it is fair. Then blue has the half that it wants.
    assert found.roles["blue"].short == pytest.approx(0.5)
    assert found.packed == 1
    assert found.used["cpus"] == pytest.approx(0.75)


def test_tasks_that_never_began_waited_up_to_the_end():
    tasks = [ran("f", "red", 1, 0, 10, 20), Ran("f", "red", {"cpus": 1000}, 0, -1, -1)]
    day = day_of(tasks[0])
    found = measure(day, table_of(tasks, KINDS), 100 * SECOND)
    assert (found.never_began, found.roles["red"].wait_s) == (1, (10 + 100) / 2)


# Parts of days, and perturbed days.


def test_the_busiest_part_of_a_day_is_that_in_which_tasks_wait():
    tasks = [ran("f", "red", 1, 0, 0, 240), ran("g", "red", 1, 3700, 3800, 3900)]
    day = replace(day_of(*tasks), end_ms=7200 * SECOND)
    part = busiest(day, 0.05)
    assert part.begin_ms <= 3700 * SECOND < 3800 * SECOND <= part.end_ms
    assert [task.framework for task in part.ran] == ["g"]
    assert busiest(day, 0) is day
    assert busiest(day, 24) is day


def test_tasks_running_when_a_part_begins_continue():
    day = day_of(ran("f", "red", 1, 0, 10, 200), ran("g", "red", 1, 5, 90, 95))
    part = cut(day, 60 * SECOND, 120 * SECOND)
    times = {t.framework: (t.wanted_ms, t.start_ms, t.end_ms) for t in part.ran}
    # Tasks that waited come a little later, so that they do not displace those that ran.
    assert times == {"f": (60_000, 60_000, 200_000), "g": (70_000, 90_000, 95_000)}


def test_tasks_running_when_a_part_begins_are_not_shifted_and_stay_first():
    day = day_of(ran("f", "red", 1, 0, 10, 200), ran("g", "red", 1, 5, 90, 95))
    part = cut(day, 60 * SECOND, 180 * SECOND)
    for seed in range(1, 20):
        first, second = shaken(part, seed).ran
        assert first.wanted_ms == 60 * SECOND
        assert second.wanted_ms >= 70 * SECOND


def test_a_varied_day_is_equal_for_all_and_as_long():
    day = day_of(ran("f", "red", 1, 60, 60, 90), ran("f", "red", 1, 70, 80, 90))
    assert shaken(day, 0) is day
    moved = shaken(day, 3)
    assert moved == shaken(day, 3)
    first, second = moved.ran
    assert first.wanted_ms != 60 * SECOND
    assert second.wanted_ms - first.wanted_ms == 10 * SECOND
    assert [t.end_ms - t.start_ms for t in moved.ran] == [t.end_ms - t.start_ms for t in day.ran]


# Intervals.


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([-0.3, -0.28, -0.31], Verdict.LESS),
        ([0.3, 0.28, 0.31], Verdict.MORE),
        ([-0.3, 0.28, -0.1], Verdict.NOISE),
        ([0.0, 0.0, 0.0], Verdict.SAME),
        ([0.01, 0.011, 0.0105], Verdict.SAME),
        ([-0.5], Verdict.ONCE),
        ([float("nan")], Verdict.SAME),
    ],
)
def test_a_difference_is_noise_where_its_interval_holds_zero(differences, verdict):
    assert judge(differences).verdict is verdict


# Quotas, limits and weights.


def guaranteed(amount: int, **more) -> Day:
    """Production uses one CPU of four all day; another role waits for two of those free."""
    quota = Quota(guarantees={"cpus": amount * 1000})
    tasks = [ran("p", "production", 1, 0, 0, 240), ran("b", "batch", 2, 0, 200, 240)]
    return day_of(*tasks, quotas=[(0, "production", quota)], **more)


def test_an_unused_guarantee_that_others_wait_for_is_a_bottleneck():
    (bound,) = bounds_of([guaranteed(3)])
    assert (bound.sort, bound.finding, bound.peak) == (Sort.GUARANTEE, Finding.ALWAYS, 1000)
    assert bound.in_way == 1
    assert bound.better == 2000  # a tenth more than one CPU, in whole units
    (quota,) = cut_down(guaranteed(3), [bound]).values()
    assert quota == Quota({"cpus": 2000}, {})


def test_a_guarantee_that_leaves_room_is_merely_never_reached():
    (bound,) = bounds_of([guaranteed(2)])
    assert bound.finding is Finding.NEVER


def test_a_guarantee_is_not_in_the_way_where_nothing_is_free():
    """The other role waits although nothing is held back: everything is in use."""
    quota = Quota(guarantees={"cpus": 3000})
    tasks = [
        ran("p", "production", 1, 0, 0, 240),
        ran("b", "batch", 3, 0, 0, 200),
        ran("b", "batch", 2, 0, 200, 240),
    ]
    (bound,) = bounds_of([day_of(*tasks, quotas=[(0, "production", quota)])])
    assert (bound.finding, bound.in_way) == (Finding.NEVER, 0)


def test_a_harmless_guarantee_is_not_reduced():
    day = guaranteed(2)
    (bound,) = bounds_of([replace(day, ran=day.ran[:1])])
    # slightly more than one rounds up to two
    assert (bound.finding, bound.better) == (Finding.NEVER, None)
    (bound,) = bounds_of([replace(guaranteed(3), ran=day.ran[:1])])
    assert (bound.finding, bound.better) == (Finding.NEVER, 2000)
    assert cut_down(guaranteed(3), [bound]) == {}


def test_of_two_limits_the_lower_one_counts():
    quota, settings = Quota(limits={"cpus": 3000}), Settings(NOW, limits={"red": {"cpus": 2000}})
    day = day_of(ran("f", "red", 2, 0, 0, 120), quotas=[(0, "red", quota)])
    (bound,) = bounds_of([replace(day, settings=settings)])
    assert bound.amount == 2000


def test_a_guarantee_that_is_used_is_of_use():
    (bound,) = bounds_of([guaranteed(1)])
    assert (bound.finding, bound.better) == (Finding.USEFUL, None)
    assert cut_down(guaranteed(1), [bound]) == {}


@pytest.mark.parametrize(
    ("limit", "finding"), [(2, Finding.ALWAYS), (3, Finding.NEVER), (1000, Finding.NEVER)]
)
def test_a_limit_is_in_the_way_where_what_its_role_waits_for_is_free(limit, finding):
    quota = Quota(limits={"cpus": limit * 1000})
    tasks = [ran("f", "red", 2, 0, 0, 120), ran("f", "red", 1, 60, 120, 240)]
    # Under the larger limits the second task would have fitted: it did not wait for the limit.
    (bound,) = bounds_of([day_of(*tasks, quotas=[(0, "red", quota)])])
    assert bound.finding is finding


def test_a_weight_matters_only_while_its_role_and_others_wait():
    alone = day_of(ran("f", "red", 4, 0, 0, 120), ran("f", "red", 4, 0, 120, 240))
    both = day_of(*alone.ran, ran("g", "blue", 1, 0, 60, 240))
    found = [
        bounds_of([replace(day, weights=[(0, {"red": 3.0, "blue": 1.0})])]) for day in (alone, both)
    ]
    assert [[each.finding for each in bounds] for bounds in found] == [
        [Finding.NO_MATTER],
        [Finding.USEFUL],
    ]


# Bottlenecks.


def constrained(*, elsewhere_free: bool = True) -> Day:
    """Of three agents f and g may use the first only, and want twice as much."""
    tasks = [ran(who, who, 4, 0, 120 * n, 120 * (n + 1)) for n, who in enumerate("fg")]
    if not elsewhere_free:
        tasks += [ran("h", "h", 4, 0, 0, 240, agent=f"a{n}") for n in (2, 3)]
    day = day_of(*tasks, agents=3)
    for who in "fg":
        day.frameworks[who].allowed[who] = frozenset({"a1"})
    return day


def test_too_few_agents_for_constrained_frameworks_are_a_bottleneck():
    (found,) = bottlenecks_of([constrained()])
    assert found.agents == ("host-1",)
    assert found.roles == {"f", "g"}
    assert found.level == pytest.approx(0.5)
    assert found.free == pytest.approx(1)
    assert found.part == pytest.approx(0.5)  # then only one of them wants something


def test_without_constraints_there_is_no_bottleneck():
    day = day_of(ran("f", "f", 4, 0, 0, 120), ran("g", "g", 4, 0, 120, 240), agents=3)
    assert bottlenecks_of([day]) == []


# Recommendations.

SAME = MeasureChange(Interval(0.0, 0.0), Verdict.SAME)


def changed(by: float, half: float = 0.01) -> MeasureChange:
    verdict = Verdict.NOISE if abs(by) < half else Verdict.LESS if by < 0 else Verdict.MORE
    return MeasureChange(Interval(by, half), verdict)


def role(stay: MeasureChange = SAME, before: float = 0.0, after: float = 0.0) -> RoleChanges:
    was, now = (RoleFigures(1, 0, 10, 20, 0.5, 0.5, short) for short in (before, after))
    return RoleChanges(SAME, stay, SAME, was, now)


def candidate(name: str, stay: MeasureChange, roles=None, wait_s: float = 5.0) -> Comparison:
    stay_s, by = 60 - 30 + wait_s, stay.by.mean
    stays = (by - 0.02, by, by + 0.02)
    return Comparison(name, 5, stays, stay, stay, SAME, roles or {}, 60, stay_s, 30, wait_s, 0, 0)


SPECS = {
    in_words(spec): Candidate(spec)
    for spec in (
        PolicySpec("ps-dsf", mode="characterised"),
        PolicySpec("drf", mode="characterised"),
        PolicySpec("tsf"),
    )
}


def test_of_what_is_equally_good_the_least_change_is_advised():
    found = recommend(
        NOW,
        SPECS,
        [
            candidate("ps-dsf characterised", changed(-0.31)),
            candidate("drf characterised", changed(-0.30)),
        ],
        [],
        [],
    )
    assert found.spec == PolicySpec("drf", mode="characterised")
    assert "drf oblivious to drf characterised" in found.headline
    assert any("ps-dsf characterised" in reason for reason in found.reasons)


def test_a_clearly_better_candidate_is_advised_even_if_it_changes_more():
    found = recommend(
        NOW,
        SPECS,
        [
            candidate("ps-dsf characterised", changed(-0.5)),
            candidate("drf characterised", changed(-0.3)),
        ],
        [],
        [],
    )
    assert found.spec == PolicySpec("ps-dsf", mode="characterised")


def test_better_for_every_seed_is_better_despite_wide_intervals():
    """Both differ much from seed to seed, and the first beats the second in each."""
    wide = changed(-0.30, 0.25)
    best = replace(candidate("ps-dsf characterised", wide), stays=(-0.1, -0.3, -0.5))
    other = replace(candidate("drf characterised", wide), stays=(-0.03, -0.23, -0.43))
    best = replace(best, stay=changed(-0.301, 0.25))
    found = recommend(NOW, SPECS, [best, other], [], [])
    assert found.spec == PolicySpec("ps-dsf", mode="characterised")


def test_a_possible_loss_is_reported():
    roles = {"red": role(changed(0.3, 0.5)), "blue": role(changed(-0.6))}
    found = recommend(NOW, SPECS, [candidate("tsf oblivious", changed(-0.3), roles)], [], [])
    assert found.spec == PolicySpec("tsf")
    assert any("The effect on red is uncertain" in reason for reason in found.reasons)


@pytest.mark.parametrize(
    ("stay", "wait_s"),
    [(changed(-0.2, 0.3), 5.0), (changed(-0.03), 5.0), (changed(-0.3), 29.5), (changed(0.2), 35.0)],
)
def test_noise_and_little_are_no_reason_to_change(stay, wait_s):
    found = recommend(NOW, SPECS, [candidate("tsf oblivious", stay, wait_s=wait_s)], [], [])
    assert found.keeps
    assert found.headline == "Keep what you have: drf oblivious."
    assert found.reasons


def test_roles_within_their_fair_share_should_not_lose():
    pays = {"red": role(changed(0.4), before=0.0, after=0.3), "blue": role(changed(-0.6))}
    spared = {"red": role(changed(0.4), before=0.0, after=0.0), "blue": role(changed(-0.6))}
    harming = candidate("tsf oblivious", changed(-0.3), pays)
    assert harmed(harming) == ["red"]
    assert recommend(NOW, SPECS, [harming], [], []).keeps
    fair = candidate("tsf oblivious", changed(-0.3), spared)
    found = recommend(NOW, SPECS, [fair], [], [])
    assert found.spec == PolicySpec("tsf")
    assert any(reason.startswith("Roles that lose: red") for reason in found.reasons)


def test_quotas_and_constraints_are_advised_beside_the_policy():
    bounds, bottlenecks = bounds_of([guaranteed(3)]), bottlenecks_of([constrained()])
    found = recommend(NOW, SPECS, [], bounds, bottlenecks)
    assert found.spec is None
    assert not found.keeps
    quota, constraint = found.also
    assert "guarantee of cpus:3 for production" in quota
    assert "cpus:2 would do" in quota
    assert "host-1, 1 of 3" in constraint


# Commands to paste.


@pytest.mark.parametrize(
    "spec",
    [
        NOW,
        PolicySpec("choosy", "best_fit", "characterised", True, {"unit": "tasks"}),
        PolicySpec("drf", subtrees={'eng/"x"': "tsf"}),
    ],
)
def test_the_configuration_to_paste_states_the_policy(spec):
    policy = tomllib.loads(toml_of(spec))["policy"]
    assert PolicySpec(**policy) == spec


def test_the_configuration_to_paste_states_how_much_the_past_counts():
    chosen = Candidate(NOW, past=Past(600, 0.5))
    found = recommend(NOW, {chosen.name: chosen}, [candidate(chosen.name, changed(-0.3))], [], [])
    assert found.headline.endswith("to drf oblivious half_life_s=600 usage_weight=0.5.")
    report: Any = SimpleNamespace(advice=found, now=NOW)
    pasted = tomllib.loads(to_paste(report))
    assert pasted["fairness"] == {"half_life_s": 600, "usage_weight": 0.5}
    Config.model_validate(pasted)


def test_a_day_can_go_to_another_machine():
    """It is pickled for each process, with all settings of operators."""
    import pickle

    day = guaranteed(3)
    assert pickle.loads(pickle.dumps(day)) == day
    assert json.dumps(in_words(NOW)) == '"drf oblivious"'
