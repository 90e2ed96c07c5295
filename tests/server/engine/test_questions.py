"""Whoever may ask can slow decisions down by a fifth at most, by a clock that stands still."""

from concurrent.futures import Future
from functools import partial

import pytest
import structlog

from allocator.policies import build
from allocator.server.config import Config
from allocator.server.engine.commands import PART, SAVED_S, Questions
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.hold_times import QUIET_S, HoldTimes
from tests.tiers import long

EPSILON_S = 1e-6


class Clock:
    """Seconds that pass where somebody says so."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def questions(clock) -> Questions:
    return Questions(clock)


def asked(questions: Questions, clock: Clock, seconds: float) -> Future[None]:
    future: Future[None] = Future()
    questions.add(future, lambda: clock.sleep(seconds))
    return future


def test_after_a_long_question_the_next_waits_four_times_as_long(questions, clock):
    asked(questions, clock, SAVED_S / (1 - PART))  # all that was saved
    questions.answer()
    asked(questions, clock, 1.0)
    clock.sleep(questions.rest_s())
    questions.answer()
    asked(questions, clock, 0.0)
    assert questions.rest_s() == pytest.approx(4.0)
    clock.sleep(3.0)
    assert questions.rest_s() == pytest.approx(1.0)
    assert questions.taken_s == pytest.approx(SAVED_S / (1 - PART) + 1.0)


def test_who_asks_now_and_then_waits_for_nobody(questions, clock):
    for _ in range(20):
        for _ in range(4):  # as a page, or a command that asks several things
            asked(questions, clock, SAVED_S / 10)
            assert questions.rest_s() == 0
            questions.answer()
        clock.sleep(10 * SAVED_S)
    assert questions.rest_s() is None


def test_no_more_is_saved_than_that(questions, clock):
    clock.sleep(3600.0)
    asked(questions, clock, SAVED_S + 1.0)
    questions.answer()
    asked(questions, clock, 0.0)
    assert questions.rest_s() > 0


def test_one_that_was_given_up_costs_nothing(questions, clock):
    asked(questions, clock, 10.0)
    questions.answer()
    for _ in range(1000):
        assert asked(questions, clock, 10.0).cancel()
    last = asked(questions, clock, 1.0)
    clock.sleep(questions.rest_s())
    questions.answer()
    assert last.done()
    assert questions.rest_s() is None
    assert questions.taken_s == 11.0


@pytest.mark.parametrize("question_s", [0.3, *long(0.003, 3.0)])
def test_the_core_decides_for_four_fifths_of_its_time(question_s, clock):
    """Sixty-four messages, and more questions than could be answered meanwhile."""
    loop = CoreLoop(Config(), build_policy=build, clock=clock)
    spent_s = {"messages": 0.0, "questions": 0.0}
    most_s = [0.0]
    over: list[float] = []

    def work(what: str, seconds: float) -> None:
        clock.sleep(seconds)
        spent_s[what] += seconds
        passed_s = sum(spent_s.values())
        over.append(spent_s["questions"] - PART * passed_s - most_s[0] - SAVED_S)

    questions = [loop.ask(lambda: work("questions", question_s)) for _ in range(2000)]
    messages = [loop.call(lambda: work("messages", 0.5)) for _ in range(64)]
    answered = loop.call(lambda: sum(each.done() for each in questions))
    most_s[0] = question_s
    loop.start()
    for each in messages:
        each.result(60)
    assert max(over) <= EPSILON_S
    # They are answered all the same, as far as a fifth of the time goes.
    expected = (PART * 64 * 0.5 / (1 - PART) + SAVED_S) / question_s
    assert answered.result(60) >= min(0.9 * expected, 2000) - 1
    loop.stop()
    # What is left is answered at the end, when nothing is decided any more.
    assert all(each.done() for each in questions)
    assert loop.commands.questions_s == pytest.approx(2000 * question_s)


def test_a_question_comes_after_what_was_said_before_it():
    loop = CoreLoop(Config(), build_policy=build)
    seen: list[int] = []
    for number in range(10):
        loop.call(partial(seen.append, number))
    found = loop.ask(lambda: list(seen))
    loop.start()
    assert found.result(60) == list(range(10))
    loop.stop()


def test_how_long_each_command_held_the_core_is_counted(clock):
    loop = CoreLoop(Config(), build_policy=build, clock=clock)
    for seconds in (0.02, 0.02, 0.3, 2.0):
        loop.call(partial(clock.sleep, seconds))
    loop.ask(partial(clock.sleep, 0.3))
    loop.start()
    loop.stop()
    assert longer(loop, "change") == {"0.01": 4, "0.05": 2, "0.5": 1, "2.5": 0}
    assert longer(loop, "question") == {"0.01": 1, "0.05": 1, "0.5": 0, "2.5": 0}


def longer(loop: CoreLoop, kind: str) -> dict[str, float]:
    """How many holds of a kind took longer than some bounds."""
    counted = dict(loop.holds.by_kind[kind].cumulative())
    return {bound: counted["+Inf"] - counted[bound] for bound in ("0.01", "0.05", "0.5", "2.5")}


def test_what_is_done_within_something_else_is_counted_by_itself(clock):
    holds = HoldTimes(clock)
    with holds.of("message"):
        clock.sleep(0.02)
        with holds.of("copy"):
            clock.sleep(0.3)
        holds.turns_out("cycle")
    found = {kind: each.total_s for kind, each in holds.by_kind.items() if each.count}
    assert found == {"copy": pytest.approx(0.3), "cycle": pytest.approx(0.02)}


def test_long_holds_are_said_but_not_each_of_them(clock):
    holds = HoldTimes(clock)
    with structlog.testing.capture_logs() as said:
        for _ in range(1000):
            for kind, seconds in (("question", 0.07), ("change", 0.04), ("cycle", 9.0)):
                with holds.of(kind):
                    clock.sleep(seconds)
    assert {each["by"] for each in said} == {"question"}, "a cycle may take long"
    passed_s = 1000 * (0.07 + 0.04 + 9.0)
    assert len(said) <= 1 + passed_s / QUIET_S
    assert sum(each["times"] for each in said) >= 1000 - QUIET_S / 9
