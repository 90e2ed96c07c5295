"""`status --check`: exit codes for monitoring, and one line of output, on real sidecars."""

import json
import re
import shlex
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from allocator.cli.app import app
from allocator.cli.render.tables import CRITICAL, checked
from allocator.cli.tree import Check
from tests.server.sidecar_process import GrpcModule, SidecarProcess, await_true


def check(target: str, *words: str) -> Result:
    return CliRunner().invoke(app, ["status", "--check", "--target", target, *words])


STATUS: dict[str, Any] = {
    **dict.fromkeys(("agents", "active_agents", "frameworks", "active_frameworks", "roles"), 2),
    **dict.fromkeys(("filters", "outstanding_decisions", "sessions"), 3),
    **dict.fromkeys(("cycles", "decisions", "events"), 4),
    "uptime_s": 61.2,
    "cycle_p50_ms": 0.25,
    "cycle_p99_ms": None,
    "resources": [],
    "warnings": [],
    "master_id": "m",
}

PERFORMANCE = re.compile(r"'[^'=|]+'=[\d.]+(s|ms|c)?(;;;0;[\d.]+)?")
"""One number, in the format of the guidelines for monitoring plugins."""


def one_line(result: Result) -> str:
    (line,) = result.stdout.splitlines()
    assert not result.stderr
    return line


def test_a_sidecar_is_judged_by_what_it_says_of_itself():
    with SidecarProcess(compiled=True) as sidecar, sidecar.channel() as channel:
        target = sidecar.targets[0]
        # Until the observer has received the news that the loops are loaded it says so.
        await_true(lambda: one_line(check(target)).startswith("WARNING: no session: no master"))
        assert check(target).exit_code == Check.WARNING
        # Without the option the code says whether there was an answer, as before.
        assert CliRunner().invoke(app, ["status", "--target", target]).exit_code == 0
        module = GrpcModule(channel).begin()
        module.batch(cycle=True)
        await_true(lambda: check(target).exit_code == Check.OK)  # the loops are loaded by then
        line, bar, numbers = one_line(check(target)).partition(" | ")
        assert (line, bar) == ("OK: in session with master master", " | ")
        told = dict(each.split("=") for each in shlex.split(numbers))
        assert (told["agents"], told["sessions"], told["warnings"]) == ("2", "1c", "0")
        found = check(target, "--json")
        assert (found.exit_code, json.loads(found.stdout)["in_session"]) == (Check.OK, True)


def test_an_unreachable_sidecar_is_critical():
    found = check("127.0.0.1:1", "--timeout", "5")
    assert found.exit_code == Check.CRITICAL
    assert one_line(found).startswith("CRITICAL: no sidecar answers at 127.0.0.1:1")


@pytest.mark.parametrize("what", sorted(CRITICAL))
def test_that_decisions_are_not_what_was_set_is_critical(what):
    warnings = [{"what": "starting", "text": "slow"}, {"what": what, "text": "a\nb"}]
    code, line = checked({**STATUS, "warnings": warnings})
    assert code == Check.CRITICAL
    assert line.startswith(f"CRITICAL: starting: slow; {what}: a")
    assert "\n" not in line


def test_numbers_for_monitoring_follow_behind_a_bar():
    names = ["cpus", "a' b=|c"]  # an agent may give a resource any name
    resources = [{"name": name, "total": 8, "held": 2.5, "offered": 1} for name in names]
    warnings = [{"what": "unknown name", "text": "zone=a|b"}]
    data = {**STATUS, "resources": resources, "warnings": warnings}
    line, _, numbers = checked(data)[1].partition(" | ")
    assert line == "WARNING: unknown name: zone=a/b"
    found = re.findall(r"('[^']*'=\S+)", numbers)
    assert " ".join(found) == numbers
    assert all(PERFORMANCE.fullmatch(each) for each in found)
    assert {"'uptime'=61s", "'cycle_p50'=0.250ms", "'cpus_held'=2.5;;;0;8"} < set(found)
    assert not any("cycle_p99" in each for each in found)  # there was no cycle
    assert "'a_ b__c_offered'=1;;;0;8" in found


@pytest.mark.parametrize(
    "words", [["--timeout", "0"], ["--none"], ["--token-file", "/none"], ["--tls-ca", "/none"]]
)
def test_a_question_that_cannot_be_asked_is_unknown(words):
    found = check("127.0.0.1:1", *words)
    assert found.exit_code == Check.UNKNOWN
    assert one_line(found).startswith("UNKNOWN: ")


def test_without_permission_the_state_is_unknown(tmp_path):
    token = tmp_path / "token"
    token.write_text("secret")
    with SidecarProcess(f"access.admin_read_token={token}") as sidecar:
        found = check(sidecar.targets[0])
        assert found.exit_code == Check.UNKNOWN
        assert "no right admin_read" in one_line(found)
