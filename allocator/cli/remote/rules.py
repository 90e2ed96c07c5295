"""Commands about rules: each kind (`allocator.rule_kinds`) has `list`, `set` and `remove`.

The options and arguments of a command follow from the scope and the value of its kind.
"""

import math
from collections.abc import Callable, Iterable
from functools import partial
from inspect import Parameter, Signature
from typing import Annotated, Any, TypeAlias, assert_never

import typer
from google.protobuf.message import Message

from allocator.cli.remote import budgets, completing, drains, schedules
from allocator.cli.remote.admin import quantities
from allocator.cli.remote.connection import (
    Arguments,
    Sidecar,
    group,
    named_by,
    printed_by,
    remote,
)
from allocator.cli.remote.options import DryRun
from allocator.cli.remote.output import by_kind, plain
from allocator.rule_kinds import BUDGET, DRAIN, PAUSE, PER, RULES, Scope, SettingKind, Value

RolePattern = Annotated[
    str,
    typer.Option(
        "--role",
        help="Frameworks in roles that match this shell pattern.",
        autocompletion=completing.roles,
    ),
]
NamePattern = Annotated[
    str,
    typer.Option(
        "--framework-name",
        help="Frameworks with names that match this shell pattern.",
        autocompletion=completing.frameworks,
    ),
]
Everybody = Annotated[
    bool, typer.Option("--all", help="All frameworks; required if no pattern is given.")
]
Role = Annotated[
    str, typer.Argument(help="Path of the role, such as eng/ads.", autocompletion=completing.roles)
]
Per = Annotated[
    str,
    typer.Option(
        help="What it bounds: each framework, or all frameworks of each principal or user.",
        autocompletion=completing.among(*PER),
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Set a rule even if it looks like a mistake: it names a resource that no agent has,"
        " grants nothing, or leaves frameworks without an agent.",
    ),
]
Agents = Annotated[
    list[str],
    typer.Argument(help="Ids or host names of agents.", autocompletion=completing.agents),
]

Options: TypeAlias = dict[str, tuple[Any, Any]]
"""Options of a command by name: Typer's annotation and the default."""

Work: TypeAlias = Callable[[Sidecar, Arguments], dict[str, Any]]

_NONE = Parameter.empty


def register(app: typer.Typer) -> None:
    for kind in RULES:
        commands = group(app, kind.name, kind.group, "set" if kind is PAUSE else "")
        show = printed_by("allocator.cli.render.setting_tables", "rules", kind.name)
        lists, sets, removes = kind.commands
        scope, dry_run = _scope_options(kind.scope), {"dry_run": (DryRun, False)}
        value = _value_options(kind)
        # The order of arguments: `limit set ROLE AMOUNTS`, but `weight set NUMBER --role ...`.
        of_role = kind.scope in {Scope.ROLE, Scope.HOLDERS}
        said = {**scope, **value} if of_role else {**value, **scope}
        set_work: Work = partial(_set, kind, remove=False)
        set_options = {**said, **_set_options(kind)}
        if kind is DRAIN:
            show = printed_by("allocator.cli.render.drain_tables", "drains")
            set_work = drains.set_and_tell(set_work)
            set_options |= drains.OPTIONS
        names = named_by("rules", kind.name)
        for name, what, work, options in (
            ("list", lists, partial(_list, kind), {}),
            ("set", sets, set_work, {**set_options, **dry_run}),
            (kind.removes, removes, partial(_set, kind, remove=True), {**scope, **dry_run}),
        ):
            function = _command(f"{kind.name}_{name}", what, work, options)
            remote(commands, name, show, names=names if name == "list" else None)(function)
            if kind is PAUSE and name == "remove":
                remote(app, "resume", show)(_command("resume", what, work, options))
        if kind is BUDGET:
            budgets.register(commands)
    schedules.register(app)


def _scope_options(scope: Scope) -> Options:
    match scope:
        case Scope.FRAMEWORKS:
            return {
                "role": (RolePattern, ""),
                "framework_name": (NamePattern, ""),
                "everybody": (Everybody, False),
            }
        case Scope.ROLE:
            return {"role": (Role, _NONE)}
        case Scope.HOLDERS:
            return {"role": (Role, _NONE), "per": (Per, PER[0])}
        case Scope.AGENT:
            return {"agents": (Agents, _NONE)}
        case Scope.CLUSTER:
            raise AssertionError(scope)  # not the scope of a rule
        case _:
            assert_never(scope)


def _value_options(kind: SettingKind) -> Options:
    match kind.value:
        case Value.AMOUNTS | Value.HOURS:
            amounts = typer.Argument(help=kind.hint, autocompletion=completing.amounts)
            return {kind.called: (Annotated[str, amounts], _NONE)}
        case Value.EXPRESSION:
            return {kind.called: (Annotated[str, typer.Argument(help=kind.hint)], _NONE)}
        case Value.NUMBER | Value.COUNT:
            # A string rather than a float, so that `_number` reports errors.
            number = typer.Argument(help=kind.hint, metavar=kind.called.upper())
            return {kind.called: (Annotated[str, number], _NONE)}
        case Value.NOTHING:
            return {}
        case Value.POLICY:
            raise AssertionError(kind)  # not a rule
        case _:
            assert_never(kind.value)


def _set_options(kind: SettingKind) -> Options:
    options: Options = {}
    for text in kind.texts:
        if text.hint:
            option = typer.Option(
                f"--{text.name}", help=text.hint, autocompletion=completing.among(*text.values)
            )
            options[text.name] = (Annotated[str, option], text.default)
    for flag in kind.flags:
        name = f"--{flag.name.replace('_', '-')}"
        options[flag.name] = (Annotated[bool, typer.Option(name, help=flag.hint)], False)
    when = schedules.OPTIONS if kind.scheduled else {}
    return {**options, **when, **({"force": (Force, False)} if kind.refused else {})}


def _command(name: str, what: str, work: Work, options: Options) -> Callable[..., dict[str, Any]]:
    """Make a command's function, with a signature from which Typer derives the options."""

    def command(sidecar: Sidecar, **given: Any) -> dict[str, Any]:  # noqa: ANN401
        return work(sidecar, given)

    only = Parameter.KEYWORD_ONLY
    parameters = [Parameter("sidecar", Parameter.POSITIONAL_OR_KEYWORD, annotation=Sidecar)]
    for option, (annotation, default) in options.items():
        parameters.append(Parameter(option, only, annotation=annotation, default=default))
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__name__, command.__doc__ = name, what
    return command


def _list(kind: SettingKind, sidecar: Sidecar, _: Arguments) -> dict[str, Any]:
    return by_kind(kind, sidecar.ask("ListRules", kind=kind.name))


def _set(kind: SettingKind, sidecar: Sidecar, given: Arguments, *, remove: bool) -> dict[str, Any]:
    """Set, replace or remove a rule; for several agents, one rule each."""
    if kind.scope is Scope.FRAMEWORKS:
        _check_patterns(given["role"], given["framework_name"], everybody=given["everybody"])
    value = {} if remove else _value(kind, given)
    if not remove and (when := schedules.take_options(given)):
        scopes = [{name: given[name] for name in kind.scope.fields if name in given}]
        if kind.scope is Scope.AGENT:
            scopes = [{"agent": each} for each in given["agents"]]
        found = [{**scope, **value} for scope in scopes]
        forced = given.get("force", False)
        scheduled = schedules.set_scheduled(
            sidecar, kind, when, found, dry_run=given["dry_run"], force=forced
        )
        return plain(scheduled)
    options = {"everybody": "all", "force": "force"}
    fields = {field: True for option, field in options.items() if given.get(option)}
    if kind.scope is Scope.AGENT and not remove:
        fields["also"] = given["agents"]

    def ask(scope: dict[str, str], *, dry_run: bool) -> Any:  # noqa: ANN401
        change = {kind.name: {**scope, **value}, "remove": remove}
        return sidecar.ask("ChangeRule", change=change, dry_run=dry_run, **fields)

    dry_run = given["dry_run"]
    if kind.scope is Scope.AGENT:
        answer = _for_each(
            given["agents"], lambda agent, dry: ask({"agent": agent}, dry_run=dry), dry_run
        )
    else:
        answer = ask({name: given[name] for name in kind.scope.fields}, dry_run=dry_run)
    return by_kind(kind, answer)


def _value(kind: SettingKind, given: Arguments) -> Arguments:
    value = {name: given[name] for name in kind.options if name in given}
    if kind.value in {Value.NUMBER, Value.COUNT}:
        value[kind.field] = _number(kind, given[kind.called])
    elif kind.value in {Value.AMOUNTS, Value.HOURS}:
        hours = kind.value is Value.HOURS
        value[kind.field] = quantities(given[kind.called], hours=hours)
    elif kind.value is not Value.NOTHING:
        value[kind.field] = given[kind.called]
    return value


def _number(kind: SettingKind, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    least, most = kind.bounds
    whole = kind.value is Value.COUNT
    if not least <= number <= most or (whole and number % 1):
        what = "whole number" if whole else "number"
        mend = f"give a {what} from {least:g} to {most:g}, such as {kind.example:g}"
        raise typer.BadParameter(f"{kind.called} = {text!r}: {mend}")
    return int(number) if whole else number


def _for_each(agents: Iterable[str], ask: Callable[[str, bool], Any], dry_run: bool) -> Message:
    """Change agents one by one, after a dry run for all of them."""
    agents = list(dict.fromkeys(agents))
    tried = [ask(agent, True) for agent in agents]
    done = tried if dry_run else [ask(agent, False) for agent in agents]
    response: Any = type(done[-1])()
    response.CopyFrom(done[-1])
    response.change.match.agents = sum(each.change.match.agents for each in done)
    response.change.scope = ", ".join(each.change.scope for each in done if each.change.scope)
    del response.change.warnings[:]
    for agent, each in zip(agents, done, strict=True):
        response.change.warnings.extend(f"{agent}: {text}" for text in each.change.warnings)
    return response


def _check_patterns(role: str, framework_name: str, *, everybody: bool) -> None:
    """Require either a pattern or --all, so that no rule applies to all frameworks by mistake."""
    named = bool(role or framework_name)
    if not named and not everybody:
        text = "give --role or --framework-name; a rule for every framework needs --all"
        raise typer.BadParameter(text)
    if named and everybody:
        raise typer.BadParameter("--all cannot be used with --role or --framework-name")
