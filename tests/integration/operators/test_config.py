"""A real process and its configuration: which errors stop it, and which settings take effect."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.server.forked import completed
from tests.server.sidecar_process import SidecarProcess

DEPLOY = Path(__file__).parents[3] / "deploy"


def test_five_errors_from_three_sources_stop_the_start_and_are_all_named(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text("[http]\nport = 99999\n\n[policy]\nname = drf\nmood = 'x'\n")
    words = ("serve", "--config", str(file), "--set", "limits.agents=none")
    done = completed(*words, MESOS_ALLOCATOR_LOG__LEVEL="loud")
    assert (done.returncode, done.stdout) == (78, "")
    levels = "'debug', 'info', 'warning', 'error'"
    assert [line.removeprefix("error: ") for line in done.stderr.splitlines()] == [
        f"{file}:2: http.port = 99999: must be from 0 to 65535",
        f'{file}:5: name = drf: invalid value; text needs quotes, as in key = "value"',
        f"{file}:6: policy.mood = \"x\": unknown key; did you mean 'policy.mode'?",
        '--set: limits.agents = "none": must be a whole number, as in agents = 131072',
        'environment MESOS_ALLOCATOR_LOG__LEVEL: log.level = "loud": must be one of ' + levels,
    ]


@pytest.mark.long
def test_an_address_that_is_taken_stops_the_start(tmp_path):
    with SidecarProcess() as running:
        done = completed("serve", "--listen", running.targets[0], "--http-port", "0")
        assert done.returncode == 1
        assert running.targets[0] in done.stderr
        port = running.http.rpartition(":")[2]
        done = completed("serve", "--listen", "127.0.0.1:0", "--http-port", port)
        assert done.returncode == 1
        assert running.http in done.stderr
        assert running.alive


def test_the_example_serves(tmp_path):
    socket = tmp_path / "a.sock"
    environment = {
        "MESOS_ALLOCATOR_CONFIG": str(DEPLOY / "config.example.toml"),
        "MESOS_ALLOCATOR_LISTEN__UNIX_MODE": "0o600",
        "MESOS_ALLOCATOR_POLICY__NAME": "tsf",
    }
    os.environ.update(environment)
    try:
        with SidecarProcess("policy.flat=true", listen=[f"unix:{socket}"]) as running:
            assert running.said("ready")[0]["policy"] == "tsf"
            assert stat.S_IMODE(socket.stat().st_mode) == 0o600
            assert running.terminate() == 0
    finally:
        for name in environment:
            del os.environ[name]


def test_the_unit_is_what_systemd_understands(tool, tmp_path):
    unit = (DEPLOY / "systemd" / "mesos-allocator.service").read_text()
    program = "/opt/mesos-allocator/bin/mesos-allocator"
    assert f"ExecStart={program} serve --config" in unit
    copy = tmp_path / "mesos-allocator.service"
    copy.write_text(unit.replace(program, "/bin/true"))
    command = [tool("systemd-analyze"), "verify", str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "")
    # systemd's exposure level, of 100.
    command = [command[0], "security", "--offline=true", "--threshold=20", str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
