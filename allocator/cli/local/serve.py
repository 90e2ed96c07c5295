"""`serve`, `observe` and `check-config`."""

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from allocator.cli.tree import Exit, check_there, fail, shown_example
from allocator.plain import json_text
from allocator.server.system import loop_cache

if TYPE_CHECKING:
    from allocator.server.config import Flag, Loaded

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", envvar="MESOS_ALLOCATOR_CONFIG", help="TOML file."),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Set one option; may be repeated."),
]
Listen = Annotated[list[str] | None, typer.Option(help="Same as listen.targets; may be repeated.")]
HttpPort = Annotated[int | None, typer.Option(help="Same as http.port.")]
LogLevel = Annotated[str | None, typer.Option(help="Same as log.level.")]

_STANDARD_INPUT = Path("/dev/stdin")


def register(app: typer.Typer) -> None:
    example = "serve --config /etc/mesos-allocator/config.toml --set http.port=5057"
    app.command(epilog=shown_example(example))(serve)
    example = "observe --from master1:5058 --http-port 5057"
    app.command(epilog=shown_example(example))(observe)
    example = "check-config /etc/mesos-allocator/config.toml"
    app.command("check-config", epilog=shown_example(example))(check_config)


def serve(
    config: ConfigFile = None,
    assignments: Assignments = None,
    listen: Listen = None,
    http_port: HttpPort = None,
    policy: Annotated[str | None, typer.Option(help="Same as policy.name.")] = None,
    mode: Annotated[str | None, typer.Option(help="Same as policy.mode.")] = None,
    log_level: LogLevel = None,
) -> None:
    """Run the sidecar until SIGTERM or SIGINT; SIGHUP reloads the configuration.

    Variables MESOS_ALLOCATOR_SECTION__KEY override the file, and command-line options override
    both.
    """
    short = {
        **_of_both(listen, http_port, log_level),
        "--policy": ("policy.name", policy),
        "--mode": ("policy.mode", mode),
    }
    flags = _flags(assignments, short)
    loaded = _load(config, flags)
    note = _prepare()

    from allocator.server.config import load_all
    from allocator.server.process.main import run

    raise typer.Exit(run(partial(load_all, config, os.environ, flags), loaded, note))


def observe(
    sources: Annotated[
        list[str] | None,
        typer.Option("--from", help="Same as observer.sources; may be repeated."),
    ] = None,
    config: ConfigFile = None,
    assignments: Assignments = None,
    listen: Listen = None,
    http_port: HttpPort = None,
    log_level: LogLevel = None,
) -> None:
    """Follow a sidecar on another machine until SIGTERM, and answer queries.

    The sources are the addresses in observer.listen of the sidecars. Options are read as by
    `serve`; policies, rules and operators' settings come from the sidecar.
    """
    short = {
        "--from": ("observer.sources", ",".join(sources) if sources else None),
        **_of_both(listen, http_port, log_level),
    }
    loaded = _load(config, _flags(assignments, short))
    if not loaded.config.observer.sources:
        fail(Exit.CONFIG, "observer.sources: is empty; name what to follow by --from HOST:PORT")
    note = _prepare()

    from allocator.server.process.observing_elsewhere import run

    raise typer.Exit(run(loaded, note))


def check_config(
    file: Annotated[
        Path | None,
        typer.Argument(help="TOML file; -: standard input; none: only environment and --set."),
    ] = None,
    assignments: Assignments = None,
    example: Annotated[
        bool, typer.Option("--example", help="Print every option with its default, and exit.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the resulting configuration as JSON.")
    ] = False,
) -> None:
    """Check a configuration, and report all its errors."""
    if example:
        from allocator.server.config import example as example_text

        typer.echo(example_text(), nl=False)
        return
    from allocator.server.config import OPEN_SESSIONS
    from allocator.server.config.source import mistyped_variables
    from allocator.server.operators.setting_rows import mistyped_names

    if file == Path("-"):
        file = _STANDARD_INPUT
    loaded = _load(file, _flags(assignments, {}), stream=file == _STANDARD_INPUT)
    if as_json:
        typer.echo(json_text(loaded.config.model_dump(mode="json"), indent=2))
    else:
        typer.echo(f"{file or 'configuration'}: ok")
    for text in (*mistyped_variables(os.environ), *mistyped_names(loaded)):
        typer.echo(f"warning: {text}", err=True)
    if target := loaded.config.open_to_sessions():
        typer.echo(f"warning: {OPEN_SESSIONS.format(target)}", err=True)


def _of_both(
    listen: list[str] | None, http_port: int | None, log_level: str | None
) -> dict[str, tuple[str, str | None]]:
    """Short options of both commands: the option that each sets, and its value."""
    return {
        "--listen": ("listen.targets", ",".join(listen) if listen else None),
        "--http-port": ("http.port", None if http_port is None else str(http_port)),
        "--log-level": ("log.level", log_level),
    }


def _prepare() -> str:
    note = loop_cache.prepare()  # before anything imports numba
    from allocator.server.config.source import mistyped_variables

    return "; ".join(filter(None, (note, *mistyped_variables(os.environ))))


def _flags(assignments: list[str] | None, short: dict[str, tuple[str, str | None]]) -> list["Flag"]:
    from allocator.server.config import Flag

    flags = [_assignment(text) for text in assignments or ()]
    return flags + [
        Flag(flag, key, text) for flag, (key, text) in short.items() if text is not None
    ]


def _load(path: Path | None, flags: list["Flag"], *, stream: bool = False) -> "Loaded":
    from allocator.server.config import ConfigError, load_all

    check_there(path)
    try:
        return load_all(path, os.environ, flags, stream=stream)
    except ConfigError as error:
        fail(Exit.CONFIG, *map(str, error.problems))


def _assignment(text: str) -> "Flag":
    from allocator.server.config import Flag

    key, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"{text!r} is not of the form section.key=value")
    return Flag("--set", key.strip(), value)
