"""Usage accounting of a real sidecar: its reports, its state file, and its journal."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from allocator.core import Hold
from allocator.server.following.usage_store import NAME
from allocator.server.operators.state_store import LEARNT
from tests.integration.operators.test_lasting_settings import ask, command
from tests.server.sidecar_process import GrpcModule, SidecarProcess
from tests.wire.dialogue import holding

HOUR_MS = 3_600_000
NOON_MS = 1_835_308_800_000 + 12 * HOUR_MS
"""2028-02-28T12:00Z."""


def cpus(found: dict) -> dict[str, float]:
    """CPU hours, by kind of use."""
    (span,) = found["spans"]
    (cluster,) = (each for each in span["cluster"] if each["resource"] == "cpus")
    parts = ("used", "offered", "idle", "unknown")
    return {part: float(cluster[f"{part}_seconds"]) / 3600 for part in parts}


class Story:
    """A sidecar with a state directory and a journal, and the module in session with it."""

    def __init__(self, directory: Path, *more: str) -> None:
        self.directory = directory
        journal = directory / "journal"
        set_ = (f"state.directory={directory}", f"journal.path={journal}", *more)
        self.process = SidecarProcess(*set_)
        self.process.__enter__()
        self.channel = self.process.channel()

    def begin(self, at_ms: int) -> None:
        """Open a session; wait until the account follows it."""
        self.module = GrpcModule(self.channel, str(at_ms), at_ms * 1000)
        self.module.clock_ms = at_ms
        self.module.begin()
        self.at(at_ms, Hold(holding(1, 1, 1, cpus=4000)))
        self.await_account(at_ms)

    def await_account(self, at_ms: int) -> None:
        while True:  # pytest-timeout bounds it
            asked = command(self.process, "usage", "show", "--json", "--timeout", "60")
            if asked.returncode == 0:  # no answer while an observer starts
                spans = json.loads(asked.stdout)["spans"]
                if spans and spans[0]["end_ms"] >= at_ms:
                    return
            time.sleep(0.05)

    def at(self, at_ms: int, *events) -> None:
        self.module.clock_ms = at_ms - 1000
        self.module.batch(*events)

    def usage(self, *words: str) -> dict:
        return ask(self.process, "usage", "show", *words)

    def of_journals(self, *words: str) -> dict:
        return ask(self.process, "usage", "show", "--journal", str(self.directory), *words)

    def end(self) -> None:
        """Stop the process as an operator would."""
        self.channel.close()
        self.process.process.terminate()
        self.process.process.wait()
        self.process.__exit__()


@pytest.fixture
def story(tmp_path):
    begun = Story(tmp_path)
    yield begun
    begun.process.__exit__()


def test_usage_outlives_the_process_and_is_what_the_journal_says(story, tmp_path):
    story.begin(NOON_MS)
    story.at(NOON_MS + HOUR_MS)
    assert cpus(story.usage()) == {"used": 4.0, "offered": 0.0, "idle": 2.0, "unknown": 0.0}
    assert story.usage("--by", "framework") == story.of_journals("--by", "framework")
    story.end()
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
    # Two hours later another process continues the account.
    again = Story(tmp_path)
    again.begin(NOON_MS + 3 * HOUR_MS)
    again.at(NOON_MS + 3 * HOUR_MS + HOUR_MS // 2)
    assert cpus(again.usage()) == {"used": 6.0, "offered": 0.0, "idle": 3.0, "unknown": 12.0}
    for words in ((), ("--daily",), ("--by", "principal")):
        assert again.usage(*words) == again.of_journals(*words)
    code, page = again.process.page("/usage?by=framework&resource=cpus")
    assert code == 200
    assert "2028-02-28" in page
    assert "spark" in page
    # A reset requires a confirmation, and takes effect at once.
    assert command(again.process, "usage", "reset").returncode == 1
    assert command(again.process, "usage", "reset", "--yes").returncode == 0
    assert cpus(again.usage()) == {"used": 0.0, "offered": 0.0, "idle": 0.0, "unknown": 0.0}
    again.at(NOON_MS + 4 * HOUR_MS)
    assert cpus(again.usage())["used"] == 2.0
    again.end()


def test_usage_that_a_killed_observer_did_not_save_is_unknown(story):
    story.begin(NOON_MS)
    story.at(NOON_MS + HOUR_MS // 2)
    story.usage()  # saves the account
    story.at(NOON_MS + HOUR_MS)
    killed = story.process.observer_pid
    os.kill(killed, signal.SIGKILL)
    story.process.await_said("the observer ended and is restarted")
    story.await_account(NOON_MS + HOUR_MS)
    story.at(NOON_MS + 2 * HOUR_MS)
    assert cpus(story.usage()) == {"used": 6.0, "offered": 0.0, "idle": 3.0, "unknown": 3.0}
    # The journal yields all of it.
    assert cpus(story.of_journals()) == {"used": 8.0, "offered": 0.0, "idle": 4.0, "unknown": 0.0}


def test_a_file_that_is_broken_is_set_aside(tmp_path):
    (tmp_path / NAME).write_bytes(b"no database at all" * 100)
    story = Story(tmp_path)
    try:
        story.begin(NOON_MS)
        story.at(NOON_MS + HOUR_MS)
        assert cpus(story.usage())["used"] == 4.0
        (aside,) = tmp_path.glob(f"{NAME}.broken-*")
        assert aside.read_bytes().startswith(b"no database")
        story.process.await_said("the saved usage account is damaged, and was set aside")
    finally:
        story.process.__exit__()


def test_forgotten_averages_stay_forgotten_after_a_crash(tmp_path):
    """Also if they were of an earlier process; the command waits until that is saved."""

    def averages() -> list[dict]:
        return json.loads((tmp_path / LEARNT).read_text())["content"].get("usage", [])

    kept = "fairness.half_life_s=3600"
    story = Story(tmp_path, kept)
    story.begin(NOON_MS)
    story.at(NOON_MS + HOUR_MS)
    story.end()
    assert [row["role"] for row in averages()] == ["eng"]
    again = Story(tmp_path, kept)
    done = command(again.process, "usage", "forget", "--role", "eng", "--yes")
    assert (done.returncode, done.stdout) == (0, "")
    os.kill(again.process.process.pid, signal.SIGKILL)
    assert not averages()
    again.process.process.wait()
    again.process.__exit__()


def test_use_of_a_budget_survives_a_restart(story, tmp_path):
    def used(of: Story) -> float:
        (use,) = ask(of.process, "budget", "list")["uses"]
        assert use["per"] == "day"
        return use["used"]["cpus"]

    ask(story.process, "budget", "set", "eng", "cpus:100h", "--per", "day")
    story.begin(NOON_MS)
    story.at(NOON_MS + HOUR_MS)
    assert used(story) == 4.0
    story.end()
    # Nothing counts while no process runs.
    again = Story(tmp_path)
    again.begin(NOON_MS + 3 * HOUR_MS)
    again.at(NOON_MS + 3 * HOUR_MS + HOUR_MS // 2)
    assert used(again) == 6.0
    for hour in range(4, 14):
        again.at(NOON_MS + hour * HOUR_MS)
    assert used(again) == 4.0, "since midnight"
    again.end()
