"""Write the seed inputs of fuzzing: ``python -m tests.fuzz.seed_corpus``.

They are small and valid, one for each variant that a target distinguishes. Inputs found by fuzzing
are stored beside them, under names that begin with ``found-``.
"""

from collections.abc import Iterator
from pathlib import Path

from allocator.server.system import loop_cache
from allocator.v1 import admin_pb2, journal_pb2, settings_pb2, types_pb2
from allocator.v1 import session_pb2 as pb
from allocator.wire.journal.checkpoint import head
from allocator.wire.journal.framing import HEADER, frame
from allocator.wire.journal.records import (
    closed_record,
    opened_record,
    request_record,
    start_record,
)
from laboratory.module_protocol import write_event
from tests.fuzz.targets import SEPARATOR, TARGETS
from tests.rule_changes import rule_change
from tests.wire.codec.test_fuzz import OPENING
from tests.wire.dialogue import WELCOME, Module, new_sidecar

CORPUS = Path(__file__).parent / "corpus"

CONFIG = b"""[listen]
targets = ["unix:/tmp/a", "[::1]:0"]
[policy]
name = "ps-dsf"
mode = "characterised"
parameters = { }
[policy.subtrees]
eng = "drf"
[[limit]]
role = "eng/ads"
resources = "cpus:20;mem:65536"
[[demand]]
role = "eng/*"
resources = "cpus:2;mem:2048"
[[constraint]]
all = true
agents = "zone=a|b; gpu!=K80; ssd"
[[weight]]
framework_name = "x*"
weight = 2.0
"""

NODES = b"sn,cpu_milli,memory_mib,gpu,model\nn-1,64000,262144,2,P100\n"
SCENARIO = Path(__file__).parents[2] / "examples/scenarios/one_greedy_framework.toml"

LOOKED = journal_pb2.JournalRecord(looked=journal_pb2.JournalLooked())
"""A record that earlier versions wrote."""


def wire() -> Iterator[tuple[str, bytes]]:
    """The beginning of a session, batches, and outcomes of decisions."""
    yield "opening", b"\x00" + SEPARATOR.join(OPENING)
    sidecar = new_sidecar()
    module = Module(sidecar).begin()
    decisions = module.batch(cycle=True)
    outcomes = module.all_offered(decisions)
    batches = [
        pb.EventBatch(sequence=1, clock_ms=2_000, cycle=True),
        pb.EventBatch(sequence=2, clock_ms=3_000, events=[write_event(outcomes)]),
    ]
    said = [pb.SessionRequest(events=batch).SerializeToString() for batch in batches]
    yield "cycle", bytes([len(OPENING)]) + SEPARATOR.join(said)
    yield "garbage", b"\x02" + bytes(range(32))


def config() -> Iterator[tuple[str, bytes]]:
    """A file with all types of sections, and an invalid one."""
    yield "sections", CONFIG
    yield "broken", b"[learn\n"


def journal() -> Iterator[tuple[str, bytes]]:
    """Records without the start that a journal needs, and a header alone."""
    body = b"".join(map(frame, (opened_record(1), LOOKED)))
    yield "header", HEADER
    yield "records", HEADER + body
    yield "torn", HEADER + body[:-3]


def records() -> Iterator[tuple[str, bytes]]:
    """A session in a journal."""
    sidecar = new_sidecar()
    allocator = sidecar.allocator
    start = start_record(allocator.settings, allocator.state.session_limits, WELCOME)
    requests = [request_record(1, message) for message in OPENING]
    begin = head(start, sidecar.kept())
    parts = [*begin, opened_record(1), *requests, LOOKED, closed_record(1)]
    yield "session", SEPARATOR.join(each.SerializeToString() for each in parts)


def traces() -> Iterator[tuple[str, bytes]]:
    """A file of each kind."""
    yield "nodes", b"\x00" + NODES
    yield "swim", b"\x02job1\t10\t5\t1048576\t2048\t4096\n"
    yield "scenario", b"\x03" + SCENARIO.read_bytes()


def admin() -> Iterator[tuple[str, bytes]]:
    """A request for each call, and some that change something."""
    methods = admin_pb2.DESCRIPTOR.services_by_name["AdminService"].methods
    names = [method.name for method in methods]
    cpus = types_pb2.Quantities(name=["cpus"], amount=[2_000])
    limit = rule_change(limit=settings_pb2.Limit(role="eng", limit=cpus))
    policy = admin_pb2.SetPolicyRequest(policy=settings_pb2.Policy(name="tsf", mode="oblivious"))
    for name, request in (("ChangeRule", limit), ("SetPolicy", policy)):
        yield name, bytes([names.index(name)]) + request.SerializeToString()
    for number, name in enumerate(names):
        yield f"empty-{name}", bytes([number])


def main() -> None:
    """Write them all."""
    loop_cache.prepare()
    for name in TARGETS:
        directory = CORPUS / name
        directory.mkdir(parents=True, exist_ok=True)
        for each, data in globals()[name]():
            (directory / each).write_bytes(data)


if __name__ == "__main__":
    main()
