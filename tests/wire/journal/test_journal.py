"""The framing of a journal: round trips, truncated ends without errors, and detected damage."""

import io
import struct
import zlib
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zstandard import ZstdCompressor

from allocator.core import (
    ForgetUsage,
    PolicySpec,
    SessionLimits,
    SetBudget,
    SetCap,
    SetClaim,
    SetConstraint,
    SetDemand,
    SetDrain,
    SetGang,
    SetLimit,
    SetPause,
    SetPolicy,
    SetShadow,
    Settings,
    SetWeight,
)
from allocator.policies import build
from allocator.v1 import journal_pb2
from allocator.v1 import session_pb2 as pb
from allocator.wire import JournalError, WireError, frame, read_records, replay
from allocator.wire.journal.checkpoint import head
from allocator.wire.journal.framing import HEADER, MAGIC, Framer, Torn
from allocator.wire.journal.records import (
    closed_record,
    opened_record,
    operator_record,
    read_closed,
    read_operator,
    read_start,
    request_record,
    start_record,
)
from tests.wire.dialogue import WELCOME, new_sidecar


def frames(records: Iterable[journal_pb2.JournalRecord]) -> bytes:
    return HEADER + b"".join(map(frame, records))


RECORDS = [request_record(number, bytes([number]) * number) for number in range(1, 20)]
JOURNAL = frames(RECORDS)


def read(data: bytes) -> list[journal_pb2.JournalRecord]:
    return list(read_records(io.BytesIO(data)))


@given(st.lists(st.builds(request_record, st.integers(0, 2**64 - 1), st.binary(max_size=100))))
def test_written_values_are_read_back(records):
    assert read(frames(records)) == records


@given(st.integers(0, len(JOURNAL)))
def test_a_file_that_was_cut_off_is_read_as_far_as_it_goes(length):
    whole = read(JOURNAL[:length])
    assert whole == RECORDS[: len(whole)]
    assert len(frames(whole)) <= max(length, len(HEADER)) < len(
        frames(RECORDS[: len(whole) + 1])
    ) or (len(whole) == len(RECORDS))


@given(st.integers(len(HEADER), len(JOURNAL) - 1), st.integers(1, 255))
def test_damage_is_noticed_wherever_it_is(place, change):
    """Records before the damage are returned; none is invented."""
    data = bytearray(JOURNAL)
    data[place] ^= change
    got: list[journal_pb2.JournalRecord] = []
    with pytest.raises(JournalError, match="a record is damaged"):
        got.extend(read_records(io.BytesIO(bytes(data))))
    assert got == RECORDS[: len(got)]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"something else altogether, and longer", "the file is not a journal"),
        (MAGIC + b"\x01", "the journal has version 1; 4 can be read"),
    ],
)
def test_another_file_is_refused(data, said):
    with pytest.raises(JournalError, match=said):
        read(data)


LONG = request_record(1, b"an agent came and went; " * 100)
PACKED = Framer().frame(LONG)


def test_a_long_record_is_compressed_and_a_short_one_is_not():
    assert len(PACKED) < len(frame(LONG)) / 5
    short = opened_record(1)
    assert Framer().frame(short) == frame(short)
    framer = Framer()
    both = [LONG, short, LONG]
    assert read(HEADER + b"".join(map(framer.frame, both))) == both


@pytest.mark.parametrize("length", range(len(PACKED)))
def test_a_compressed_record_that_is_cut_off_loses_itself_only(length):
    told: list[Torn] = []
    data = HEADER + PACKED + PACKED[:length]
    assert list(read_records(io.BytesIO(data), told.append)) == [LONG]
    place = len(HEADER) + len(PACKED)
    assert told == ([Torn(place, length)] if length else [])


@pytest.mark.parametrize("place", range(len(PACKED)))
def test_damage_of_a_compressed_record_is_noticed(place):
    data = bytearray(HEADER + PACKED)
    data[len(HEADER) + place] ^= 1
    with pytest.raises(JournalError, match="a record is damaged"):
        read(bytes(data))


def with_checksums(body: bytes) -> bytes:
    length = struct.pack("<I", len(body))
    return HEADER + length + struct.pack("<II", zlib.crc32(length), zlib.crc32(body)) + body


def test_a_record_that_would_fill_the_memory_is_refused():
    # The header of a frame of 2^40 bytes, and one of unknown size.
    bomb = b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 2**40) + b"\x01\x00\x00"
    silent = ZstdCompressor(write_content_size=False).compress(b"x" * 1000)
    for body in (bomb, silent, PACKED[12:-4]):
        with pytest.raises(JournalError, match="is malformed, though its checksum fits"):
            read(with_checksums(body))


def test_a_checksum_of_nonsense_does_not_make_it_a_record():
    with pytest.raises(JournalError, match="is malformed, though its checksum fits"):
        read(with_checksums(b"\xff\xff\xff"))


SETTINGS = Settings(
    policy=PolicySpec(
        "choosy", "joint", "characterised", parameters={"unit": "slots"}, subtrees={"a/b": "drf"}
    ),
    seed=2**63,
    learn_demand=False,
    learn_after=7,
    probe_after=9,
    priors_max=12,
    prior_half_life_ms=13_000,
    learn_patience_cycles=14,
    patience_cycles=11,
    collect_ms=15_000,
    half_life_ms=16_000,
    usage_weight=0.75,
    outstanding_max=0.25,
    limits={"a/b": {"cpus": 3000, "mem": 4000}},
    demands={
        ("b", ""): SetDemand("b", "", {"cpus": 1000}),
        ("a", "x*"): SetDemand("a", "x*", {}, override=True),
    },
    constraints={("", "spark"): SetConstraint("", "spark", "zone=a")},
    weights={("b", ""): SetWeight("b", "", 0.5), ("", "x*"): SetWeight("", "x*", 4.0)},
    gangs={("b", ""): SetGang("b", "", 8)},
    budgets={("b",): SetBudget("b", {"gpus": 1}, "day", True, True, "gpus:1h", "2026-11-01")},
    drains={"host-1": 0, "agent-2": 1_795_000_000_000},
    pauses=frozenset({"b/c"}),
    claims={("b",): SetClaim("b", {"cpus": 2500})},
    caps={("b", "user"): SetCap("b", "user", {"cpus": 1500})},
    shadow=PolicySpec("tsf", mode="characterised"),
)


def test_the_first_record_holds_all_settings():
    limits = SessionLimits(agents=1, frameworks=2, roles=3, clients=4, kinds=5, filters=6)
    record = start_record(SETTINGS, limits, WELCOME)
    settings, read_limits = read_start(read(HEADER + frame(record))[0].start)
    assert (settings, read_limits) == (SETTINGS, limits)
    assert list(settings.demands) == list(SETTINGS.demands), "the order of rules counts"


@pytest.mark.parametrize(
    "event",
    [
        SetPolicy(PolicySpec("choosy", parameters={"unit": "slots"})),
        SetDemand("a", "b", {"cpus": 500}),
        SetDemand("a", "b", {}),
        SetDemand("a", "b", None),
        SetConstraint("a", "b", "ssd"),
        SetConstraint("a", "b", None),
        SetLimit("a/b", {"cpus": 500}),
        SetLimit("a", None),
        SetDrain("host-1"),
        SetDrain("host-1", drained=False),
        SetWeight("a", "b*", 2.5),
        SetWeight("a", "b*", None),
        SetGang("a", "b*", 8),
        SetGang("a", "b*", None),
        SetBudget("a/b", {"gpus": 500_000}, "week", hard=True),
        SetBudget("a/b", None),
        SetPause("a"),
        SetPause("a", paused=False),
        SetCap("a", "principal", {"gpus": 2000}),
        SetCap("a", "framework", None),
        SetClaim("a", {"gpus": 2000}),
        SetClaim("a", None),
        SetShadow(PolicySpec("choosy", mode="characterised", parameters={"unit": "tasks"})),
        SetShadow(None),
        SETTINGS,
    ],
)
def test_operators_changes_are_read_as_written(event):
    record = operator_record(event)
    assert read_operator(record) == event
    assert record.WhichOneof("record") == ("settings" if isinstance(event, Settings) else "change")


@pytest.mark.parametrize("event", [ForgetUsage(), ForgetUsage("a/b"), ForgetUsage("a", "f-1")])
def test_a_reset_of_averages_is_read_as_written(event):
    record = journal_pb2.JournalRecord.FromString(operator_record(event).SerializeToString())
    assert record.WhichOneof("record") == "forgotten"
    assert read_operator(record) == event


def beginning(**before: int) -> list[journal_pb2.JournalRecord]:
    """The beginning of the first file of a process."""
    start = start_record(Settings(), SessionLimits(), WELCOME, **before)
    return list(head(start, new_sidecar().kept()))


def test_a_replay_needs_a_beginning():
    with pytest.raises(JournalError, match="head is missing or incomplete"):
        list(replay(RECORDS, build))
    with pytest.raises(JournalError, match="head is missing or incomplete"):
        list(replay(beginning()[1:], build))


def test_a_beginning_must_be_whole():
    """A file that was truncated within its checkpoint is empty; the next one may be valid."""
    first = opened_record(1)
    with pytest.raises(JournalError, match="head is missing or incomplete"):
        list(replay([*beginning()[:-1], first], build))
    assert list(replay([*beginning()[:-1], *beginning(), first], build)) == []


def test_messages_of_unknown_sessions_have_no_answer():
    records = [*beginning(), request_record(4, b"unknown"), opened_record(1)]
    (answer,) = replay([*records, request_record(1, b"noise"), closed_record(4)], build)
    assert answer.session == 1
    assert answer.response.HasField("error")


def test_a_gap_in_the_numbers_is_noticed():
    with pytest.raises(JournalError, match="session 3 begins where 1 is next"):
        list(replay([*beginning(), opened_record(3)], build))


def test_messages_to_a_peer_are_read_back():
    error = WireError(pb.ERROR_CODE_SHUTDOWN, "field", "the end")
    back = read_closed(closed_record(1, error).closed)
    assert back is not None
    assert back.to_message(3) == error.to_message(3)
    assert read_closed(closed_record(1).closed) is None


@pytest.mark.parametrize("length", range(len(JOURNAL) - len(frame(RECORDS[-1])), len(JOURNAL)))
def test_a_torn_end_is_reported(length):
    told: list[Torn] = []
    whole = len(JOURNAL) - len(frame(RECORDS[-1]))
    assert list(read_records(io.BytesIO(JOURNAL[:length]), told.append)) == RECORDS[:-1]
    assert told == ([Torn(whole, length - whole)] if length > whole else [])


def test_damage_is_reported_with_its_place():
    place = len(HEADER) + sum(len(frame(record)) for record in RECORDS[:5])
    data = bytearray(JOURNAL)
    data[place + 13] ^= 1
    with pytest.raises(JournalError, match=f"a record is damaged, at byte {place}$"):
        read(bytes(data))
