"""Commands about agents that are drained, the policy that looks on, and all settings together."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from google.protobuf.message import Message

from allocator.cli.remote import completing
from allocator.cli.remote.completing import Mode
from allocator.cli.remote.connection import Sidecar, group, printed_by, remote
from allocator.cli.remote.rules import DryRun, PolicyName, PolicyParameters, Selection, parameters

if TYPE_CHECKING:
    from allocator.v1 import admin_pb2

Agents = Annotated[
    list[str],
    typer.Argument(help="Ids or host names of agents.", autocompletion=completing.agents),
]
KEPT = ("policy", "demand", "constraint", "limit", "drain", "weight", "shadow")

_printed = partial(printed_by, "allocator.cli.render.setting_tables")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    drain = group(app, "drain", "Agents of which nobody is offered anything any more.")
    remote(drain, "list", _printed("drains"))(drain_list)
    remote(drain, "set", _printed("drains"))(drain_set)
    remote(drain, "remove", _printed("drains"))(drain_remove)
    shadow = group(app, "shadow", "A policy that looks on: what it would decide, and nothing more.")
    remote(shadow, "show", printed_by("allocator.cli.render.shadow_tables", "shadow"))(shadow_show)
    remote(shadow, "set", _printed("shadow"))(shadow_set)
    remote(shadow, "stop", _printed("shadow"))(shadow_stop)
    settings = group(app, "settings", "All that is set, and where it comes from.")
    remote(settings, "show", _printed("settings"))(settings_show)
    remote(settings, "reset", _printed("settings"))(settings_reset)


def drain_list(sidecar: Sidecar) -> Message:
    """List the agents that are drained."""
    from allocator.v1 import admin_pb2

    return sidecar.stub.ListDrains(admin_pb2.ListDrainsRequest(), timeout=sidecar.timeout_s)


def drain_set(sidecar: Sidecar, agents: Agents, dry_run: DryRun = False) -> Message:
    """Offer nothing of these agents any more; what runs there runs on."""
    return _drain(sidecar, agents, remove=False, dry_run=dry_run)


def drain_remove(sidecar: Sidecar, agents: Agents, dry_run: DryRun = False) -> Message:
    """Offer these agents again."""
    return _drain(sidecar, agents, remove=True, dry_run=dry_run)


def _drain(
    sidecar: Sidecar, agents: list[str], *, remove: bool, dry_run: bool
) -> "admin_pb2.SetDrainResponse":
    """Change one agent after the other; all are tried before one is changed."""
    from allocator.v1 import admin_pb2, settings_pb2

    def ask(agent: str, *, dry: bool) -> admin_pb2.SetDrainResponse:
        drain = settings_pb2.Drain(agent=agent)
        request = settings_pb2.SetDrainRequest(drain=drain, remove=remove, dry_run=dry)
        return sidecar.stub.SetDrain(request, timeout=sidecar.timeout_s)

    agents = list(dict.fromkeys(agents))
    tried = [ask(agent, dry=True) for agent in agents]
    done = tried if dry_run else [ask(agent, dry=False) for agent in agents]
    response = admin_pb2.SetDrainResponse()
    response.CopyFrom(done[-1])
    response.change.match.agents = sum(each.change.match.agents for each in done)
    del response.change.warnings[:]
    for agent, each in zip(agents, done, strict=True):
        response.change.warnings.extend(f"{agent}: {text}" for text in each.change.warnings)
    return response


def shadow_show(
    sidecar: Sidecar,
    fair: Annotated[
        bool,
        typer.Option(
            "--fair",
            help="Also what either policy would give if the whole cluster were given out anew;"
            " costs about as much as two allocations.",
        ),
    ] = False,
) -> Message:
    """Show what the policy that looks on would have decided, beside what was decided.

    Nothing comes of what it says: each cycle is compared alone, from the books as they are.
    """
    from allocator.v1 import admin_pb2

    request = admin_pb2.GetShadowRequest(fair=fair)
    return sidecar.stub.GetShadow(request, timeout=sidecar.timeout_s)


def shadow_set(
    sidecar: Sidecar,
    name: PolicyName = "",
    selection: Selection = None,
    mode: Annotated[
        Mode | None,
        typer.Option(help="All that is free, or whole tasks; none: as the policy in force."),
    ] = None,
    parameter: PolicyParameters = None,
    dry_run: DryRun = False,
) -> Message:
    """Have a policy look on from the next cycle on; who competes with whom stays as it is."""
    from allocator.v1 import admin_pb2, settings_pb2

    now = sidecar.stub.GetPolicy(admin_pb2.GetPolicyRequest(), timeout=sidecar.timeout_s).policy
    policy = settings_pb2.Policy(
        name=name or now.name, mode=mode or now.mode, selection=selection or ""
    )
    if not name:
        policy.parameters.update(now.parameters)
        policy.selection = selection or now.selection
    policy.parameters.update(parameters(parameter or ()))
    request = settings_pb2.SetShadowRequest(policy=policy, dry_run=dry_run)
    return sidecar.stub.SetShadow(request, timeout=sidecar.timeout_s)


def shadow_stop(sidecar: Sidecar, dry_run: DryRun = False) -> Message:
    """Have no policy look on any more."""
    from allocator.v1 import settings_pb2

    request = settings_pb2.SetShadowRequest(remove=True, dry_run=dry_run)
    return sidecar.stub.SetShadow(request, timeout=sidecar.timeout_s)


def settings_show(sidecar: Sidecar) -> Message:
    """Show all settings and rules, and where each comes from."""
    return _all_settings(sidecar)


def _all_settings(sidecar: Sidecar) -> "admin_pb2.ListSettingsResponse":
    from allocator.v1 import admin_pb2

    return sidecar.stub.ListSettings(admin_pb2.ListSettingsRequest(), timeout=sidecar.timeout_s)


def settings_reset(
    sidecar: Sidecar,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"{', '.join(KEPT)}; or --all.", autocompletion=completing.among(*KEPT)
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All that operators set; needed where nothing is named.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing, and list what would be taken back.")
    ] = False,
) -> Message:
    """Take back what operators set: the configuration counts again."""
    from allocator.v1 import admin_pb2

    if bool(what) == everything:
        raise typer.BadParameter(f"name one or more of {', '.join(KEPT)}, or give --all alone")
    if dry_run:
        from allocator.v1 import settings_pb2

        wanted = what or KEPT
        if unknown := [each for each in wanted if each not in KEPT]:
            raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(KEPT)}")
        found = _all_settings(sidecar).settings
        theirs = (each for each in found if each.source == "operator")
        rows = [each for each in theirs if each.key.partition(".")[0] in wanted]
        change = settings_pb2.Change(dry_run=True)
        return admin_pb2.ResetSettingsResponse(settings=rows, change=change)
    request = admin_pb2.ResetSettingsRequest(what=what or ())
    return sidecar.stub.ResetSettings(request, timeout=sidecar.timeout_s)
