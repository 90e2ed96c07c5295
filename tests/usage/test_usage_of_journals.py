"""`usage show --journal`: usage from journals, including the time before there was an account."""

import csv
import io
import json
from decimal import Decimal
from typing import Any

import pytest
from typer.testing import CliRunner

from allocator.cli.app import app
from allocator.core import AddFramework, FrameworkInfo, Hold, PolicySpec, Settings
from allocator.wire.journal.framing import HEADER, frame
from allocator.wire.journal.records import for_file
from tests.wire.dialogue import Module, holding
from tests.wire.journal.following import Followed, beginning

NOON_MS = 1_835_308_800_000 + 12 * 3_600_000
"""2028-02-28T12:00Z."""

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    """Two sessions of a cluster of 6 CPUs with an hour between them; 4 are used all the time."""
    followed: Any = Followed(Settings(policy=PolicySpec("drf", selection="listed")))
    records = beginning(followed.sidecar)
    for begin_ms in (NOON_MS, NOON_MS + 2 * HOUR_MS):
        module = Module(followed, instance=str(begin_ms), started_us=begin_ms)
        module.clock_ms = begin_ms
        module.begin()
        module.clock_ms -= 1000
        info = FrameworkInfo("f-1", "=cmd()", principal="payroll\x1b[2J")
        module.batch(AddFramework(3, info, roles=(1,)), Hold(holding(3, 1, 1, cpus=4000)))
        module.clock_ms = begin_ms + HOUR_MS - 1000
        module.batch()
        followed.close(module.number)
    path = tmp_path_factory.mktemp("journal") / "journal"
    records += map(for_file, followed.records)
    path.write_bytes(HEADER + b"".join(map(frame, records)))
    return path


def show(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["usage", "show", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


def cpus(journal, *arguments) -> list[dict]:
    """The rows about CPUs."""
    text = show("--journal", journal, "--output", "csv", *arguments)
    return [row for row in csv.DictReader(io.StringIO(text)) if row["resource"] == "cpus"]


def test_parts_are_the_capacity_times_the_time(journal):
    role, cluster = cpus(journal)
    assert (role["role"], role["used_hours"]) == ("eng", "8.000000")
    assert cluster["role"] == "(cluster)"
    assert (cluster["from"], cluster["to"]) == ("2028-02-28T00:00:00Z", "2028-02-28T15:00:00Z")
    parts = [Decimal(cluster[f"{part}_hours"]) for part in ("used", "offered", "idle", "unknown")]
    assert parts == [8, 0, 4, 6]
    assert Decimal(cluster["capacity_seconds"]) == 3 * 6 * 3600


def test_names_of_tenants_are_harmless(journal):
    """No spreadsheet evaluates them, and no terminal interprets them."""
    framework, _ = cpus(journal, "--by", "framework")
    assert framework["framework"] == "f-1 =cmd()"
    principal, _ = cpus(journal, "--by", "principal")
    assert "\x1b" not in principal["principal"]
    assert "\x1b" not in show("--journal", journal, "--by", "principal")


def test_times_choose_hours(journal):
    role, cluster = cpus(journal, "--since", "1h")
    assert (role["used_hours"], cluster["capacity_hours"]) == ("4.000000", "6.000000")
    assert cpus(journal, "--since", "2028-02-28T13:00", "--until", "2028-02-28T14:00+00:00") == [
        {**cluster, "from": "2028-02-28T13:00:00Z", "to": "2028-02-28T14:00:00Z"}
        | {f"{part}_{unit}": amount for part, amounts in NOTHING_BUT_UNKNOWN.items()
           for unit, amount in amounts.items()}
    ]  # fmt: skip


NOTHING_BUT_UNKNOWN = {
    **{part: {"hours": "0.000000", "seconds": "0"} for part in ("used", "offered", "idle")},
    "unknown": {"hours": "6.000000", "seconds": "21600"},
}


def test_json_has_exact_seconds(journal):
    data = json.loads(show("--journal", journal, "--json", "--daily"))
    (span,) = data["spans"]
    assert span["accounted_ms"] == 3 * HOUR_MS
    (role,) = span["names"]
    assert role["resources"] == [
        {"resource": "cpus", "used_seconds": "28800", "offered_seconds": "0"}
    ]
    assert (span["cluster"][0]["resource"], span["cluster"][0]["idle_seconds"]) == ("cpus", "14400")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--since", "yesterday"), "--since 'yesterday': is no time; write it as 7d"),
        (("--since", "1960-01-01"), "is before 1970"),
        (("--since", "1h", "--until", "2h"), "--until 2h: is not after --since 1h; swap them"),
        (("--by", "user"), "'user'"),
    ],
)
def test_mistakes_are_named(journal, arguments, said):
    assert said in show("--journal", journal, *arguments, code=2)


def test_show_is_the_default_command(journal):
    options = ["--journal", str(journal), "--since", "2h", "--output", "csv"]
    result = CliRunner().invoke(app, ["usage", *options])
    assert (result.exit_code, result.stdout) == (0, show(*options))
    misspelt = CliRunner().invoke(app, ["usage", "shwo"])
    assert (misspelt.exit_code, "Did you mean 'show'?" in misspelt.stderr) == (2, True)


def test_a_file_that_is_no_journal_is_refused(tmp_path):
    (tmp_path / "corrupt").write_bytes(b"this is no journal")
    assert "no session was recorded" in show("--journal", tmp_path / "corrupt", code=1)
