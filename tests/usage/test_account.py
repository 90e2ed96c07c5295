"""Used, offered, idle and unknown add up to the capacity exactly, after any history."""

from collections import Counter
from random import Random

import pytest

from allocator.cli.local.usage_of_journals import AccountedReplay
from allocator.core import (
    GAP_MS,
    AddFramework,
    FrameworkInfo,
    Hold,
    PolicySpec,
    RemoveFramework,
    Settings,
    Transition,
    UpdateAgent,
)
from allocator.core.bounds import CAPACITY_MAX
from allocator.policies import build, substitute
from allocator.usage import buckets
from allocator.usage.account import Account, Closed, Moment
from allocator.usage.buckets import DAY_MS, HOUR_MS, NAMES_MAX, NOT_KNOWN, OTHERS, Bucket, Part
from allocator.usage.holdings import STEP_MS
from allocator.wire.journal.records import for_file
from laboratory.random_cluster import RandomScenario
from laboratory.workloads.play import play
from tests.laboratory.master.auditing import Audited
from tests.laboratory.master.masters import wire_link
from tests.tiers import EVERYTHING
from tests.usage.twin import Twin, compare, warped
from tests.wire.dialogue import Module, holding, new_sidecar
from tests.wire.journal.following import Followed, beginning, new_follower
from tests.world.rows import given_back, holdings_of

LEAP_DAY_MS = 1_835_308_800_000 + 3 * HOUR_MS
"""2028-02-28T03:00Z: the histories below continue into the leap day."""

LIFE_MS = 8_000


class Kept:
    """An account, and all buckets that it closed."""

    def __init__(self):
        self.closed: list[Closed] = []
        self.account = Account(self.closed.append)

    def hours(self) -> dict[int, Bucket]:
        self.account.settle()
        found = {
            each.begin_ms // HOUR_MS: each.bucket for each in self.closed if each.span_ms == HOUR_MS
        }
        return {**found, self.account.now_ms // HOUR_MS: self.account.hour}

    def days(self) -> dict[int, Bucket]:
        return {
            each.begin_ms // DAY_MS: each.bucket for each in self.closed if each.span_ms == DAY_MS
        }

    def restarted(self) -> "Kept":
        """Another process continues from the state that this one wrote."""
        other = Kept()
        other.closed = self.closed
        other.account = Account(other.closed.append)
        other.account.resume(Moment.from_bytes(self.account.moment().to_bytes()))
        return other


class Warp:
    """Clocks of sessions: hours pass in seconds, and each master's clock has an offset."""

    def __init__(self, seed: int, faster: int = 9_000):
        self._random, self._faster = Random(seed), faster
        self._off: dict[int, int] = {}

    def __call__(self, session: int, clock_ms: int) -> int:
        if session not in self._off:
            off_ms = (0, 0, -HOUR_MS // 2, 1, HOUR_MS, 30 * HOUR_MS)
            self._off[session] = self._random.choice(off_ms)
        return LEAP_DAY_MS + self._off[session] + clock_ms * self._faster


class Life(Followed):
    """A sidecar whose account is compared with the naive one's, and with a second account.

    `settled_often`: how often the first account is brought up to date, as for a question.
    `restarted_often`: how often another process continues the second one.
    """

    settled_often = 0.05
    restarted_often = 0.1

    def __init__(self, seed: int, settings: Settings):
        super().__init__(settings)
        self.warp = Warp(seed)
        self.twin, self.kept, self.again = Twin(), Kept(), Kept()
        self.restarts = 0
        self._random = Random(seed)
        self.head = beginning(self.sidecar)
        self.join(new_follower())
        self.join(new_follower())

    def _write(self, record):
        super()._write(record)
        first, second = (warped(each.sidecar, self.warp) for each in self.followers)
        self.twin.follow(first)
        self.kept.account.follow(first)
        self.again.account.follow(second)
        if self._random.random() < self.settled_often:
            self.kept.account.settle()

    def receive(self, number, data):
        answers = super().receive(number, data)
        if self._random.random() < self.restarted_often:
            self.again = self.again.restarted()
            self.followers.pop()
            self.again.account.follow(warped(self.join(new_follower()).sidecar, self.warp))
            self.restarts += 1
        return answers

    def compare(self):
        assert not self.differences


class WarpedReplay(AccountedReplay):
    """A replay of such a life."""

    warp: Warp

    def _follow(self) -> None:
        self.account.follow(warped(self.sidecar, self.warp))


def lived(seed: int, *, duration_ms: int = LIFE_MS) -> Life:
    """Every feature of Mesos, with failovers, and sessions that are cut."""
    link = wire_link("drf", "characterised", seed)
    settings = Settings(policy=PolicySpec("drf", mode="characterised"), seed=seed)
    life = Life(seed, settings)
    live(life, link, seed, duration_ms)
    return life


def live(life, link, seed, duration_ms):
    """Play a random cluster with this sidecar, whose sessions are cut."""
    link.sidecar = life
    scenario = RandomScenario(seed, duration_ms=duration_ms, event_ms=100)
    audited = Audited(scenario, link, cut_every_ms=2_000, until_ms=duration_ms)
    play(audited, link, tell_demand=True)


RICH = 1
"""A history in which everything happens often enough to be worth comparing."""


@pytest.mark.parametrize("seed", range(30) if EVERYTHING else [RICH])
def test_a_life_is_accounted_for_exactly(seed):
    """Equals the naive account; a restart, a question or a replay of the journal changes nothing.

    Clocks of masters differ, some are behind, and the history continues into a leap day.
    """
    life = lived(seed)
    hours = life.kept.hours()
    compare(life.twin, hours)
    if seed == RICH:
        sums = Counter[Part]()
        for bucket in hours.values():
            for (_, part), amount in bucket.parts.items():
                sums[part] += amount
        assert all(sums[part] for part in Part), sums
        assert len(hours) > 10
        assert sum(len(bucket.held["framework"]) for bucket in hours.values()) > 100
        assert life.restarts > 10
    # Restarts.
    assert life.restarts > 0
    assert life.again.hours() == hours
    assert life.again.days() == life.kept.days()
    # The journal.
    replayed = Kept()
    player = WarpedReplay(build, substitute())
    player.account, player.warp = replayed.account, life.warp
    for record in (*life.head, *map(for_file, life.records)):
        player.take(record)
    player.finish()
    assert replayed.hours() == hours
    assert replayed.days() == life.kept.days()


def test_a_look_before_the_first_session_counts_no_time():
    account = Account(lambda _: None)
    account.settle()
    assert account.hour.span_ms == 0


class Session:
    """A module in session since some time, and an account that follows."""

    def __init__(self, at_ms: int, kept: Kept | None = None):
        self.kept = kept or Kept()
        self.sidecar = new_sidecar()
        self.module = Module(self.sidecar)
        self.module.clock_ms = at_ms
        self.module.begin()
        self.kept.account.follow(self.sidecar)

    def at(self, at_ms: int, *events, cycle: bool = False):
        """Apply an event at some time."""
        self.module.clock_ms = at_ms - 1000
        decisions = self.module.batch(*events, cycle=cycle)
        self.kept.account.follow(self.sidecar)
        return decisions

    def leave(self):
        self.sidecar.close(self.module.number)
        self.kept.account.follow(self.sidecar)

    def cpus(self, *, at_ms: int | None = None) -> dict[str, float]:
        """CPU hours by part: of the hour that contains this time, or of all."""
        wanted = None if at_ms is None else at_ms // HOUR_MS
        found = Counter[str]()
        for hour, bucket in self.kept.hours().items():
            if wanted in {None, hour}:
                for part in Part:
                    found[part.name.lower()] += bucket.parts["cpus", part]
        return {part: amount / 1000 / HOUR_MS for part, amount in found.items()}


NOON_MS = LEAP_DAY_MS + 9 * HOUR_MS


def test_use_counts_from_the_moment_of_the_hold():
    """The cluster has 6 CPUs; 4 are used for half an hour."""
    session = Session(NOON_MS)
    session.at(NOON_MS + HOUR_MS // 4, Hold(holding(1, 1, 1, cpus=4000, mem=8192_000)))
    session.at(NOON_MS + 3 * HOUR_MS // 4)
    assert session.cpus() == {"used": 2.0, "offered": 0.0, "idle": 2.5, "unknown": 0.0}
    (hour,) = session.kept.hours().values()
    for by, name in (("role", "eng"), ("framework", "spark"), ("principal", "")):
        assert hour.held[by][name, "cpus", Part.USED] == 2 * 1000 * HOUR_MS


def test_offers_count_until_they_are_used_or_given_back():
    session = Session(NOON_MS)
    decisions = session.at(NOON_MS, cycle=True)
    session.at(NOON_MS + HOUR_MS // 2, session.module.all_offered(decisions))
    assert session.cpus() == {"used": 0.0, "offered": 3.0, "idle": 0.0, "unknown": 0.0}
    session.at(NOON_MS + HOUR_MS // 2, Transition(holdings_of(decisions)))
    session.at(NOON_MS + 3 * HOUR_MS // 4)
    assert session.cpus() == {"used": 1.5, "offered": 3.0, "idle": 0.0, "unknown": 0.0}


def test_a_clock_that_was_set_back_counts_nothing_until_it_is_ahead_again():
    session = Session(NOON_MS)
    session.at(NOON_MS + HOUR_MS // 2)
    session.leave()
    # The next master's clock is a quarter of an hour behind.
    other = Session(NOON_MS + HOUR_MS // 4, session.kept)
    other.at(NOON_MS + HOUR_MS // 4, Hold(holding(1, 1, 1, cpus=4000)))
    other.at(NOON_MS + HOUR_MS // 2)
    assert other.cpus()["used"] == 0
    other.at(NOON_MS + 3 * HOUR_MS // 4)
    assert other.cpus() == {"used": 1.0, "offered": 0.0, "idle": 3.5, "unknown": 0.0}


def test_time_without_a_session_is_unknown_at_the_last_capacity():
    session = Session(NOON_MS)
    session.at(NOON_MS + HOUR_MS // 2, Hold(holding(1, 1, 1, cpus=4000)))
    session.leave()
    other = Session(NOON_MS + 2 * HOUR_MS, session.kept)
    other.at(NOON_MS + 2 * HOUR_MS + HOUR_MS // 2)
    assert other.cpus() == {"used": 0.0, "offered": 0.0, "idle": 6.0, "unknown": 9.0}
    assert other.cpus(at_ms=NOON_MS + HOUR_MS)["unknown"] == 6.0


def test_a_step_of_more_than_an_hour_is_unknown():
    """No process ran meanwhile, or the clock was set; up to an hour counts as time that passed."""
    session = Session(NOON_MS)
    session.at(NOON_MS, Hold(holding(1, 1, 1, cpus=4000)))
    session.at(NOON_MS + GAP_MS)
    assert session.cpus() == {"used": 4.0, "offered": 0.0, "idle": 2.0, "unknown": 0.0}
    session.at(NOON_MS + 2 * GAP_MS + 1)
    found = session.cpus()
    assert found["used"] == 4.0
    assert found["unknown"] == pytest.approx(6.0, abs=1e-5)
    # Holdings continue.
    session.at(NOON_MS + 2 * GAP_MS + 1 + HOUR_MS // 2)
    assert session.cpus()["used"] == 6.0


def test_a_clock_that_jumps_by_years_costs_little_and_keeps_no_more_than_is_kept():
    session = Session(NOON_MS)
    session.at(NOON_MS + 1000 * DAY_MS)
    days = session.kept.days()
    assert len(days) == 400
    assert set(days) == set(range((NOON_MS // DAY_MS) + 600, (NOON_MS // DAY_MS) + 1000))
    assert all(day.span_ms == DAY_MS for day in days.values())


def test_a_day_is_the_sum_of_its_hours():
    session = Session(NOON_MS)
    session.at(NOON_MS, Hold(holding(1, 1, 1, cpus=4000)))
    for step in range(1, 60):
        session.at(NOON_MS + step * HOUR_MS // 2)
    for number, day in session.kept.days().items():
        total = Bucket()
        for hour, bucket in session.kept.hours().items():
            if hour // 24 == number:
                total.add(bucket)
        assert total == day
    assert len(session.kept.days()) == 1


def test_a_framework_that_subscribes_later_is_known_from_then_on():
    """As after a failover: its tasks are reported before it resubscribes."""
    session = Session(NOON_MS)
    session.at(NOON_MS, Hold(holding(3, 2, 1, cpus=4000)))
    info = FrameworkInfo("late", principal="payroll")
    session.at(NOON_MS + HOUR_MS // 4, AddFramework(3, info, roles=(2,)))
    session.at(NOON_MS + HOUR_MS)
    hour = session.kept.hours()[NOON_MS // HOUR_MS]
    whole = 4000 * HOUR_MS
    assert hour.held["role"]["ops", "cpus", Part.USED] == whole
    assert hour.held["framework"][NOT_KNOWN, "cpus", Part.USED] == whole // 4
    assert hour.held["framework"]["late", "cpus", Part.USED] == 3 * whole // 4
    assert hour.held["principal"]["payroll", "cpus", Part.USED] == 3 * whole // 4


def test_frameworks_that_come_and_go_fill_no_memory(monkeypatch):
    """Beyond a number of names an hour merges later ones; the total is preserved."""
    monkeypatch.setattr(buckets, "OPEN_NAMES_MAX", 3)
    session = Session(NOON_MS)
    for number in range(8):
        at_ms = NOON_MS + number * 1000
        info = FrameworkInfo(f"short-{number}", principal="x" * 1000)
        came = AddFramework(3, info, roles=(2,)), Hold(holding(3, 2, 1, cpus=1000))
        session.at(at_ms, *came)
        session.at(at_ms + 1000, RemoveFramework(3))
    (hour,) = session.kept.hours().values()
    assert {name for name, *_ in hour.held["framework"]} == {
        "short-0",
        "short-1",
        "short-2",
        OTHERS,
    }
    assert hour.held["framework"][OTHERS, "cpus", Part.USED] == 5 * 1000 * 1000
    assert hour.parts["cpus", Part.USED] == 8 * 1000 * 1000
    assert {len(name) for name, *_ in hour.held["principal"]} == {256}


def test_amounts_as_large_as_may_be_are_exact():
    """A client that holds as much as an agent may have, for just less than a step."""
    most = CAPACITY_MAX - 1
    session = Session(NOON_MS)
    session.at(NOON_MS, UpdateAgent(1, capacity={0: most}), Hold(holding(1, 1, 1, cpus=most)))
    session.at(NOON_MS + STEP_MS - 1)
    (hour,) = session.kept.hours().values()
    assert hour.held["role"]["eng", "cpus", Part.USED] == most * (STEP_MS - 1)
    assert hour.parts["cpus", Part.IDLE] == 2000 * (STEP_MS - 1)


def test_no_figure_falls_while_an_agent_holds_more_than_it_has():
    """One of two agents shrinks from 4 CPUs to 1 while 4 are used; the other has 2."""
    session = Session(NOON_MS)
    session.at(NOON_MS, Hold(holding(1, 1, 1, cpus=4000)))
    session.at(NOON_MS + HOUR_MS // 8, UpdateAgent(1, capacity={0: 1000}))
    assert session.cpus() == {"used": 0.5, "offered": 0.0, "idle": 0.25, "unknown": 0.0}
    session.at(NOON_MS + HOUR_MS // 4)
    assert session.cpus() == {"used": 1.0, "offered": 0.0, "idle": 0.25, "unknown": 0.0}
    session.at(NOON_MS + HOUR_MS // 4, given_back(holding(1, 1, 1, cpus=3000), used=True))
    session.at(NOON_MS + HOUR_MS // 2)
    assert session.cpus() == {"used": 1.25, "offered": 0.0, "idle": 0.75, "unknown": 0.0}


def test_the_names_that_held_most_are_kept_and_sums_stay():
    bucket, random = Bucket(), Random(4)
    expected = Counter[str]()
    for number in range(NAMES_MAX + 500):
        name = bucket.place("role", f"role-{number}")
        amount = random.randrange(1, 10**20)
        expected[name] = amount
        bucket.held["role"][name, "cpus", Part.USED] += amount
        bucket.parts["cpus", Part.USED] += amount
    bucket.close()
    held = {name: amount for (name, _, _), amount in bucket.held["role"].items()}
    most = dict(expected.most_common(NAMES_MAX))
    assert held.pop(OTHERS) == sum(expected.values()) - sum(most.values())
    assert held == most
    again = Bucket.from_bytes(bucket.to_bytes())
    assert again == bucket
