"""Commands about the policy in force, the shadow policy, and all settings together."""

from collections.abc import Iterable
from functools import partial
from typing import Annotated

import typer
from google.protobuf.message import Message

from allocator.cli.remote import completing, declared, history, schedules
from allocator.cli.remote.completing import Mode
from allocator.cli.remote.connection import Sidecar, group, named_by, printed_by, remote
from allocator.cli.remote.options import DryRun
from allocator.rule_kinds import KINDS

PolicyName = Annotated[
    str,
    typer.Argument(help="Name; default: the policy in force.", autocompletion=completing.policies),
]
Selection = Annotated[
    str | None,
    typer.Option(
        help="How agents are selected; empty: the policy's default.",
        autocompletion=completing.selections,
    ),
]
PolicyParameters = Annotated[
    list[str] | None,
    typer.Option(
        "-p",
        "--parameter",
        metavar="KEY=VALUE",
        help="A parameter of the policy, such as unit=tasks of choosy; may be repeated.",
    ),
]

_WHAT = ", ".join(KINDS)

_printed = partial(printed_by, "allocator.cli.render.setting_tables")


def register_policy(app: typer.Typer) -> None:
    policy = group(app, "policy", "The policy in force.")
    remote(policy, "show", _printed("policy"), names=named_by("policy"))(policy_show)
    remote(policy, "set", _printed("policy"))(policy_set)


def register(app: typer.Typer) -> None:
    shadow = group(app, "shadow", "The shadow policy, whose decisions are only compared.")
    shown = printed_by("allocator.cli.render.share_tables", "shadow")
    remote(shadow, "show", shown, names=named_by("policy", "shadow"))(shadow_show)
    remote(shadow, "set", _printed("shadow"))(shadow_set)
    remote(shadow, "stop", _printed("shadow"))(shadow_stop)
    settings = group(app, "settings", "All settings, and where each comes from.")
    remote(settings, "show", _printed("settings"), names=named_by("settings"))(settings_show)
    remote(settings, "reset", _printed("settings"))(settings_reset)
    declared.register(app, settings)
    history.register(settings)


def policy_show(sidecar: Sidecar) -> Message:
    """Show the policy in force, and list the available ones."""
    return sidecar.ask("GetPolicy")


def policy_set(
    sidecar: Sidecar,
    name: PolicyName = "",
    selection: Selection = None,
    mode: Annotated[
        Mode | None,
        typer.Option(
            help="Offer all free resources of an agent (oblivious), or whole tasks (characterised)."
        ),
    ] = None,
    flat: Annotated[
        bool | None,
        typer.Option(
            "--flat/--hierarchical",
            help="All frameworks compete directly with one another"
            " (flat), or roles compete, and then the frameworks in a role"
            " (hierarchical).",
        ),
    ] = None,
    parameter: PolicyParameters = None,
    subtree: Annotated[
        list[str] | None,
        typer.Option(
            "--subtree",
            metavar="ROLE=POLICY",
            help="Use another policy below a role; ROLE= removes it.",
            autocompletion=completing.subtrees,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Change nothing; show how the next decisions would differ."),
    ] = False,
) -> Message:
    """Change the policy, from the next cycle on.

    Options that are not given stay unchanged. But if the name changes, selection and parameters are
    reset to the defaults of the new policy.
    """
    given = name or parameter or subtree or (selection, mode, flat) != (None, None, None)
    if not given and not dry_run:
        # Setting the present policy would make it override the configuration.
        raise typer.BadParameter("name a policy, or give an option to change the present one")
    policy = sidecar.ask("GetPolicy").policy
    if name and name != policy.name:
        policy.name, policy.selection = name, ""
        policy.parameters.clear()
    if selection is not None:
        policy.selection = selection
    if mode is not None:
        policy.mode = mode
    if flat is not None:
        policy.flat = flat
    policy.parameters.update(parameters(parameter or ()))
    for text in subtree or ():
        role, equals, other = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"{text!r} is not of the form role=policy")
        policy.subtrees.pop(role, None)
        if other:
            policy.subtrees[role] = other
    return sidecar.ask("SetPolicy", policy=policy, dry_run=dry_run)


def parameters(texts: Iterable[str]) -> dict[str, str]:
    """Parse texts of the form key=value. Raises `typer.BadParameter`."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"{text!r} is not of the form key=value")
        found[key] = value
    return found


def shadow_show(
    sidecar: Sidecar,
    fair: Annotated[
        bool,
        typer.Option(
            "--fair",
            help="Also show what each policy would give if it allocated the whole cluster"
            " from scratch. Costs about as much as two allocations of the cluster.",
        ),
    ] = False,
) -> Message:
    """Compare the decisions of the shadow policy with the actual decisions.

    The shadow policy's decisions have no effect: in each cycle it starts from the actual state.
    """
    return sidecar.ask("GetShadow", fair=fair)


def shadow_set(
    sidecar: Sidecar,
    name: PolicyName = "",
    selection: Selection = None,
    mode: Annotated[
        Mode | None,
        typer.Option(
            help="Offer all free resources of an agent (oblivious), or whole tasks"
            " (characterised); default: the mode of the policy in force."
        ),
    ] = None,
    parameter: PolicyParameters = None,
    dry_run: DryRun = False,
) -> Message:
    """Run a shadow policy, from the next cycle on.

    It is flat or hierarchical like the policy in force.
    """
    from allocator.v1 import settings_pb2

    now = sidecar.ask("GetPolicy").policy
    policy = settings_pb2.Policy(
        name=name or now.name, mode=mode or now.mode, selection=selection or ""
    )
    if not name:
        policy.parameters.update(now.parameters)
        policy.selection = selection or now.selection
    policy.parameters.update(parameters(parameter or ()))
    return sidecar.ask("SetShadow", policy=policy, dry_run=dry_run)


def shadow_stop(sidecar: Sidecar, dry_run: DryRun = False) -> Message:
    """Stop the shadow policy."""
    return sidecar.ask("SetShadow", remove=True, dry_run=dry_run)


def settings_show(
    sidecar: Sidecar,
    complete: Annotated[
        bool,
        typer.Option(
            "--all", help="Also settings with their defaults, which a pipe or JSON always has."
        ),
    ] = False,
    at: Annotated[
        str,
        typer.Option(
            metavar="WHEN",
            help="Show what scheduled rules will have put in force at this time, in UTC unless it"
            " has an offset, such as 2026-12-24T18:00 or +2h.",
        ),
    ] = "",
) -> Message:
    """Show the settings and rules that differ from the defaults, and where each comes from."""
    del complete  # only affects printing
    return sidecar.ask("ListSettings", at_ms=schedules.moment_ms("at", at))


def settings_reset(
    sidecar: Sidecar,
    what: Annotated[
        list[str] | None,
        typer.Argument(help=f"{_WHAT}; or --all.", autocompletion=completing.among(*KINDS)),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Reset all settings made by operators; required if no kind is named."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; list what would be reset.")
    ] = False,
) -> Message:
    """Remove settings made by operators, so that the configuration applies again."""
    if bool(what) == everything:
        raise typer.BadParameter(f"name one or more of {_WHAT}, or give --all alone")
    if dry_run:
        from allocator.v1 import admin_pb2, settings_pb2

        wanted = what or KINDS
        if unknown := [each for each in wanted if each not in KINDS]:
            raise typer.BadParameter(f"{unknown[0]!r} is not one of {_WHAT}")
        found = sidecar.ask("ListSettings").settings
        theirs = (each for each in found if each.source == "operator")
        rows = [each for each in theirs if each.key.partition(".")[0] in wanted]
        change = settings_pb2.Change(dry_run=True)
        return admin_pb2.ResetSettingsResponse(settings=rows, change=change)
    return sidecar.ask("ResetSettings", what=what or ())
