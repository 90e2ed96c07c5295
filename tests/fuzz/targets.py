"""Fuzz targets: each takes any bytes, and raises only unexpected errors.

A target returns whether it accepted the input. Any exception is a finding.
"""

import io
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from allocator import policies
from allocator.core import Allocator, SessionLimits, Settings
from allocator.policies import build
from allocator.server.config import Config, ConfigError, load_all
from allocator.server.engine.core_loop import CoreLoop
from allocator.server.grpc.forwarding import status_of
from allocator.server.plugins.guarded_policy import GuardedRegistry
from allocator.v1 import admin_pb2, journal_pb2
from allocator.wire import JournalError, SessionState, Sidecar, WireError
from allocator.wire.journal.framing import HEADER, frame, read_records
from allocator.wire.journal.replay import replay
from laboratory.scenarios.schema import ScenarioError
from laboratory.scenarios.schema import read as read_scenario
from laboratory.workloads.traces import TraceError, read_nodes, read_pods, read_swim
from tests.server.in_process import asking, running
from tests.wire.codec.test_fuzz import OPENING, well_formed
from tests.wire.dialogue import POLICY, WELCOME

SMALL = SessionLimits(agents=64, frameworks=64, roles=64, clients=128, kinds=16, filters=256)
"""Small limits, so that large input is refused instead of allocated."""

SEPARATOR = b"\xff\xfe\xfd"
"""Separates the messages of one input."""

ANSWER_S = 30.0


def wire(data: bytes) -> bool:
    """Messages of a module: the first byte is the number of valid messages that precede them."""
    sidecar = Sidecar(lambda each: Allocator(build, each, SMALL), Settings(policy=POLICY), WELCOME)
    number = sidecar.open()
    session = sidecar.sessions[number]
    proper = data[0] % (len(OPENING) + 1) if data else 0
    for message in [*OPENING[:proper], *data[1:].split(SEPARATOR)]:
        if session.state is not SessionState.CLOSED:
            well_formed([answer for _, answer in sidecar.receive(number, message)], session)
    taken = session.state is SessionState.STREAMING
    if taken:
        sidecar.allocator.check()
    sidecar.close(number)
    return taken


def config(data: bytes) -> bool:
    """A configuration file; one that names plugins is skipped, as it would execute them."""
    if b"plugins" in data:
        return False
    try:
        load_all(_file("config.toml", data), {})
    except ConfigError as error:
        problems = error.problems
    else:
        return True
    assert problems, "a configuration was refused without a problem"
    return False


def journal(data: bytes) -> bool:
    """A journal: truncated or damaged anywhere, or with nonsensical records."""
    try:
        for _ in replay(read_records(io.BytesIO(data)), build, policies.substitute()):
            pass
    except (JournalError, WireError):
        return False
    return True


def records(data: bytes) -> bool:
    """Records of a journal with valid checksums."""
    parts = []
    for part in data.split(SEPARATOR):
        try:
            parts.append(journal_pb2.JournalRecord.FromString(part))
        except DecodeError:
            return False
    return journal(HEADER + b"".join(map(frame, parts)))


def traces(data: bytes) -> bool:
    """A trace of the type given by the first byte, or a scenario."""
    kind, text = (data[0] % 4, data[1:]) if data else (0, b"")
    read: Callable[[Path], object] = (read_nodes, read_pods, read_swim, read_scenario)[kind]
    try:
        read(_file("trace", text))
    except (TraceError, ScenarioError):
        return False
    return True


def admin(data: bytes) -> bool:
    """An operator's request; the first byte selects the call."""
    methods = admin_pb2.DESCRIPTOR.services_by_name["AdminService"].methods
    method = methods[data[0] % len(methods)] if data else methods[0]
    module = import_module(f"allocator.v1.{Path(method.input_type.file.name).stem}_pb2")
    try:
        request = getattr(module, method.input_type.name).FromString(data[1:])
    except DecodeError:
        return False
    try:
        answer = getattr(_stub(), method.name)(request, timeout=ANSWER_S)
        if method.server_streaming:
            list(answer)
    except grpc.RpcError as error:
        code, text = status_of(error)
    else:
        return True
    assert code not in {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}, f"{code}: {text}"
    assert text, "a request was refused without a word"
    return False


TARGETS: Mapping[str, Callable[[bytes], bool]] = {
    each.__name__: each for each in (wire, config, journal, records, traces, admin)
}


_RUNNING = ExitStack()


@cache
def _stub() -> Any:
    """A channel to an operators' service and its observer, both in this process."""
    registry = GuardedRegistry(deadline_s=10.0)
    loop = CoreLoop(
        Config(),
        build_policy=registry.build,
        substitute=policies.substitute(),
        before_policy=registry.renew,
    )
    _RUNNING.enter_context(running(loop))
    return _RUNNING.enter_context(asking(loop, registry.try_out))


@cache
def _directory() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="fuzz-")


def _file(name: str, data: bytes) -> Path:
    path = Path(_directory().name) / name
    path.write_bytes(data)
    return path
