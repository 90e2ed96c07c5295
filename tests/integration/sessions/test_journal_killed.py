"""A real sidecar that is killed while it writes its journal: the journal contains every answer."""

import random
import time
from pathlib import Path

import numpy as np
import pytest

from allocator.cli.local.replay import journals_in
from allocator.core import AddAgent, AgentInfo, Decisions, Event
from allocator.core.checkpoint import nbytes_of
from allocator.policies import build
from allocator.server.engine.journal_files import _SMALL
from allocator.v1 import journal_pb2
from allocator.v1 import session_pb2 as pb
from allocator.wire import read_records
from allocator.wire.journal.replay import Replay
from tests.server.sidecar_process import GrpcModule, SidecarProcess
from tests.wire.dialogue import STATE, declined

AGENTS = 3000
"""Many enough that a separate thread writes checkpoints, and files are full soon."""


class Witness(GrpcModule):
    """A module that keeps the decisions it received, as bytes."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.kept: list[bytes] = []

    def next_batch(self, made: Decisions | None) -> pb.SessionRequest:
        """All previous decisions became offers, and are declined."""
        self.clock_ms += 1000
        events: list[Event] = []
        if made is not None and len(made):
            none = np.empty(0, np.int64)
            offered = np.full(len(made), pb.OUTCOME_REASON_OFFERED)
            outcomes = self.client.outcomes(offered, none, none.reshape(0, 0))
            events = [outcomes, declined(made, 0)]
        return self.client.batch(self.clock_ms, events, cycle=True)

    def hear_decisions(self) -> Decisions:
        answer = self.hear()
        made = self.client.receive(answer.SerializeToString())
        assert isinstance(made, Decisions)
        self.kept.append(answer.SerializeToString())
        return made


def run_and_kill(journal: Path, seed: int) -> list[bytes]:
    """Kill a sidecar while it decides; returns the decisions received from it."""
    capacity = {0: 2000, 1: 4_096_000}
    agents = [AddAgent(n, AgentInfo(f"agent-{n}"), capacity) for n in range(3, AGENTS)]
    flags = [f"journal.path={journal}", f"journal.bytes_max={2**20}", "journal.files=100"]
    flags.append(f"journal.compression={'zstd' if seed else 'none'}")
    socket = f"unix:{journal.parent.parent}/{seed}.sock"
    with (
        SidecarProcess(*flags, listen=[socket], compiled=True) as sidecar,
        sidecar.channel() as channel,
    ):
        module = Witness(channel)
        module.begin([*STATE, *agents])
        module.say(module.next_batch(None))
        made = module.hear_decisions()
        for _ in range(70):
            module.say(module.next_batch(made))
            made = module.hear_decisions()
        module.say(module.next_batch(made))
        for _ in range(5):
            module.say(module.next_batch(None))
        time.sleep(random.Random(seed).uniform(0, 0.1))
        sidecar.process.kill()
        sidecar.process.wait()
        assert not sidecar.said("journal off")
    return module.kept


@pytest.mark.long
def test_all_that_was_answered_is_in_the_journal_of_a_killed_process(tmp_path):
    directory = tmp_path / "journals"
    directory.mkdir()
    heard = [answer for seed in range(2) for answer in run_and_kill(directory / "journal", seed)]
    files = journals_in(directory)
    assert len(files) > 3
    player, said = Replay(build), []
    for path in files:
        with path.open("rb") as file:
            records: list[journal_pb2.JournalRecord] = list(read_records(file))
        assert records[0].HasField("start")
        for record in records:
            said += [answer.response.SerializeToString() for answer in player.take(record)]
    said += [answer.response.SerializeToString() for answer in player.finish()]
    assert player.found.differing == player.found.checkpoints_differing == 0
    assert player.found.missing == 0
    assert player.found.checkpoints >= len(files) - 2
    assert player._sidecar is not None
    assert nbytes_of(player._sidecar.kept()) >= _SMALL, "a thread wrote the checkpoints"
    rest = iter(said)
    assert all(answer in rest for answer in heard), "in the order in which they were heard"
