"""A real sidecar as a process that a test may kill, stop and start again."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import grpc

from allocator.server.system import loop_cache
from allocator.v1 import admin_pb2, admin_pb2_grpc
from tests.cluster.processes import Child, until

START_S = 300.0
"""With a cold cache it compiles first."""

INTERPRETED = "it needs compiled loops, but NUMBA_DISABLE_JIT is set"

ADMIN_S = 20.0
ROOT = Path(__file__).resolve().parents[2]


class Sidecar:
    """`mesos-allocator serve` on a Unix socket below a directory."""

    def __init__(self, directory: Path, configuration: str = "") -> None:
        """Write its configuration; `configuration`: additional lines."""
        self.target = f"unix:{directory / 'sidecar.sock'}"
        self.log = directory / "sidecar.log"
        self._config = directory / "sidecar.toml"
        self._config.write_text(
            f'[listen]\ntargets = ["{self.target}"]\n[http]\nport = 0\n[log]\nformat = "json"\n'
            + configuration
        )
        self._child: Child | None = None

    @property
    def child(self) -> Child:
        assert self._child is not None, "the sidecar was not started"
        return self._child

    def start(self, *options: str) -> None:
        """Start it with options such as ``policy.name=tsf``, and wait until it serves."""
        command = [sys.executable, "-m", "allocator", "serve", "--config", self._config]
        command += [word for option in options for word in ("--set", option)]
        self._child = Child(command, self.log, {"PYTHONPATH": str(ROOT)})
        until(self._serves, START_S, "the sidecar serves", 0.05)

    def _serves(self) -> bool:
        assert self.child.alive, f"the sidecar ended:\n{self.child.said()[-2000:]}"
        try:
            with self._channel() as channel:
                stub = admin_pb2_grpc.AdminServiceStub(channel)
                stub.GetStatus(admin_pb2.GetStatusRequest(), timeout=1.0)
        except grpc.RpcError:
            return False
        return True

    def crash(self) -> None:
        self.child.kill()

    def freeze(self) -> None:
        self.child.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.child.signal(signal.SIGCONT)

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop()

    def status(self) -> Any:
        with self._channel() as channel:
            stub = admin_pb2_grpc.AdminServiceStub(channel)
            return stub.GetStatus(admin_pb2.GetStatusRequest(), timeout=ADMIN_S)

    def until_compiled(self) -> None:
        """Wait until its compiled loops are loaded; fails at once if it does not compile them."""
        assert not loop_cache.is_off(), INTERPRETED
        until(lambda: self.status().loops_state == "compiled", START_S, "its loops are loaded")

    def dump(self) -> Any:
        """A dump of its state."""
        with self._channel() as channel:
            stub = admin_pb2_grpc.AdminServiceStub(channel)
            pieces = stub.Dump(admin_pb2.DumpRequest(), timeout=ADMIN_S)
            return json.loads(b"".join(piece.json for piece in pieces))

    def set_policy(self, name: str, mode: str = "oblivious") -> None:
        """Change the policy from the next cycle on, by an operator's command."""
        self.command("policy", "set", name, "--mode", mode)

    def set_demand(self, resources: str, role: str) -> None:
        self.command("demand", "set", "--role", role, resources)

    def command(self, *words: str) -> None:
        """Run an operator's command such as ``cap set eng cpus:1``; it must succeed."""
        log = self.log.with_name("command.log")
        at = ("--target", self.target, "--timeout", f"{ADMIN_S:g}")
        command = [sys.executable, "-m", "allocator", *words, *at]
        child = Child(command, log, {"PYTHONPATH": str(ROOT)})
        assert child.wait(60) == 0, child.said()[-2000:]

    def _channel(self) -> grpc.Channel:
        return grpc.insecure_channel(self.target, [("grpc.enable_http_proxy", 0)])
