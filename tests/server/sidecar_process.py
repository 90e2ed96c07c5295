"""A real sidecar process, and a module that talks to it over a real channel."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import grpc

from allocator.core import Decisions
from allocator.v1 import admin_pb2, admin_pb2_grpc
from allocator.v1 import session_pb2 as pb
from allocator.wire import Greeting
from laboratory.module_protocol import ModuleSession
from tests.server.forked import Forked
from tests.server.metrics.scraping import Samples, samples
from tests.server.processes import observer_of
from tests.wire.dialogue import STATE

METHOD = "/allocator.v1.SessionService/Session"
READY_S = 240.0
"""With a cold cache it compiles first."""


def _executed(words: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "allocator", *words],
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )


class SidecarProcess:
    """``python -m allocator serve`` as a child process; ends with the context.

    `command`: another command of the same options.
    `compiled`: with a Python of its own and compiled loops. Loading them takes longer than the rest
    of most tests, and plain Python decides the same. Otherwise it is a fork, see `Forked`.
    `until`: the log event that ends the wait for its start; by default, that it accepts sessions.

    log: the structured log so far.
    """

    def __init__(
        self,
        *flags: str,
        listen: Sequence[str] = ("127.0.0.1:0",),
        config: Path | None = None,
        compiled: bool = False,
        until: str = "ready",
        command: str = "serve",
    ) -> None:
        addresses = [word for target in listen for word in ("--listen", target)]
        settings = [word for flag in flags for word in ("--set", flag)]
        words = [command, "--http-port", "0", *addresses, *settings]
        words += ["--config", str(config)] if config else []
        self.begun_s = time.monotonic()
        self._until = until
        self.process = _executed(words) if compiled else Forked(words, os.environ)
        self.log: list[dict] = []
        self.raw: list[str] = []
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.ready_s = 0.0
        self.targets: list[str] = []
        self.http = ""

    def __enter__(self) -> Self:
        assert self._ready.wait(READY_S), self.raw
        if not self.said(self._until):
            self.process.wait()
            raise AssertionError("".join(self.raw))
        ready = self.said(self._until)[0]
        self.targets, self.http = ready["targets"], ready["http"]
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def said(self, event: str) -> list[dict]:
        """Log entries with this event."""
        return [entry for entry in self.log if entry.get("event") == event]

    def await_said(self, event: str, within_s: float = 60.0, **fields: object) -> dict:
        """Wait for a log entry."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            for entry in self.said(event):
                if fields.items() <= entry.items():
                    return entry
            time.sleep(0.01)
        raise AssertionError(f"no {event} {fields} in {self.raw}")

    def terminate(self, number: int = signal.SIGTERM, within_s: float = 60.0) -> int:
        """Ask the process to end; returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(within_s)

    @property
    def observer_pid(self) -> int:
        """The observer's process."""
        found = observer_of(self.process.pid)
        assert found is not None
        return found

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def catch_up(self) -> None:
        """Wait until the observer's books include all that the sidecar has answered so far."""
        with suppress(grpc.RpcError), self.channel() as channel:
            stub = admin_pb2_grpc.AdminServiceStub(channel)
            stub.ListNames(admin_pb2.ListNamesRequest(of="role"), timeout=30, wait_for_ready=True)

    def page(self, path: str) -> tuple[int, str]:
        """Send an HTTP request once the observer has caught up; returns the status and the text."""
        self.catch_up()
        return self.page_now(path)

    def page_now(self, path: str) -> tuple[int, str]:
        """Send an HTTP request, whatever the observer knows by now."""
        try:
            with urllib.request.urlopen(f"http://{self.http}{path}", timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def scraped(self) -> Samples:
        """The metrics of a scrape now."""
        status, text = self.page("/metrics")
        assert status == 200, text
        return samples(text)

    def channel(self, target: str | None = None) -> grpc.Channel:
        return grpc.insecure_channel(target or self.targets[0], [("grpc.enable_http_proxy", 0)])

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.raw.append(line)
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            self.log.append(entry)
            if entry.get("event") == self._until:
                self.ready_s = time.monotonic() - self.begun_s
                self._ready.set()
        self._ready.set()


def await_true(found: Callable[[], bool]) -> None:
    """Repeat a request; the expected answer may take a minute."""
    until_s = time.monotonic() + 60
    while not found():
        assert time.monotonic() < until_s
        time.sleep(0.02)


class GrpcModule:
    """A module on a channel: sends bytes or requests, receives responses."""

    def __init__(
        self,
        channel: grpc.Channel,
        instance: str = "instance",
        started_us: int = 1,
        token: str | None = None,
    ) -> None:
        self.client = ModuleSession(Greeting("master", instance, started_us))
        self.clock_ms = 1000
        self._said: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        method: Any = channel.stream_stream(
            METHOD, response_deserializer=pb.SessionResponse.FromString
        )
        metadata = None if token is None else [("authorization", f"Bearer {token}")]
        # pytest-timeout bounds it: a module-wide session may live as long as its tests.
        self.call = method(iter(self._said.get, None), metadata=metadata)

    def say(self, request: bytes | pb.SessionRequest) -> None:
        data = request if isinstance(request, bytes) else request.SerializeToString()
        self._said.put(data)

    def hear(self) -> pb.SessionResponse:
        return next(self.call)

    def heard(self) -> Iterator[pb.SessionResponse]:
        """All responses until the stream ends."""
        yield from self.call

    def leave(self) -> None:
        """Close the sending side; the sidecar ends the stream."""
        self._said.put(None)

    def begin(self, state=STATE, sequence: int = 0) -> "GrpcModule":
        self.say(self.client.hello())
        self.client.receive(self.hear())
        for request in self.client.snapshot(state, sequence=sequence, clock_ms=self.clock_ms):
            self.say(request)
        return self

    def batch(
        self, *events, cycle: bool = False, figures: pb.ModuleFigures | None = None
    ) -> Decisions:
        self.clock_ms += 1000
        request = self.client.batch(self.clock_ms, events, cycle=cycle)
        if figures is not None:
            request.events.figures.CopyFrom(figures)
        self.say(request)
        answer = self.client.receive(self.hear())
        assert isinstance(answer, Decisions)
        return answer

    def ends_with(self) -> pb.Error:
        """The error that ends the stream."""
        *_, last = self.heard()
        assert last.WhichOneof("message") == "error"
        return last.error
