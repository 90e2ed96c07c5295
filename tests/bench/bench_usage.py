"""Cost of usage accounting, relative to that of following.

python -m tests.bench.bench_usage [--agents 50000] [--frameworks 1000]

The records of a session with a large cluster are followed twice in this process: without a usage
account, and with one. In the session, first everything is offered and released repeatedly, then one
agent at a time. Times are processor times of the thread that follows.
"""

import argparse
import time

import numpy as np

from allocator.core import Allocator, PolicySpec, Settings, Trail
from allocator.policies import build, substitute
from allocator.usage.account import Account
from allocator.v1 import journal_pb2
from allocator.wire import Greeting, Sidecar
from allocator.wire.journal.follower import Follower
from allocator.wire.journal.recorder import Recorder
from laboratory.module_protocol import ModuleSession
from tests.bench.cluster import arrivals
from tests.wire.dialogue import WELCOME, Module
from tests.wire.journal.following import beginning
from tests.world.rows import given_back, holdings_of, settled

ROUNDS, SINGLES = 10, 500


def with_trail(*arguments, **options) -> Allocator:
    return Allocator(*arguments, trail=Trail(), **options)


class Recorded(Recorder):
    """A sidecar whose records are kept as bytes, as in the stream."""

    def __init__(self) -> None:
        spec = PolicySpec("drf", mode="characterised")
        sidecar = Sidecar(
            lambda kept: Allocator(build, kept, substitute=substitute()),
            Settings(policy=spec),
            WELCOME,
        )
        self.records: list[bytes] = []
        super().__init__(sidecar, lambda record: self.records.append(record.SerializeToString()))
        self.head = [record.SerializeToString() for record in beginning(sidecar)]

    def taken(self) -> list[bytes]:
        """Return the records since the last call."""
        records, self.records[:] = list(self.records), []
        return records


def lived(agents: int, frameworks: int) -> tuple[list[bytes], dict[str, list[bytes]]]:
    """Return the records that add the cluster, and those of each part of the session."""
    recorded = Recorded()
    module = Module(recorded)  # type: ignore[arg-type]  # which it stands for
    # Each answer in one part.
    module.client = ModuleSession(Greeting("master", "instance", 1, message_bytes_max=2**28))
    module.begin(())
    waiting = list(arrivals(agents, frameworks))
    for at in range(0, len(waiting), 2000):
        module.batch(*waiting[at : at + 2000])
    first = [*recorded.head, *recorded.taken()]
    for _ in range(ROUNDS):
        made = module.batch(cycle=True)
        module.batch(settled(made), given_back(holdings_of(made), 0))
    all_of_it = recorded.taken()
    for number in range(SINGLES):
        made = module.batch(cycle=True, agents=np.array([1 + number]))
        module.batch(settled(made), given_back(holdings_of(made), 0))
    return first, {"everything": all_of_it, "one agent": recorded.taken()}


def follow(first: list[bytes], parts: dict[str, list[bytes]], *, with_account: bool) -> None:
    follower = Follower(build, substitute(), make=with_trail)
    account = Account(lambda _closed: None)
    for name, records in {"arrivals": first, **parts}.items():
        begun_s = time.thread_time()
        spent_s = 0.0
        for data in records:
            follower.take(journal_pb2.JournalRecord.FromString(data))
            if with_account:
                before_s = time.thread_time()
                account.follow(follower.sidecar)
                spent_s += time.thread_time() - before_s
        took_s = time.thread_time() - begun_s
        text = f", of which the account {1e6 * spent_s / len(records):.0f}" if with_account else ""
        each = f"{1e6 * took_s / len(records):.0f} us a record{text}"
        print(f"{name}: {len(records)} records, {took_s:.2f} s, {each}")
    if with_account:
        begun_s = time.thread_time()
        account.settle()
        settled_s = time.thread_time()
        written = account.moment().to_bytes()
        size = sum(map(len, written.values()))
        print(
            f"settle: {1000 * (settled_s - begun_s):.1f} ms; copy and write:"
            f" {1000 * (time.thread_time() - settled_s):.1f} ms, {size} bytes"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=50_000)
    parser.add_argument("--frameworks", type=int, default=1000)
    given = parser.parse_args()
    first, parts = lived(given.agents, given.frameworks)
    for with_account in (False, True):
        print("with the account" if with_account else "without")
        follow(first, parts, with_account=with_account)


if __name__ == "__main__":
    main()
