"""What a process apart answers is what the core's thread would have answered at that moment."""

import mmap
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allocator.core import PolicySpec, SetShadow
from allocator.policies import build
from allocator.server.config import Config, Loaded
from allocator.server.config.sections import JournalSection
from allocator.server.engine import apart as module
from allocator.server.engine.apart import RETRY_S
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.engine.fair_shares import FairnessWatch, compare_policies
from allocator.server.operators.operators import Operators
from allocator.server.system.frozen import Moment, is_child
from allocator.server.views import dump
from allocator.server.views.shadow_report import write_shadow_report
from allocator.server.views.views import RejectedError, Views
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import explain_pb2
from allocator.wire.journal.checkpoint import mark
from tests.core.random_gates import ROLES, random_world, some
from tests.server.engine.test_loop_journal import records
from tests.server.grpc.test_admin import CLUSTER
from tests.tiers import examples
from tests.world.rows import given_back, holdings_of, settled

WAIT_S = 60.0
CMMF = PolicySpec("cmmf", mode="characterised")


@settings(examples(10, 30), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1), before=st.integers(0, 3), after=st.integers(1, 4))
def test_all_is_of_the_moment_it_was_begun(seed, before, after):
    """The slow obvious twin is what was there at that moment."""
    chance = np.random.default_rng(seed)
    world = random_world(chance, CMMF)
    allocator = world.allocator

    def go_on():
        world.quota(str(chance.choice(ROLES)), some(chance, 0, 6))
        world.agent(some(chance, 1, 15))
        world.now_ms += 1000
        made = allocator.allocate(world.now_ms)
        world.tell(settled(made))
        world.tell(given_back(holdings_of(made), 5000))

    for _ in range(before):
        go_on()
    problem, copied = allocator.problem(), allocator.copied()
    gone_on = mmap.mmap(-1, 1)  # memory that both processes share

    def make():
        # Only after the core went on: what it changes must not be seen.
        while not gone_on[0]:
            time.sleep(0.001)
        return allocator.problem(), allocator.copied(still=True)

    moment = Moment(make, allocator.shared())
    for _ in range(after):
        go_on()
    gone_on[0] = 1
    found, columns = moment.take()
    assert mark(columns.columns()) == mark(copied.columns())
    assert mark(columns.columns()) != mark(allocator.copied().columns())
    if problem is None:
        assert found is None
        return
    for name in (each.name for each in fields(problem)):
        one, other = getattr(found, name), getattr(problem, name)
        if isinstance(other, np.ndarray):
            np.testing.assert_array_equal(one, other)
            assert (one.dtype, one.flags.writeable) == (other.dtype, other.flags.writeable)
        elif name in ("agents", "frameworks"):
            # Whoever goes by who it is finds the very same.
            assert list(map(id, one)) == list(map(id, other))
        elif name == "plan":
            assert one is other
        else:
            assert one == other


@pytest.fixture
def loop(monkeypatch) -> Iterator[CoreLoop]:
    """A small core, for which processes are forked as for a large one."""
    monkeypatch.setattr(module, "LARGE", 0)
    loop = CoreLoop(Config(), build_policy=build)
    loop.allocator.step(SetShadow(PolicySpec("tsf")))
    for event in CLUSTER:
        loop.allocator.step(event)
    loop.allocator.allocate(1000)
    loop.start()
    yield loop
    loop.stop()


def ask(loop: CoreLoop, work):
    return loop.call(work).result(WAIT_S)


def answers(loop: CoreLoop) -> dict[str, object]:
    """What everybody is told who asks for much."""
    asking, views = partial(ask, loop), Views(loop, Operators(loop, Loaded(Config(), {})))
    found: dict[str, object] = {}
    # The state first: questions bring up to date what is known of filters, where the core answers.
    for anonymise in (False, True):
        written = loop.new_snapshot(asking, anonymise=anonymise)
        found[f"snapshot {anonymise}"] = b"".join(written)
    found |= {
        "shares": views.shares(asking, pb.GetSharesRequest(fair=True, newcomer_role="eng")),
        "scores": views.shares(asking, pb.GetSharesRequest()),
        "shadow": write_shadow_report(loop, asking, fair=True),
        "dump": b"".join(dump.pieces(loop.apart.ask(asking, lambda: dump.read(loop)))),
        "forecast": compare_policies(
            loop, loop.apart.ask(asking, loop.copied), PolicySpec("drf"), PolicySpec("tsf")
        ),
    }
    for kind, name in (("framework", "spark"), ("role", "eng"), ("agent", "h1")):
        request = explain_pb2.ExplainRequest()
        setattr(request, kind, name)
        found[kind] = views.explain(asking, request)
    return found


def test_the_same_is_answered_apart_from_the_core(loop, monkeypatch):
    apart, begun = answers(loop), loop.apart.begun
    assert begun == len(apart)
    monkeypatch.setattr(loop.apart, "may_begin", lambda: False)
    here = answers(loop)
    assert loop.apart.begun == begun
    for name, answer in here.items():
        assert repr(apart[name]) == repr(answer), name


def test_who_there_is_not_is_told_of_without_asking_twice(loop):
    views = Views(loop, Operators(loop, Loaded(Config(), {})))
    for _ in range(2):
        with pytest.raises(RejectedError, match="no such agent"):
            views.explain(partial(ask, loop), explain_pb2.ExplainRequest(agent="nobody"))
    assert (loop.apart.begun, loop.apart.failed) == (2, 0)


def test_nothing_is_recorded_of_questions_that_are_answered_apart(tmp_path, monkeypatch):
    """They bring nothing up to date here that a replay would have to."""
    monkeypatch.setattr(module, "LARGE", 0)
    path = tmp_path / "journal"
    loop = CoreLoop(Config(journal=JournalSection(path=str(path))), build_policy=build)
    loop.start()
    views = Views(loop, Operators(loop, Loaded(Config(), {})))

    def looked() -> int:
        views.shares(partial(ask, loop), pb.GetSharesRequest())
        return sum(record.HasField("looked") for record in records(path))

    assert looked() == 0
    assert loop.apart.begun == 1
    loop.apart.may_begin = lambda: False
    assert looked() == 1
    loop.stop()


def end_there() -> str:
    if is_child():
        os._exit(3)
    return threading.current_thread().name


def cannot_be_written() -> object:
    return threading.Lock() if is_child() else threading.current_thread().name


@pytest.mark.parametrize("work", [end_there, cannot_be_written])
def test_where_a_process_fails_the_core_answers_itself(loop, work):
    assert loop.apart.ask(partial(ask, loop), work) == "core"
    assert (loop.apart.begun, loop.apart.failed) == (1, 1)
    # For a while none is begun.
    assert loop.apart.ask(partial(ask, loop), is_child) is False
    assert loop.apart.begun == 1
    loop.apart._failed_s -= RETRY_S
    assert loop.apart.ask(partial(ask, loop), is_child) is True


def test_where_no_process_can_be_forked_the_core_answers_itself(loop, monkeypatch):
    def fork() -> int:
        raise BlockingIOError(11, "no more processes")

    monkeypatch.setattr(os, "fork", fork)
    before = descriptors()
    assert loop.apart.ask(partial(ask, loop), is_child) is False
    assert (loop.apart.begun, loop.apart.failed) == (0, 1)
    assert descriptors() == before


def test_where_the_core_is_too_late_nothing_is_left(loop):
    """Who asked has gone; the next one is answered."""

    def late(work):
        loop.call(work).result(WAIT_S)
        raise TimeoutError

    before = descriptors(), children()
    for _ in range(3):
        with pytest.raises(TimeoutError):
            loop.apart.ask(late, lambda: time.sleep(60))
    assert loop.apart.ask(partial(ask, loop), is_child) is True
    assert (descriptors(), children()) == before


@pytest.mark.long
def test_neither_processes_nor_descriptors_are_left(loop):
    loop.apart.ask(partial(ask, loop), loop.copied)
    before = descriptors(), children()
    for _ in range(5):
        answers(loop)
    loop.apart.ask(partial(ask, loop), end_there)
    assert (descriptors(), children()) == before


def test_one_process_at_a_time_answers_all_who_ask(loop, monkeypatch):
    running, most = [0], [0]

    class Counted(Moment):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            running[0] += 1
            most[0] = max(most[0], running[0])

        def take(self):
            try:
                return super().take()
            finally:
                running[0] -= 1

    monkeypatch.setattr(module, "Moment", Counted)
    watch = FairnessWatch(loop, every_s=1.0)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(loop.apart.ask, partial(ask, loop), loop.copied) for _ in range(16)]
        watch.sample()
        assert all(each.result(WAIT_S) for each in asked)
    assert (loop.apart.begun, most[0], watch.counts.done) == (17, 1, 1)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def children() -> int:
    """Processes of ours that run, or that nobody has waited for."""
    tasks = Path("/proc/self/task").iterdir()
    return sum(len((task / "children").read_text().split()) for task in tasks)
