"""`mesos-allocator bundle`: everything that a bug report needs, in one file.

Each part is bounded. A part that is unavailable or too large is left out, and the file says why.
"""

import io
import json
import platform
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from http.client import HTTPConnection, HTTPException
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Annotated, Any, NamedTuple

import typer

from allocator import __version__
from allocator.cli.remote.connection import LateError, Sidecar, remote
from allocator.cli.remote.files import write_whole
from allocator.cli.remote.output import plain, written
from allocator.cli.tree import Exit, fail
from allocator.plain import json_text, printable

PART_BYTES_MAX = 2**26

LOG_BYTES_MAX = 2**22
LOG_LINES = 5000

UNIT = "mesos-allocator"

LIBRARIES = ("grpcio", "llvmlite", "numba", "numpy", "protobuf")

NAMELESS = frozenset({
    "among", "by", "certain", "code", "competition", "end", "field", "for", "given", "kept_by",
    "kind", "known", "le", "mode", "only", "part", "reason", "resource", "result", "selection",
    "setting", "shape", "side", "source", "state", "type", "unit", "version",
})  # fmt: skip
"""Labels of metrics whose values never name a framework, a role or an agent."""

_WORDS = ("sidecar_version", "mesos_version", "loops_state")
"""Text fields of a status that contain no names from the cluster."""

_NAMES = "has names; the snapshot has the books and the settings under pseudonyms"


class _LeftOutError(Exception):
    """Why a part is left out."""


class Part(NamedTuple):
    """One file of the bundle.

    `pieces`: yields its bytes; raises the errors that `_written` handles.
    """

    name: str
    pieces: Callable[[], Iterable[bytes]]


def register(app: typer.Typer) -> None:
    remote(app, "bundle", None)(bundle)


def bundle(
    sidecar: Sidecar,
    file: Annotated[Path, typer.Argument(metavar="FILE.tar.gz", help="File to write.")],
    pseudonyms: Annotated[
        bool,
        typer.Option(
            "--pseudonyms",
            help="Replace names by pseudonyms in the snapshot; leave out other parts with names.",
        ),
    ] = False,
    http: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT", help="Address of /metrics; default: from the sidecar's settings."
        ),
    ] = "",
    log: Annotated[
        Path | None,
        typer.Option(
            help=f"File with the sidecar's log; default: the log of the local systemd unit {UNIT}."
        ),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(help="The sidecar's journal; default: from the sidecar's settings."),
    ] = None,
) -> None:
    """Write one file for a bug report.

    It contains status, settings, the allocator's state, the journal's current file, metrics,
    versions and the log.

    Each part has at most 64 MiB; of the log, the last 5,000 lines are included. The file
    contents.txt in it lists missing parts, with the reasons. If the sidecar does not answer, the
    other parts are still written.
    """
    status, problem = _status(sidecar)
    given = _Given(http, log, journal, pseudonyms)
    found = _Gathering(sidecar, given, status, problem)
    name = file.name.removesuffix(".gz").removesuffix(".tar").removesuffix(".tgz") or "bundle"
    with tempfile.TemporaryFile() as whole:
        with tarfile.open(fileobj=whole, mode="w:gz") as archive:
            held, left_out = _add_all(archive, name, found)
        whole.seek(0)
        write_whole(file, iter(partial(whole.read, 2**20), b""), mode=0o600)
    if problem:
        fail(Exit.UNREACHABLE, f"{problem}; {file} has the parts that were available")
    data = {"file": str(file), "parts": held, "left_out": left_out}
    typer.echo(written(sidecar.form, data) or "\n".join(_told(data)))


def _status(sidecar: Sidecar) -> tuple[dict[str, Any], str]:
    import grpc

    try:
        return plain(sidecar.ask("GetStatus")), ""
    except grpc.RpcError as error:
        code, problem = sidecar.connection.reason(error)
        if code is not Exit.UNREACHABLE:
            raise
        return {}, problem


def _told(data: Mapping[str, Any]) -> Iterator[str]:
    yield printable(f"{data['file']}: {', '.join(data['parts'])}")
    for name, why in data["left_out"].items():
        yield printable(f"left out: {name}: {why}")


def _add_all(
    archive: tarfile.TarFile, directory: str, found: "_Gathering"
) -> tuple[dict[str, int], dict[str, str]]:
    """Add each part; return the sizes of those added, and why others are left out."""
    held: dict[str, int] = {}
    left_out: dict[str, str] = {}
    for name, pieces in found.parts():
        with tempfile.TemporaryFile() as content:
            if why := _written(content, pieces, found.sidecar):
                left_out[name] = why
                continue
            held[name] = _add(archive, f"{directory}/{name}", content)
    lines = [f"{name}: {size} bytes" for name, size in held.items()]
    lines += [f"left out: {name}: {why}" for name, why in left_out.items()]
    _add(archive, f"{directory}/contents.txt", io.BytesIO("\n".join([*lines, ""]).encode()))
    return held, left_out


def _add(archive: tarfile.TarFile, name: str, content: IO[bytes]) -> int:
    made = tarfile.TarInfo(name)
    made.size, made.mtime, made.mode = content.seek(0, io.SEEK_END), int(time.time()), 0o600
    content.seek(0)
    archive.addfile(made, content)
    return made.size


def _written(content: IO[bytes], pieces: Callable[[], Iterable[bytes]], sidecar: Sidecar) -> str:
    """Write a part; return why it is left out, or nothing."""
    import grpc

    size = 0
    try:
        for piece in pieces():
            size += len(piece)
            if size > PART_BYTES_MAX:
                return f"has more than {PART_BYTES_MAX >> 20} MiB"
            content.write(piece)
    except (LateError, grpc.RpcError) as error:
        return sidecar.connection.reason(error)[1]
    except _LeftOutError as error:
        return str(error)
    except (OSError, HTTPException, subprocess.SubprocessError) as error:
        return str(error) or type(error).__name__
    return ""


class _Given(NamedTuple):
    """Options of the command."""

    http: str
    log: Path | None
    journal: Path | None
    pseudonyms: bool


class _Gathering:
    """Yields the parts of one sidecar's bundle.

    `problem`: why the sidecar does not answer; empty if it does.
    """

    def __init__(
        self, sidecar: Sidecar, given: _Given, status: dict[str, Any], problem: str
    ) -> None:
        self.sidecar, self._given = sidecar, given
        self._status, self._problem = status, problem
        self._settings: dict[str, str] = {}

    def parts(self) -> Iterator[Part]:
        yield Part("status.json", self._of_status)
        yield Part("versions.json", self._versions)
        yield Part("settings.json", self._of_settings)
        yield Part("history.json", lambda: self._named([_json(self._ask("ListHistory"))]))
        yield Part("snapshot.journal", self._snapshot)
        yield Part("journal", lambda: self._named(self._journal()))
        yield Part("state.json", lambda: self._named(each.json for each in self._pieces("Dump")))
        yield Part("metrics.txt", self._metrics)
        yield Part("log.txt", lambda: self._named(self._lines()))

    def _named(self, pieces: Iterable[bytes]) -> Iterable[bytes]:
        """Return a part that contains names; leave it out if names must be replaced."""
        if self._given.pseudonyms:
            raise _LeftOutError(_NAMES)
        return pieces

    def _need_answer(self) -> None:
        if self._problem:
            raise _LeftOutError(self._problem)

    def _ask(self, rpc: str) -> dict[str, Any]:
        self._need_answer()
        return plain(self.sidecar.ask(rpc))

    def _pieces(self, rpc: str, **fields: object) -> Iterator[Any]:
        self._need_answer()
        return self.sidecar.pieces(rpc, **fields)

    def _of_status(self) -> Iterator[bytes]:
        self._need_answer()
        yield _json(_nameless(self._status) if self._given.pseudonyms else self._status)

    def _versions(self) -> Iterator[bytes]:
        yield _json(
            {
                "command": __version__,
                "sidecar": self._status.get("sidecar_version"),
                "mesos": self._status.get("mesos_version"),
                "python": platform.python_version(),
                "system": f"{platform.system()} {platform.release()} {platform.machine()}",
                **{name: _version(name) for name in LIBRARIES},
            }
        )

    def _of_settings(self) -> Iterable[bytes]:
        found = self._ask("ListSettings")
        self._settings = {each["key"]: each["value"] for each in found["settings"]}
        return self._named([_json(found)])

    def _snapshot(self) -> Iterator[bytes]:
        return (each.data for each in self._pieces("Snapshot", pseudonyms=self._given.pseudonyms))

    def _journal(self) -> Iterator[bytes]:
        path = self._given.journal or self._configured_journal()
        with path.open("rb") as file:
            size = file.seek(0, io.SEEK_END)
            if size > PART_BYTES_MAX:
                text = f"{path} has more than {PART_BYTES_MAX >> 20} MiB; attach it separately"
                raise _LeftOutError(text)
            file.seek(0)
            yield file.read(size)  # the sidecar may append to it meanwhile

    def _is_local(self) -> bool:
        from allocator.server.system.addresses import is_local

        return is_local(self.sidecar.connection.address)

    def _configured_journal(self) -> Path:
        self._need_answer()
        path = json.loads(self._settings.get("journal.path", '""'))
        if not path:
            raise _LeftOutError("the sidecar records none (journal.path)")
        if not self._is_local():
            raise _LeftOutError("it is on the sidecar's machine; run this there")
        return Path(path)

    def _metrics(self) -> Iterator[bytes]:
        with closing(self._http_connection()) as connection:
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            if answer.status != 200:
                raise _LeftOutError(f"{connection.host}:{connection.port}: HTTP {answer.status}")
            for line in answer:
                if not self._given.pseudonyms or _is_nameless(line):
                    yield line

    def _http_connection(self) -> HTTPConnection:
        host, _, port = (self._given.http or self._configured_http()).rpartition(":")
        if not port.isdecimal():
            raise _LeftOutError(f"--http {self._given.http!r}: must be host:port")
        return HTTPConnection(host.strip("[]"), int(port), timeout=self.sidecar.connection.timeout)

    def _configured_http(self) -> str:
        from allocator.server.system.addresses import is_loopback

        host = str(json.loads(self._settings.get("http.host", '""')))
        port = self._settings.get("http.port", "0")
        if port == "0":
            raise _LeftOutError("their address is unknown; give --http")
        if self._is_local():
            return f"127.0.0.1:{port}"
        if is_loopback(host):
            raise _LeftOutError("they can be read only on the sidecar's machine (http.host)")
        return f"{self.sidecar.connection.address.rpartition(':')[0]}:{port}"

    def _lines(self) -> Iterator[bytes]:
        if self._given.log is not None:
            with self._given.log.open("rb") as file:
                size = file.seek(0, io.SEEK_END)
                file.seek(max(size - LOG_BYTES_MAX, 0))
                found = file.read(LOG_BYTES_MAX)
        else:
            found = self._of_unit()
        lines = found.splitlines(keepends=True)[-LOG_LINES:]
        yield b"".join(lines)[-LOG_BYTES_MAX:]

    def _of_unit(self) -> bytes:
        if not self._is_local():
            raise _LeftOutError("it is on the sidecar's machine; run this there, or give --log")
        program = shutil.which("journalctl")
        if program is None:
            raise _LeftOutError("journalctl is not installed here; give --log")
        words = ["--unit", UNIT, "--lines", str(LOG_LINES), "--output", "cat", "--no-pager", "-q"]
        command = [program, *words]
        done = subprocess.run(command, capture_output=True, check=False, timeout=60)  # noqa: S603
        if not done.stdout:
            text = done.stderr.decode("utf-8", "replace").strip() or "has no readable lines"
            raise _LeftOutError(f"the unit {UNIT}: {text}; give --log")
        return done.stdout


def _nameless(status: Mapping[str, Any]) -> dict[str, Any]:
    """Reduce a status to numbers and to texts without names from the cluster."""
    policy = {key: status["policy"][key] for key in ("name", "selection", "mode", "flat")}
    return {
        **{key: each for key, each in status.items() if not isinstance(each, str | list | dict)},
        **{key: status[key] for key in _WORDS},
        "policy": policy,
        "warnings": [each["what"] for each in status["warnings"]],
        "resources": status["resources"],
    }


def _is_nameless(line: bytes) -> bool:
    """Whether a line of metrics has only labels of `NAMELESS`."""
    from prometheus_client.parser import text_string_to_metric_families

    if line.startswith(b"#") or b"{" not in line:
        return True
    try:
        families = list(text_string_to_metric_families(line.decode()))
    except ValueError:
        return False
    return all(sample.labels.keys() <= NAMELESS for family in families for sample in family.samples)


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _json(data: object) -> bytes:
    return f"{json_text(data, indent=1)}\n".encode()
