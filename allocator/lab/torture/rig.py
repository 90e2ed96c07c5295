"""What faults may lay hands on: the process, the ways to it, its files."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from allocator.lab.links.sidecar_process import channel, free_port
from allocator.lab.links.stream import StreamLink
from allocator.lab.links.wall_clock import WallClock
from allocator.lab.torture.link import PatientLink
from allocator.lab.torture.report import Findings
from allocator.lab.torture.sidecar import TorturedSidecar
from allocator.lab.torture.wires import Authority, Cable, Proxy, dial_tcp, dial_unix
from allocator.v1 import admin_pb2 as pb
from allocator.v1.admin_pb2_grpc import AdminServiceStub

ANSWER_S = 5.0
JOURNAL_BYTES_MAX = 4 * 2**20

PATIENCE_CYCLES = 5
"""So that it shows soon whether somebody starves."""


@dataclass
class Ports:
    """Where the sidecar listens on loopback, in each of its lives."""

    grpc: int = field(default_factory=free_port)
    http: int = field(default_factory=free_port)


@dataclass
class Rig:
    """A sidecar with everything around it.

    directory: configuration, sockets, certificates, journal and state.
    out: what is kept when all is over.
    unix: the target that is never disturbed, for looking.
    authority: none: there is no openssl, so no TLS.
    cable: between the proxy of TLS and the sidecar; None: there is no right to lay one, or no TLS.
    wall: which the sidecar has.
    plain, secure: relays to the Unix socket, and to the port with TLS.
    trusted: whether the certificate that the sidecar shows is one to believe.
    short: whether the process has no descriptor left.
    kept: limits (of cpus, thousandths) that operators set and were told are kept, by role.
    """

    directory: Path
    out: Path
    findings: Findings
    sidecar: TorturedSidecar
    ports: Ports
    unix: str
    authority: Authority | None
    cable: Cable | None
    wall: WallClock
    plain: Proxy
    secure: Proxy
    chance: random.Random
    trusted: bool = True
    short: bool = False
    kept: dict[str, int] = field(default_factory=dict)
    threads: list[threading.Thread] = field(default_factory=list)

    def begin(self, work: Callable[[], None]) -> None:
        """Have something done on a thread of its own."""
        thread = threading.Thread(target=work, name="fault", daemon=True)
        self.threads = [each for each in self.threads if each.is_alive()] + [thread]
        thread.start()

    def await_threads(self) -> None:
        """Wait until all of that is done."""
        for thread in self.threads:
            thread.join()

    @contextmanager
    def operator(self) -> Iterator[AdminServiceStub]:
        """Speak as an operator does."""
        with channel(self.unix) as to_sidecar:
            yield AdminServiceStub(to_sidecar)

    def status(self) -> pb.GetStatusResponse:
        """Ask for the status; RpcError where no answer comes in time."""
        with self.operator() as sidecar:
            return sidecar.GetStatus(pb.GetStatusRequest(), timeout=ANSWER_S)

    def stream(self, started_us: int) -> StreamLink:
        """Make a stream by one of the ways, any of those that can be used now."""
        ways = ["unix", "plain", "plain"]
        if self.authority is not None and self.trusted:
            ways += ["secure", "secure"]
        way = self.chance.choice(ways)
        self.findings.counts[f"calls_{way}"] += 1
        if way == "unix":
            return PatientLink(self.unix, started_us)
        if way == "plain":
            return PatientLink(f"127.0.0.1:{self.plain.port}", started_us)
        return self.secure_stream(started_us)

    def secure_stream(self, started_us: int) -> StreamLink:
        """Make a stream by TLS."""
        assert self.authority is not None
        target = f"127.0.0.1:{self.secure.port}"
        return PatientLink(target, started_us, self.authority.credentials())

    def _addresses(self) -> list[str]:
        """Where it listens by TLS."""
        if self.authority is None:
            return []
        return ["127.0.0.1"] + ([] if self.cable is None else [self.cable.address])

    def write_config(self, extra: str = "") -> None:
        """Write the configuration, with something more at its end."""
        text = _CONFIG.format(
            directory=self.directory,
            grpc=self.ports.grpc,
            http=self.ports.http,
            bytes_max=JOURNAL_BYTES_MAX,
            patience=PATIENCE_CYCLES,
            listen="".join(f', "{address}:{self.ports.grpc}"' for address in self._addresses()),
            tls=_TLS.format(directory=self.directory) if self.authority else "",
        )
        (self.directory / "config.toml").write_text(text + extra, encoding="utf-8")


@contextmanager
def rigged(directory: Path, out: Path, findings: Findings, seed: int) -> Iterator[Rig]:
    """Set everything up, and start the sidecar; all of it ends with the context."""
    authority = None
    if Authority.possible():
        authority = Authority(directory)
    else:
        findings.note("there is no openssl, so nothing was done to TLS")
    socket_path = directory / "sidecar.sock"
    ports = Ports()
    wall = WallClock(directory / "ahead")
    with ExitStack() as stack:
        cable = None
        if authority is not None:
            try:
                cable = stack.enter_context(Cable())
            except OSError as error:
                findings.note(f"no network was cut: {error}")
        dial = dial_tcp(ports.grpc) if cable is None else partial(cable.dial, ports.grpc)
        plain = stack.enter_context(Proxy(dial_unix(str(socket_path)), seed))
        secure = stack.enter_context(Proxy(dial, seed + 1))
        sidecar = TorturedSidecar(directory / "config.toml", out / "sidecar.log", wall.path)
        rig = Rig(
            directory=directory,
            out=out,
            findings=findings,
            sidecar=sidecar,
            ports=ports,
            unix=f"unix:{socket_path}",
            authority=authority,
            cable=cable,
            wall=wall,
            plain=plain,
            secure=secure,
            chance=random.Random(seed),  # noqa: S311 - no secret
        )
        rig.write_config()
        stack.callback(sidecar.kill)
        stack.callback(rig.await_threads)
        sidecar.start()
        yield rig


_CONFIG = """[listen]
targets = ["unix:{directory}/sidecar.sock"{listen}]
{tls}
[http]
port = {http}

[journal]
path = "{directory}/journal"
bytes_max = {bytes_max}

[state]
directory = "{directory}/state"
save_s = 1

[log]
format = "json"

[starvation]
patience_cycles = {patience}

[learn]
patience_cycles = {patience}
"""

_TLS = """tls_cert = "{directory}/served.pem"
tls_key = "{directory}/served.key"
tls_client_ca = "{directory}/ca.pem"
"""
