"""`settings export` and `apply`: write the settings to a file, and apply the settings of a file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from google.protobuf.message import Message

from allocator.cli.local.plugins import Plugins, load_policies
from allocator.cli.remote.connection import Sidecar, printed_by, remote
from allocator.cli.remote.options import ForceAll, ShowOnly
from allocator.cli.tree import Exit, check_there, fail
from allocator.rule_kinds import KINDS, RULES, SettingKind, Value

if TYPE_CHECKING:
    from allocator.core import OperatorChange
    from allocator.server.config import Loaded
    from allocator.v1 import settings_pb2
    from allocator.wire.settings.overlay import KeptChange

SETTABLE: Mapping[str, tuple[str, ...]] = {
    "policy": ("name", "selection", "mode", "flat", "parameters", "subtrees"),
    "shadow": ("policy", "selection", "mode", "parameters"),
}
"""Settings other than rules that operators can set: keys of the configuration by section."""

STANDARD_INPUT = Path("/dev/stdin")


def register(app: typer.Typer, settings: typer.Typer) -> None:
    remote(settings, "export", None)(settings_export)
    show = printed_by("allocator.cli.render.setting_tables", "differences")
    remote(app, "apply", show)(apply)


def settings_export(
    sidecar: Sidecar,
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Also write options that only the configuration can set, such as http.port.",
        ),
    ] = False,
) -> None:
    """Write settings that differ from the defaults, as TOML for the configuration or `apply`."""
    from allocator.server.config import Config
    from allocator.server.config.schema import model_of, toml_value

    rows = {each.key: each.value for each in sidecar.ask("ListSettings").settings if not each.scope}
    if sidecar.form is not None:
        text = f"--output {sidecar.form}: an export is TOML; `settings show` has {sidecar.form}"
        raise typer.BadParameter(text)
    for name, section in Config.model_fields.items():
        model = model_of(section)
        if model is None or not (name in SETTABLE or everything):
            continue
        lines = [
            f"{key} = {rows[f'{name}.{key}']}"
            for key, option in model.model_fields.items()
            if (everything or key in SETTABLE[name])
            and rows.get(f"{name}.{key}", "")
            not in {"", toml_value(option.get_default(call_default_factory=True), option)}
        ]
        if lines:
            typer.echo("\n".join([f"[{name}]", *lines, ""]))
    calendar = sidecar.ask("ListSchedules")
    for kind in RULES:
        if calendar.schedules:  # rules as they are without the calendar
            rules = list(calendar.rules)
        else:
            rules = sidecar.ask("ListRules", kind=kind.name).rules
        for rule in (getattr(each, kind.name) for each in rules if each.HasField(kind.name)):
            typer.echo("\n".join([f"[[{kind.name}]]", *_rule_lines(kind, rule), ""]))
    for each in calendar.schedules:
        kind = KINDS[each.key]
        rule = getattr(each.rule.change, kind.name)
        when = [f"{name} = {toml_value(each.options[name])}" for name in sorted(each.options)]
        typer.echo("\n".join([f"[[{kind.name}]]", *_rule_lines(kind, rule), *when, ""]))


def _rule_lines(kind: SettingKind, rule: Any) -> Iterator[str]:  # noqa: ANN401 - as the kind says
    from allocator.core import format_hours, format_quantities
    from allocator.server.config.schema import toml_value

    for name in kind.scope.fields:
        if text := getattr(rule, name):
            yield f"{name} = {toml_value(text)}"
    if kind.value in {Value.AMOUNTS, Value.HOURS}:
        found = getattr(rule, kind.field)
        amounts = dict(zip(found.name, found.amount, strict=True))
        write = format_hours if kind.value is Value.HOURS else format_quantities
        yield f"{kind.called} = {toml_value(write(amounts))}"
    elif kind.value is not Value.NOTHING:
        yield f"{kind.called} = {toml_value(getattr(rule, kind.field))}"
    for text in kind.texts:
        if said := getattr(rule, text.name):
            yield f"{text.name} = {toml_value(said)}"
    for flag in kind.flags:
        if getattr(rule, flag.name):
            yield f"{flag.name} = true"


def apply(
    sidecar: Sidecar,
    file: Annotated[
        Path,
        typer.Option("--file", "-f", metavar="FILE", help="TOML file; -: standard input."),
    ],
    prune: Annotated[
        bool,
        typer.Option(
            "--prune", help="Also reset settings made by operators that the file does not contain."
        ),
    ] = False,
    dry_run: ShowOnly = False,
    force: ForceAll = False,
    plugin: Plugins = None,
) -> Message:
    """Set policy, shadow policy and rules from a file: all of them, or none if one is invalid.

    Shows the differences: + is new, - is removed, ~ changes. Settings that the file does not
    contain stay unchanged, unless --prune is given.
    """
    load_policies(plugin)
    loaded = _read(file)
    changes = [*map(_kept, _changes(loaded)), *map(_written, loaded.config.scheduled())]
    response: Message = sidecar.ask(
        "ApplySettings", changes=changes, prune=prune, dry_run=dry_run, force=force
    )
    return response


def _read(file: Path) -> "Loaded":
    from allocator.server.config import ConfigError, load_all

    path = STANDARD_INPUT if file == Path("-") else file
    check_there(path)
    try:
        return load_all(path, {}, (), stream=path == STANDARD_INPUT)
    except ConfigError as error:
        fail(Exit.CONFIG, *map(str, error.problems))


def _changes(loaded: "Loaded") -> "Iterator[OperatorChange]":
    """Yield the changes that the file describes; end if operators cannot set one of them."""
    from allocator.core import SetPolicy, SetShadow

    named = {str(key[0]) for key in loaded.origins}
    for key, origin in sorted(loaded.origins.items(), key=lambda each: len(each[0]) < 2):
        if not _can_be_set(*map(str, key)):
            mend = "move it to the sidecar's configuration"
            text = ".".join(map(str, key[:2]))
            fail(Exit.USAGE, f"{origin}: {text}: operators cannot set it; {mend}")
    settings = loaded.config.settings()
    if "policy" in named:
        yield SetPolicy(settings.policy)
    if "shadow" in named:
        yield SetShadow(settings.shadow)
    yield from settings.rules()


def _can_be_set(section: str, key: str = "", *_parts: str) -> bool:
    """Whether operators can set an option: one of `SETTABLE`, or any key of a rule."""
    if section in {kind.name for kind in RULES}:
        return True
    return section in SETTABLE and (not key or key in SETTABLE[section])


def _written(kept: "KeptChange") -> "settings_pb2.KeptChange":
    from allocator.wire.settings.overlay import write_kept

    return write_kept(kept)


def _kept(change: "OperatorChange") -> "settings_pb2.KeptChange":
    from allocator.wire.settings.overlay import KeptChange

    return _written(KeptChange(change, "", 0))
