"""Commands that call a running sidecar: their common options, errors and output."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from threading import Event, Timer
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from google.protobuf.message import Message
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from allocator.cli.remote.examples import EXAMPLES
from allocator.cli.remote.output import Form, FormOption, JsonOption, form_of, written
from allocator.cli.tree import JSON_WANTED, PLAIN, Exit, fail, shown_example
from allocator.plain import printable

if TYPE_CHECKING:
    import grpc

    from allocator.v1.admin_pb2_grpc import AdminServiceStub

TARGET_DEFAULT = "127.0.0.1:5056"
RESPONSE_BYTES_MAX = 256 * 2**20

_CHANGING = ("set", "remove", "clear", "credit", "resume", "stop", "reset", "apply", "revert")

_OF_TABLES = {"wide", "complete"}
"""Parameters of commands that affect only how tables are printed."""

_OURS = "Deadline Exceeded"
"""gRPC's own message if no answer came in time; a sidecar's message is more specific."""

_LOOK = (
    "to find out why, check its log, /healthz and /metrics on its HTTP port, and the machine's"
    " load; --timeout waits longer"
)

TimeoutOption: TypeAlias = Annotated[
    float, typer.Option(min=0.001, max=1e6, help="Seconds to wait for an answer.")
]


@dataclass(frozen=True)
class Connection:
    """The options of every command that calls a sidecar."""

    target: Annotated[
        list[str] | None,
        typer.Option(
            envvar="MESOS_ALLOCATOR_TARGET",
            help="host:port or unix:/path. May be a comma-separated list, or repeated: then"
            f" the sidecar with a master's session is called. Default: {TARGET_DEFAULT}.",
        ),
    ] = None
    timeout: TimeoutOption = 10.0
    output: FormOption = None
    json: JsonOption = False
    tls_ca: Annotated[
        Path | None,
        typer.Option(
            envvar="MESOS_ALLOCATOR_TLS_CA",
            help="PEM file of the CA that signed the sidecar's certificate; enables TLS.",
        ),
    ] = None
    tls_cert: Annotated[
        Path | None,
        typer.Option(envvar="MESOS_ALLOCATOR_TLS_CERT", help="PEM file of the client certificate."),
    ] = None
    tls_key: Annotated[
        Path | None,
        typer.Option(envvar="MESOS_ALLOCATOR_TLS_KEY", help="PEM file of the client's key."),
    ] = None
    token_file: Annotated[
        Path | None,
        typer.Option(envvar="MESOS_ALLOCATOR_TOKEN_FILE", help="File with an operator's token."),
    ] = None

    def each(self) -> "list[Connection]":
        """One connection per sidecar, in the order of the command line."""
        given = [part.strip() for text in self.target or () for part in text.split(",")]
        named = dict.fromkeys(filter(None, given)) or given[:1] or [TARGET_DEFAULT]
        return [replace(self, target=[each]) for each in named]

    @property
    def address(self) -> str:
        """The address of the sidecar; requires a connection with at most one target."""
        (one,) = self.target or [TARGET_DEFAULT]
        return one

    def open(self) -> "grpc.Channel":
        token = self._read(self.token_file)
        if token is None:
            return self._open()
        text = token.decode("utf-8", "replace").strip()
        if not text:
            fail(Exit.USAGE, f"--token-file {self.token_file}: is empty; write a token into it")
        self._check_that_hidden()
        channel = self._open()
        import grpc

        from allocator.client import Bearer

        return grpc.intercept_channel(channel, Bearer(text))

    def _open(self) -> "grpc.Channel":
        import grpc

        self._check_target()
        options = [
            ("grpc.max_receive_message_length", RESPONSE_BYTES_MAX),
            ("grpc.enable_http_proxy", 0),
        ]
        if not (self.tls_ca or self.tls_cert or self.tls_key):
            return grpc.insecure_channel(self.address, options)
        self._check_tls()
        credentials = grpc.ssl_channel_credentials(
            self._read(self.tls_ca), self._read(self.tls_key), self._read(self.tls_cert)
        )
        return grpc.secure_channel(self.address, credentials, options)

    def _check_target(self) -> None:
        """End if the target is malformed; addresses with a scheme of gRPC are not checked."""
        from allocator.server.system.addresses import target

        if self.address.startswith(("dns:", "ipv4:", "ipv6:", "unix-abstract:", "vsock:")):
            return
        try:
            target(self.address)
        except ValueError as error:
            fail(Exit.USAGE, f"--target {self.address!r}: {error}")

    def _check_that_hidden(self) -> None:
        from allocator.server.system.addresses import is_local

        if not (self.tls_ca or self.tls_cert or self.tls_key or is_local(self.address)):
            text = "a token would be sent unencrypted; give --tls-ca, or leave out --token-file"
            fail(Exit.USAGE, f"{self.address}: {text}")

    def _check_tls(self) -> None:
        """End if TLS cannot be used with these files, because gRPC would abort the process."""
        from allocator.server.system.tls_files import expired_at, find_problem

        if self.address.startswith("unix:"):
            text = "sidecars do not use TLS on Unix sockets"
            fail(
                Exit.USAGE, f"{self.address}: {text}; leave out --tls-ca, --tls-cert and --tls-key"
            )
        files = {"cert": self.tls_cert, "key": self.tls_key, "ca": self.tls_ca}
        for path in files.values():
            self._read(path)
        problem = find_problem(*(str(path or "") for path in files.values()))
        if problem:
            path = files[problem.part]
            where = f"--tls-{problem.part}" + (f" {path}" if path else "")
            fail(Exit.USAGE, f"{where}: {problem.message}".replace("tls_", "--tls-"))

        if self.tls_cert and (ended := expired_at(str(self.tls_cert))):
            fail(Exit.USAGE, f"--tls-cert {self.tls_cert}: has expired ({ended}); name a valid one")

    def _read(self, path: Path | None) -> bytes | None:
        from allocator.server.system.disk import read_regular
        from allocator.server.system.tls_files import FILE_BYTES_MAX

        try:
            return read_regular(path, FILE_BYTES_MAX) if path else None
        except OSError as error:
            fail(Exit.USAGE, f"{error.filename}: {error.strerror}")

    def _unavailable(self, details: str) -> str:
        """Explain whether the sidecar is not running, not trusted, or rejects this client."""
        from allocator.client import why_unavailable

        return why_unavailable(
            self.address,
            details,
            start="is it running? Otherwise set --target or MESOS_ALLOCATOR_TARGET",
            trust="compare --tls-ca with the certificate that the sidecar's log names",
            tls="it may need TLS (--tls-ca), or a certificate (--tls-cert and --tls-key)",
        )

    def reason(
        self, error: "grpc.RpcError | LateError", *, changes: bool = False
    ) -> tuple[Exit, str]:
        """Return the exit code and the message for an error of a call.

        `changes`: the call changes something; after a timeout, say how to find out if it did.
        """
        import grpc

        if isinstance(error, LateError):
            return Exit.UNREACHABLE, self._late()
        assert isinstance(error, grpc.Call)
        code, details = error.code(), error.details() or ""
        if code == grpc.StatusCode.UNAVAILABLE:
            return Exit.UNREACHABLE, self._unavailable(details)
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            # If the sidecar itself reports the timeout, its message states the outcome of the call.
            return Exit.UNREACHABLE, self._late(
                "" if details == _OURS else details, changes=changes
            )
        refused = (
            grpc.StatusCode.INVALID_ARGUMENT,
            grpc.StatusCode.FAILED_PRECONDITION,
            grpc.StatusCode.PERMISSION_DENIED,
        )
        if code in refused:
            return Exit.REFUSED, details
        return Exit.FAILURE, f"{code.name}: {details}"

    def _late(self, details: str = "", *, changes: bool = False) -> str:
        text = f"the sidecar at {self.address} did not answer within {self.timeout:g} s"
        if details:
            text += f": {details}"
        elif changes:
            text += "; `mesos-allocator settings show` says whether the change is in force"
        return f"{text}; {_LOOK}"


def call(
    stub: "AdminServiceStub",
    rpc: str,
    timeout_s: float | None,
    **fields: object,
) -> Any:  # noqa: ANN401 - as the RPC says
    """Call an RPC of AdminService by its name; `fields`: those of its request."""
    from google.protobuf.message_factory import GetMessageClass

    from allocator.v1 import admin_pb2

    service = admin_pb2.DESCRIPTOR.services_by_name["AdminService"]
    request = GetMessageClass(service.methods_by_name[rpc].input_type)(**fields)
    return getattr(stub, rpc)(request, timeout=timeout_s)


class LateError(Exception):
    """A piece of a streamed answer did not arrive in time."""


class Sidecar(typer.Context):
    """The context of a command that calls a sidecar; the command's function receives it."""

    connections: list[Connection]
    """One per sidecar on the command line."""
    connection: Connection
    """The one to use: if there are several, that of the leading sidecar."""
    stub: "AdminServiceStub"

    @property
    def form(self) -> Form | None:
        return self.connection.output

    def ask(self, rpc: str, **fields: object) -> Any:  # noqa: ANN401
        return call(self.stub, rpc, self.connection.timeout, **fields)

    def pieces(self, rpc: str, **fields: object) -> Iterator[Any]:
        """Yield the pieces of a streamed answer. Raises LateError if one exceeds the timeout."""
        stream = call(self.stub, rpc, None, **fields)
        late = Event()

        def cut() -> None:
            late.set()
            stream.cancel()

        import grpc

        while True:
            timer = Timer(self.connection.timeout, cut)
            timer.daemon = True
            timer.start()
            try:
                piece = next(stream, None)
            except grpc.RpcError:
                if late.is_set():
                    raise LateError from None
                raise
            finally:
                timer.cancel()
            if piece is None:
                return
            yield piece


@cache
def _connecting() -> Any:  # noqa: ANN401  # a command of Typer's
    """Typer command that derives options from the fields of `Connection` and parses them."""
    app = typer.Typer(add_completion=False)
    app.command()(Connection)
    return typer.main.get_command(app)


class RemoteCommand(TyperCommand):
    """A command that calls a sidecar: its own options, followed by those of `Connection`."""

    context_class = Sidecar
    asks_all = False
    """Whether the command's function itself calls each of several sidecars."""

    def __init__(
        self,
        name: str | None,
        *,
        params: list[Any],
        **settings: Any,  # noqa: ANN401
    ) -> None:
        """Combine the function's options with ours; the function's replace ours of equal name."""
        own = {each.name for each in params}
        common = [each for each in _connecting().params if each.name not in own]
        self._common = [str(each.name) for each in common]
        super().__init__(name, params=[*params, *common], **settings)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Parse the command line; treat a negative number as an argument, not as an option."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            if not re.match(r"-[\d.]", getattr(error, "option_name", "")):
                raise
            ctx.ignore_unknown_options = True
            return super().parse_args(ctx, given)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Run the command's function while a channel is open."""
        import grpc

        from allocator.cli.remote.leading import leader
        from allocator.v1.admin_pb2_grpc import AdminServiceStub

        _check_texts(ctx.params)
        # For missing options Typer would use values of its previous call in this process.
        given = {each.name: each.default for each in _connecting().params}
        given |= {name: ctx.params.pop(name) for name in self._common}
        made = _connecting().callback(**given)
        made = replace(made, output=form_of(made.output, json=made.json))
        ctx.connections = made.each()
        ctx.connection = ctx.connections[0] if self.asks_all else leader(ctx.connections)
        with ctx.connection.open() as channel:
            ctx.stub = AdminServiceStub(channel)
            try:
                return super().invoke(ctx)
            except (LateError, grpc.RpcError) as error:
                fail(*ctx.connection.reason(error, changes=self.name in _CHANGING))


def _check_texts(given: dict[str, Any]) -> None:
    """End if an argument is not valid UTF-8, because a request cannot contain it."""
    for name, value in given.items():
        for text in value if isinstance(value, list | tuple) else [value]:
            if isinstance(text, str) and not text.isascii():
                try:
                    text.encode()
                except UnicodeEncodeError:
                    where = name.replace("_", "-")
                    fail(Exit.USAGE, f"{where} {text!a}: is not UTF-8; write it as UTF-8")


class CommandToAll(RemoteCommand):
    """A command that calls each sidecar that the command line names."""

    asks_all = True


Arguments: TypeAlias = dict[str, Any]


def group(app: typer.Typer, name: str, what: str, default: str = "") -> typer.Typer:
    """Add a group of commands.

    `default`: the command that is meant if none is named.
    """
    group_class = _with_default(default) if default else TyperGroup
    commands = typer.Typer(cls=group_class, no_args_is_help=True, **PLAIN)
    app.add_typer(commands, name=name, help=what)
    return commands


def _with_default(default: str) -> type[TyperGroup]:
    class WithDefault(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - Typer's
            named = not args or args[0] in {*self.commands, *self.get_help_option_names(ctx)}
            if not named and not args[0].startswith("-"):
                # Without arguments, the default cannot be meant: it is a misspelt command.
                parameters = self.commands[default].params
                named = all(each.param_type_name == "option" for each in parameters)
            return super().parse_args(ctx, args if named else [default, *args])

    return WithDefault


def _end_unless_saved(change: dict[str, Any] | None) -> None:
    if not change or not change["save_failed"]:
        return
    if not JSON_WANTED.get():  # JSON output contains it
        why = printable(change["lasts_not"])
        text = f"the change is in force but not saved: {why}; it is lost when the sidecar's process"
        typer.echo(f"warning: {text} ends, unless that is fixed", err=True)
    raise typer.Exit(int(Exit.NOT_SAVED))


def printed_by(module: str, name: str, *more: str) -> Callable[..., Any]:
    """Return a function that calls `name` of a module, and imports the module only then.

    `name` receives the response, `more` and the options; its result is returned.
    """

    def print_it(data: dict[str, Any], **options: object) -> Any:  # noqa: ANN401
        return getattr(import_module(module), name)(data, *more, **options)

    return print_it


def named_by(name: str, *more: str) -> Callable[[dict[str, Any]], Iterable[str]]:
    """Return a function of `allocator.cli.render.tables` that lists the names in a response."""
    return printed_by("allocator.cli.render.tables", name, *more)


def remote(
    app: typer.Typer,
    name: str,
    show: Callable[..., None] | None,
    arrange: Callable[..., dict[str, Any]] | None = None,
    names: Callable[[dict[str, Any]], Iterable[str]] | None = None,
    command_class: type[RemoteCommand] = RemoteCommand,
) -> Callable[[Callable[..., Message | dict[str, Any] | None]], None]:
    """Register a command that calls a sidecar.

    The function takes a `Sidecar` and its own options, and returns a response or plain data.

    `arrange`: selects and orders this data according to the options, for JSON as well.
    `show`: prints the data as a table; receives the options if any of `_OF_TABLES` is among them.
    `names`: yields the lines of `--output name`.
    """

    def register(function: Callable[..., Message | dict[str, Any] | None]) -> None:
        @wraps(function)
        def command(sidecar: Sidecar, **arguments: Any) -> None:  # noqa: ANN401
            if sidecar.form is Form.NAME and names is None:
                text = "--output name: this command lists no names; choose json, yaml or wide"
                raise typer.BadParameter(text)
            if "wide" in arguments:
                arguments["wide"] |= sidecar.form is Form.WIDE
            response = function(sidecar, **arguments)
            if response is None or show is None:
                return
            from allocator.cli.remote.output import plain

            data = response if isinstance(response, dict) else plain(response)
            options = arguments if _OF_TABLES & arguments.keys() else {}
            if arrange is not None:
                data = arrange(data, **options)
            if (whole := written(sidecar.form, data)) is not None:
                typer.echo(whole)
            elif sidecar.form is Form.NAME and names is not None:
                for each in names(data):
                    typer.echo(printable(each))
            else:
                show(data, **options)
            _end_unless_saved(data.get("change"))

        example = shown_example(EXAMPLES.get(function.__name__, ""))
        app.command(name, cls=command_class, epilog=example)(command)

    return register
