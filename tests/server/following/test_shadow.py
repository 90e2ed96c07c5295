"""The thread of the shadow policy: its totals, and the cycles it skips."""

import threading
from dataclasses import replace

import pytest

from allocator.core import PolicySpec, SetShadow
from allocator.policies import build
from allocator.server.following import shadow as shadows
from allocator.server.following.shadow import Shadow
from tests.core.diagnostics.test_beside import small

DRF = PolicySpec("drf", "listed")
OTHER = PolicySpec("ps-dsf", "joint", "characterised")
PATIENCE_S = 300.0


class Gate:
    """A policy that decides like another one, once it is released."""

    def __init__(self, spec: PolicySpec) -> None:
        self.inner = build(spec)
        self.open = threading.Event()

    def allocate(self, snapshot, seed):
        assert self.open.wait(PATIENCE_S)
        return self.inner.allocate(snapshot, seed)


@pytest.fixture
def made():
    """Give a function that makes a shadow, which ends with the test."""
    running: list[Shadow] = []

    def make(build_apart=build) -> Shadow:
        running.append(Shadow(build_apart))
        return running[-1]

    yield make
    for each in running:
        each.close()


def test_a_shadow_sums_up_its_offers(made):
    shadow, world = made(), small(DRF, OTHER)
    for _ in range(2):
        for offer in world.cycle():
            world.decline(offer, refuse_s=0)
        shadow.after_answers(world.allocator)
        assert shadow.settle(PATIENCE_S)
    reading = shadow.read()
    counts = reading.counts
    assert (reading.spec, counts.compared, counts.late, counts.failed) == (OTHER, 2, 0, 0)
    assert counts.offers_of_shadow + counts.offers_of_both > 0
    assert counts.busy_s > 0
    assert {role for role, _ in reading.clients} == {"a", "b"}
    moved = sum(abs(each.offered - each.offered_by_shadow) for each in reading.clients.values())
    assert reading.share_apart == pytest.approx(moved / 2)


def test_cycles_that_follow_too_fast_are_counted_and_skipped(made):
    gate = Gate(OTHER)
    shadow, world = made(lambda _spec: gate), small(DRF, OTHER)
    for number in range(3):
        world.agent(f"cpus:{number + 1};mem:1")
        world.cycle()
        shadow.after_answers(world.allocator)
    gate.open.set()
    assert shadow.settle(PATIENCE_S)
    counts = shadow.read().counts
    assert (counts.compared, counts.late) == (1, 2)


def test_a_failing_shadow_is_counted_and_reported_and_has_no_other_effect(made):
    class Broken:
        def allocate(self, snapshot, seed):
            raise ZeroDivisionError("no shares")

    shadow, world = made(lambda _spec: Broken()), small(DRF, OTHER)
    assert len(world.cycle()) > 0
    shadow.after_answers(world.allocator)
    assert shadow.settle(PATIENCE_S)
    counts = shadow.read().counts
    assert (counts.compared, counts.failed) == (0, 1)
    assert counts.error == "ZeroDivisionError: no shares"


def test_another_shadow_policy_starts_from_scratch_and_none_ends_it(made):
    shadow, world = made(), small(DRF, OTHER)
    world.cycle()
    shadow.after_answers(world.allocator)
    assert shadow.settle(PATIENCE_S)
    another = replace(OTHER, name="tsf")
    world.allocator.step(SetShadow(another))
    shadow.after_answers(world.allocator)
    assert shadow.read().spec == another
    assert shadow.read().counts.compared == 0
    world.allocator.step(SetShadow(None))
    shadow.after_answers(world.allocator)
    assert shadow.read() == shadows.Tally()
    assert world.allocator.trail is not None
    assert world.allocator.trail.shadow_bytes_max == 0


def test_the_number_of_remembered_clients_is_limited(made, monkeypatch):
    monkeypatch.setattr(shadows, "CLIENTS_MAX", 1)
    shadow, world = made(), small(DRF, DRF)
    world.cycle()
    shadow.after_answers(world.allocator)
    assert shadow.settle(PATIENCE_S)
    reading = shadow.read()
    assert (len(reading.clients), reading.counts.forgotten) == (1, 1)
