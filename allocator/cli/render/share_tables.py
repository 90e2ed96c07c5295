"""Tables of shares, and of what the shadow policy would have offered."""

from collections.abc import Callable
from typing import Any

from allocator.cli.render.setting_tables import policy_in_words, shadow_in_words
from allocator.cli.render.terminal import (
    Columns,
    amounts,
    figure,
    if_any,
    in_words,
    name_of,
    print_rows,
    say,
)
from allocator.near import suggestion
from allocator.plain import counted, how_many


def arranged(
    data: dict[str, Any],
    *,
    sort: str = "waiting",
    limit: int = 0,
    waiting: bool = False,
    role: str = "",
    newcomer: str = "",
    **_options: object,
) -> dict[str, Any]:
    """Select and order the frameworks and roles to show.

    `sort`: ``waiting`` (the longest wait first; ties by smaller share; then frameworks that do not
        wait, by larger share), ``share`` (the largest first) or ``name``.
    `limit`: maximum number of frameworks, and of roles; 0: all.
    `waiting`: only frameworks that wait.
    `role`: the answer has only this role and its descendants; empty: all.
    `newcomer`: role of the hypothetical new framework; empty: none.
    """
    clients = [each for each in data["clients"] if each["waited_cycles"] or not waiting]
    orders: dict[str, Callable[[dict[str, Any]], tuple[Any, ...]]] = {
        "waiting": lambda each: (
            -each["waited_cycles"],
            each["weighted_share"] if each["waited_cycles"] else -each["weighted_share"],
        ),
        "share": lambda each: (-each["weighted_share"],),
        "name": lambda each: (each["framework_name"], each["framework_id"], each["role"]),
    }
    clients.sort(key=orders[sort])
    most = limit or None
    shown = {**data, "clients": clients[:most], "roles": data["roles"][:most]}
    kept = set(map(id, shown["clients"]))
    hidden = [each["framework_id"] for each in data["clients"] if id(each) not in kept]
    known = {each["role"] for each in data["roles"]}
    # If the request was for some roles only, the answer says nothing about the others.
    new = bool(newcomer and not role and newcomer not in known)
    return {
        **shown,
        "not_shown": len(hidden),
        "frameworks_not_shown": len(set(hidden)),
        "roles_not_shown": len(data["roles"]) - len(shown["roles"]),
        "newcomer_role_new": new,
        "newcomer_role_meant": suggestion(newcomer, known) if new else "",
    }


def shares(
    data: dict[str, Any], *, wide: bool = False, newcomer: str = "", **_options: object
) -> None:
    of_roles = (_wide if wide else _narrow)(data["fair"])
    print_rows(of_roles, data["roles"], "no roles", whole=wide)
    say()
    of_frameworks = {"framework": name_of, **of_roles, **(_MORE_WIDE if wide else _MORE)}
    print_rows(of_frameworks, data["clients"], "no frameworks", _LEFT_OUT, whole=wide)
    hidden = []
    if data["roles_not_shown"]:
        hidden.append(counted(data["roles_not_shown"], "role"))
    if data["not_shown"]:
        hidden.append(how_many(data["frameworks_not_shown"], data["not_shown"]))
    if hidden:
        say(f"not shown: {' and '.join(hidden)}")
    _tell_of_fairness(data)
    if data["newcomer_share"] is not None:
        where = f" in {newcomer}" if data["newcomer_role_new"] else ""
        text = f"a new framework{where} would get {data['newcomer_share']:.4f}"
        if where:
            text += f"; no framework is in that role yet{data['newcomer_role_meant']}"
        say(text)


def _tell_of_fairness(data: dict[str, Any]) -> None:
    envy = data["envy_max"]
    tasks = "too much to compare"
    if envy is not None:
        number = f"{envy:,.3g}" if envy < 1000 else f"{envy:,.0f}"
        tasks = f"{number} task" + "s" * (number != "1")
    say()
    say(f"Jain index {data['jain_index']:.3f}, largest envy: {tasks}")
    if data["fair"]:
        text = "root mean square of the differences from the fair share"
        say(f"{text}: {data['fairness_error_rms']:.4f}")


_FAIR: Columns = {">fair": figure("fair_share", ".3f"), ">off by": figure("fairness_error", "+.3f")}


def _narrow(fair: bool) -> Columns:
    """Columns that fit into 80 characters; fair shares, if requested, replace amounts."""
    last: Columns = _FAIR if fair else {"mostly": _dominant}
    return {"role": "role", ">share": figure("share", ".3f"), **last}


def _wide(fair: bool) -> Columns:
    return {
        "role": "role",
        ">weight": figure("weight", "g"),
        ">share": figure("share", ".4f"),
        **(_FAIR if fair else {}),
        ">weighted": figure("weighted_share", ".4f"),
        "dominant": "dominant_resource",
        "held": amounts("held"),
        ">offered": figure("offered_share", ".4f"),
    }


def _dominant(share: dict[str, Any]) -> str:
    name = share["dominant_resource"]
    return in_words({name: share["held"][name]}) if name else ""


def state_of(share: dict[str, Any]) -> str:
    if not share["active"]:
        return "inactive"
    if share["paused"]:
        return "paused"
    return "suppressed" if share["suppressed"] else "active"


def age_of(share: dict[str, Any]) -> str:
    return f"{share['offer_age_s']:.0f} s" if share["offer_age_s"] else ""


_MORE: Columns = {
    "one task": amounts("demand"),
    ">waited": if_any("waited_cycles"),
    "state": state_of,
}

_LEFT_OUT = ("mostly", "one task", "state", "role")

_MORE_WIDE: Columns = {
    ">score": figure("score", ".4f"),
    "demand": amounts("demand"),
    "from": "demand_source",
    ">agents": "agents",
    ">filters": "filters",
    ">offered for": age_of,
    ">waited": "waited_cycles",
    "state": state_of,
}


WATCHED: Columns = {
    "framework": name_of,
    "role": "role",
    ">waited": if_any("waited_cycles"),
    ">share": figure("share", ".4f"),
    ">on offer": lambda each: f"{each['offered_share']:.4f}" if each["offered_share"] else "",
    ">offered for": age_of,
    ">filters": if_any("filters"),
    "needs": lambda each: in_words(each["demand"]) or "unknown",
    "state": state_of,
}
"""The columns of `top`; a row is a framework in a role."""

WATCHED_LEFT_OUT = ("filters", "offered for", "on offer", "state", "needs", "role")
"""Columns of `WATCHED` that a narrow terminal omits, the least important first."""


def watched(shares: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(
        shares["clients"],
        key=lambda each: (-each["waited_cycles"], each["weighted_share"], each["framework_id"]),
    )


def shadow(data: dict[str, Any]) -> None:
    """Print what the shadow policy would have offered, beside the actual offers."""
    counts, spec = data["counts"], data["shadow"]
    say(shadow_in_words(spec))
    if not spec["name"]:
        return
    say(f"{policy_in_words(data['policy'])} decides")
    say(_summary(counts))
    if counts["error"]:
        say(f"warning: its last failure: {counts['error']}")
    columns = {**_BESIDE, **(_ENDS if data["fair"] else {})}
    say()
    print_rows({"role": "role", **columns}, data["roles"], "no roles")
    say()
    print_rows({"framework": _client, **columns}, data["clients"], "no frameworks")
    text = (
        "share: held now. offered: sum of the shares offered in the compared cycles; by shadow:"
        " what the shadow policy would have offered in them. cycles: number of cycles with an"
        " offer; shadow's: with an offer by the shadow. The shadow's decisions have no effect, so"
        " each cycle is compared from the actual allocation."
    )
    say(text)


def _summary(counts: dict[str, Any]) -> str:
    passed = {"late": "skipped, too fast", "too_large": "skipped, too large", "failed": "failed"}
    parts = [f"{counts['compared']} cycles compared"]
    parts += [f"{counts[key]} {text}" for key, text in passed.items() if counts[key]]
    offers = counts["offers_of_both"] + counts["offers_of_policy"] + counts["offers_of_shadow"]
    if offers:
        parts.append(f"{counts['offers_of_both'] / offers:.0%} of {offers} offers are the same")
    return "; ".join(parts)


def _client(each: dict[str, Any]) -> str:
    return f"{name_of(each)} ({each['role']})"


_BESIDE: Columns = {
    ">share": figure("share", ".4f"),
    ">offered": figure("offered", ".4f"),
    ">by shadow": figure("offered_by_shadow", ".4f"),
    ">change": lambda each: f"{each['offered_by_shadow'] - each['offered']:+.4f}",
    ">cycles": "cycles",
    ">shadow's": "cycles_by_shadow",
}

_ENDS: Columns = {
    ">end": figure("fair_share", ".4f"),
    ">end, shadow": figure("fair_share_by_shadow", ".4f"),
}
