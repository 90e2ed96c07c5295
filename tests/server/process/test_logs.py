"""Logs: what a process writes to standard error."""

import json
import os
import pty
import subprocess
import sys
from datetime import datetime, timedelta

import grpc

from tests.plain_loops import PLAIN
from tests.server.sidecar_process import GrpcModule

PROGRAM = """
import logging, sys, warnings, structlog
from allocator.server.process import logs

logs.configure(sys.argv[1], sys.argv[2])
log = structlog.get_logger()
log.debug("too small")
log.info("session opened", session=3, peer="unix:")
logging.getLogger("grpc").warning("from %s", "a library")
logging.getLogger("grpc").debug("chatter")
warnings.warn("old")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("failed")
"""

HOSTILE = """
from allocator.server.process import logs
import structlog

logs.configure("info", "console")
log = structlog.get_logger()
log.info("refused", name="a\\x1b[2J\\u202e", names=["b\\x9b2J"])
try:
    raise ValueError("the framework \\x1b]0;x\\x07")
except ValueError:
    log.exception("failed")
"""


def run(level: str, style: str) -> list[str]:
    command = [sys.executable, "-c", PROGRAM, level, style]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_every_line_is_an_object_with_time_level_event_and_context():
    lines = [json.loads(line) for line in run("info", "json")]
    assert [line["event"] for line in lines[:2]] == ["session opened", "from a library"]
    assert [line["level"] for line in lines] == ["info", "warning", "warning", "error"]
    assert (lines[0]["session"], lines[0]["peer"]) == (3, "unix:")
    assert lines[1]["logger"] == "grpc"
    assert "UserWarning: old" in lines[2]["event"]
    assert "ZeroDivisionError: division by zero" in lines[3]["exception"]
    for line in lines:
        time = datetime.fromisoformat(line["timestamp"])
        assert time.utcoffset() == timedelta(0)


def test_a_level_leaves_out_what_is_less():
    events = [json.loads(line)["event"] for line in run("error", "json")]
    assert events == ["failed"]
    events = [json.loads(line)["event"] for line in run("debug", "json")]
    assert "too small" in events
    assert "chatter" not in events  # debug lines of libraries are suppressed


def test_auto_means_json_where_there_is_no_terminal():
    assert all(json.loads(line) for line in run("info", "auto"))


def test_console_is_for_people():
    text = "\n".join(run("info", "console"))
    assert "[info     ] session opened" in text
    assert "session=3" in text
    assert "ZeroDivisionError" in text
    assert "\x1b[" not in text


def test_auto_means_console_on_a_terminal():
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, "info", "auto"]
    process = subprocess.Popen(command, stderr=theirs)
    os.close(theirs)
    written = b""
    try:
        while piece := os.read(ours, 4096):
            written += piece
    except OSError:
        pass  # Linux reports this when the last writer has closed.
    finally:
        os.close(ours)
    assert process.wait(60) == 0
    assert b"session opened" in written
    assert b"\x1b[" in written
    assert b'"event"' not in written


def test_a_sidecar_continues_when_its_log_is_no_longer_read():
    command = [sys.executable, "-m", "allocator", "serve", "--listen", "127.0.0.1:0"]
    command += ["--http-port", "0"]
    environment = os.environ | PLAIN
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stderr is not None
        while (ready := json.loads(process.stderr.readline()))["event"] != "ready":
            pass
        process.stderr.close()
        with grpc.insecure_channel(ready["targets"][0]) as channel:
            for number in range(3):
                module = GrpcModule(channel, started_us=number + 1).begin()
                module.batch(cycle=True)
                module.leave()
                assert list(module.heard()) == []
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


AUDIT = """
from allocator.server.process import logs
from allocator.server.operators.audit import Audit

logs.configure("error", "json")
audit = Audit()
audit.note("user a (1) at unix", "demand", "role eng", old="", new="cpus:1")
audit.note("user a (1) at unix", "demand", "role eng", result="refused", error="no")
assert audit.counts() == {("demand", "done"): 1, ("demand", "refused"): 1}
"""


def test_the_audit_log_is_written_at_any_level():
    command = [sys.executable, "-c", AUDIT]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    first, second = map(json.loads, done.stderr.splitlines())
    assert (first["logger"], first["level"]) == ("mesos_allocator.audit", "info")
    assert (first["event"], first["who"]) == ("setting", "user a (1) at unix")
    assert (first["old"], first["new"], first["result"]) == ("", "cpus:1", "done")
    assert (second["result"], second["error"]) == ("refused", "no")


def test_names_of_tenants_in_logs_do_not_control_the_terminal():
    """Neither in a field nor in the text of an error."""
    command = [sys.executable, "-c", HOSTILE]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    lines = done.stderr.splitlines()
    assert any("the framework \N{REPLACEMENT CHARACTER}]0;x" in line for line in lines)
    assert all(line.isprintable() for line in lines)
