"""A sidecar restored from a checkpoint answers like the original."""

import itertools
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.core import Allocator, PolicySpec, SetConstraint, SetPolicy, Settings
from allocator.core.checkpoint import CheckpointError, Column, Detached, to_columns
from allocator.policies import build
from allocator.v1 import journal_pb2
from allocator.v1 import session_pb2 as pb
from allocator.wire import Sidecar
from allocator.wire.journal.checkpoint import (
    VERSION,
    mark,
    read_checkpoint,
    read_mark,
    write_checkpoint,
)
from allocator.wire.session.sidecar import Answer
from tests.wire.dialogue import POLICY, WELCOME, Module, declined


def fresh() -> Sidecar:
    return Sidecar(lambda kept: Allocator(build, kept), Settings(policy=POLICY), WELCOME)


def read(records: list[journal_pb2.JournalRecord]) -> Column:
    *pieces, end = records
    return read_checkpoint(
        (record.checkpoint_piece for record in pieces), read_mark(end.checkpoint_end)
    )


def resumed(sidecar: Sidecar) -> Sidecar:
    """Another sidecar that continues from a serialised checkpoint."""
    other = Sidecar(lambda kept: Allocator(build, kept), Settings(), sidecar.welcome)
    other.resume(read(list(write_checkpoint(to_columns(Detached(sidecar.kept()).value)))))
    return other


def as_bytes(answers: list[Answer]) -> list[tuple[int, bytes]]:
    return [(number, response.SerializeToString()) for number, response in answers]


def test_sessions_in_every_state_continue():
    """One session with the allocator, one within its snapshot, unknown clients, one refused."""
    sidecar = fresh()
    sidecar.step(SetConstraint("", "nobody", "ssd"))
    bearer = Module(sidecar, "bearer", 2).begin()
    bearer.batch(bearer.all_offered(bearer.batch(cycle=True)))
    unknown, refused = Module(sidecar), Module(sidecar, "older", 1)
    refused.say(refused.client.hello())
    other = resumed(sidecar)
    assert (other.active, other.sessions_begun) == (1, 3)
    assert other.allocator.settings == sidecar.allocator.settings
    # From here on both receive the same messages.
    newer = Module(sidecar, "newer", 3)
    assert other.open() == newer.number
    snapshot = [pb.SnapshotChunk(), pb.SnapshotChunk(last=True, clock_ms=1)]
    said = [
        (bearer.number, bearer.client.batch(9000, (), cycle=True)),
        (unknown.number, bearer.client.batch(9000, (), cycle=True)),
        (refused.number, pb.SessionRequest()),
        (newer.number, newer.client.hello()),
        (bearer.number, bearer.client.batch(9500, (), cycle=True)),
        *((newer.number, pb.SessionRequest(snapshot=chunk)) for chunk in snapshot),
    ]
    for number, request in said:
        data = request.SerializeToString()
        assert as_bytes(other.receive(number, data)) == as_bytes(sidecar.receive(number, data))
        other = resumed(other)
    assert other.active == newer.number
    assert {session.state.value for session in other.sessions.values()} == {"events", "nothing"}


def test_all_of_a_sidecar_and_a_session_is_kept_or_given():
    """A new attribute must be listed here; later answers may depend on it."""
    sidecar = fresh()
    module = Module(sidecar).begin()
    kept = {"allocator", "_active", "_last", "sessions"}
    given = {"_new_allocator", "welcome"}
    only_within_a_call, only_for_metrics = {"_parting"}, {"counts"}
    assert set(vars(sidecar)) == kept | given | only_within_a_call | only_for_metrics
    assert sidecar._parting == []
    kept = {"state", "greeting", "sequence", "clock_ms", "_allocator"}
    given, only_for_people = {"_admit", "_check", "_welcome"}, {"failure", "mended", "figures"}
    only_for_people |= {"asides", "asides_told", "defects"}
    session = sidecar.sessions[module.number]
    assert set(vars(session)) == kept | given | {"_counts"} | only_for_people


def checkpoint() -> list[journal_pb2.JournalRecord]:
    sidecar = fresh()
    module = Module(sidecar).begin()
    made = module.batch(cycle=True)
    module.batch(module.all_offered(made), declined(made))
    return list(write_checkpoint(to_columns(sidecar.kept())))


a_checkpoint = cache(checkpoint)


@given(place=st.integers(0, 10**6), change=st.integers(1, 255))
def test_damage_of_a_checkpoint_is_noticed_or_harmless(place, change):
    """A few bits of compressed data are unused; changing them has no effect."""
    piece, end = a_checkpoint()
    data = bytearray(piece.checkpoint_piece)
    data[place % len(data)] ^= change
    try:
        root = read_checkpoint([bytes(data)], read_mark(end.checkpoint_end))
    except CheckpointError:
        return
    assert mark(root) == read_mark(end.checkpoint_end)


@given(st.integers(0, 10**6))
def test_a_checkpoint_that_is_cut_off_is_noticed(length):
    piece, end = a_checkpoint()
    data = piece.checkpoint_piece[: length % len(piece.checkpoint_piece)]
    with pytest.raises(CheckpointError, match=r"ends too early|is not what was written"):
        read([journal_pb2.JournalRecord(checkpoint_piece=data), end])


@pytest.mark.parametrize("missing", range(1, 10))
def test_a_checkpoint_without_its_last_bytes_is_noticed(missing):
    """They keep only a checksum, as the rest may have been read by then."""
    piece, end = a_checkpoint()
    data = piece.checkpoint_piece[:-missing]
    with pytest.raises(CheckpointError, match=r"ends too early"):
        read([journal_pb2.JournalRecord(checkpoint_piece=data), end])


@given(st.lists(st.integers(0, 10**6), max_size=5))
def test_pieces_of_any_size_are_a_checkpoint(cuts):
    piece, end = a_checkpoint()
    data = piece.checkpoint_piece
    places = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    pieces = [data[a:b] for a, b in itertools.pairwise(places)]
    root = read_checkpoint(pieces, read_mark(end.checkpoint_end))
    assert mark(root) == read_mark(end.checkpoint_end)


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
def test_a_checkpoint_of_another_version_is_reported(monkeypatch, version):
    monkeypatch.setattr("allocator.wire.journal.checkpoint.VERSION", version)
    other = checkpoint()
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match=f"has version {version}; {VERSION} can be read"):
        read(other)


def test_a_removed_policy_is_reported():
    sidecar = fresh()
    sidecar.step(SetPolicy(PolicySpec("tsf")))
    sidecar.allocator.settings.policy = PolicySpec("gone")
    other = fresh()
    with pytest.raises(CheckpointError, match=r"cannot be restored: .*no policy 'gone'"):
        other.resume(to_columns(sidecar.kept()))
    assert other.allocator.settings.policy == POLICY
