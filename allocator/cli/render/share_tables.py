"""Who holds what, and what a policy that looks on would have given them, as tables."""

from collections.abc import Callable
from typing import Any, NamedTuple

from allocator.cli.render.setting_tables import policy_in_words, shadow_in_words
from allocator.cli.render.terminal import as_text, console, in_words, print_table


class View(NamedTuple):
    """Which frameworks are shown, and in which order."""

    sort: str = "waiting"
    """``waiting``, ``share`` or ``name``."""
    limit: int = 0
    """So many frameworks, and as many roles; 0: all."""
    waiting: bool = False
    """Only frameworks that wait."""


def arranged(data: dict[str, Any], view: View) -> dict[str, Any]:
    """Choose and order what is shown: by default who waits longest comes first.

    Of those that wait equally long the smaller share comes first, of others the larger one.
    """
    clients = [each for each in data["clients"] if each["waited_cycles"] or not view.waiting]
    orders: dict[str, Callable[[dict[str, Any]], tuple[Any, ...]]] = {
        "waiting": lambda each: (
            -each["waited_cycles"],
            each["weighted_share"] if each["waited_cycles"] else -each["weighted_share"],
        ),
        "share": lambda each: (-each["weighted_share"],),
        "name": lambda each: (each["framework_name"], each["framework_id"], each["role"]),
    }
    clients.sort(key=orders[view.sort])
    most = view.limit or None
    shown = {**data, "clients": clients[:most], "roles": data["roles"][:most]}
    return {**shown, "not_shown": len(data["clients"]) - len(shown["clients"])}


def shares(data: dict[str, Any], *, wide: bool = False) -> None:
    """Print roles and frameworks, in few columns or in all."""
    head, of_role = (_wide if wide else _narrow)(data["fair"])
    print_table(head, map(of_role, data["roles"]), "no roles")
    console().print()
    more = _MORE_WIDE if wide else _MORE
    rows = (
        (name_of(each), *of_role(each), *(value(each) for value in more.values()))
        for each in data["clients"]
    )
    print_table(["framework", *head, *more], rows, "no frameworks")
    if data["not_shown"]:
        console().print(f"{data['not_shown']} more frameworks are not shown")
    _tell_of_fairness(data)


def _tell_of_fairness(data: dict[str, Any]) -> None:
    envy = data["envy_max"]
    envy_text = (
        "too much to compare"
        if envy is None
        else f"{envy:,.3g} tasks"
        if envy < 1000
        else f"{envy:,.0f} tasks"
    )
    console().print(f"\nJain index {data['jain_index']:.3f}, largest envy: {envy_text}")
    if data["fair"]:
        text = "root mean square of all differences from the fair share"
        console().print(f"{text}: {data['fairness_error_rms']:.4f}")
    if data["newcomer_share"] is not None:
        console().print(f"a newcomer would be given {data['newcomer_share']:.4f}")


_Columns = tuple[list[str], Callable[[dict[str, Any]], tuple[object, ...]]]


def _narrow(fair: bool) -> _Columns:
    """Columns that fit 80 characters, beside those of frameworks; fair shares stand for amounts."""

    def row(share: dict[str, Any]) -> tuple[object, ...]:
        last = _fair(share, fair) if fair else (_dominant(share),)
        return (share["role"], f"{share['share']:.3f}", *last)

    return ["role", ">share", *([">fair", ">off by"] if fair else ["mostly"])], row


def _wide(fair: bool) -> _Columns:
    def row(share: dict[str, Any]) -> tuple[object, ...]:
        return (
            share["role"],
            f"{share['weight']:g}",
            f"{share['share']:.4f}",
            *_fair(share, fair),
            f"{share['weighted_share']:.4f}",
            share["dominant_resource"],
            in_words(share["held"]),
            f"{share['offered_share']:.4f}",
        )

    head = ["role", ">weight", ">share", *[">fair", ">off by"] * fair]
    return [*head, ">weighted", "dominant", "held", ">offered"], row


def _fair(share: dict[str, Any], fair: bool) -> tuple[object, ...]:
    return (f"{share['fair_share']:.3f}", f"{share['fairness_error']:+.3f}") if fair else ()


def _dominant(share: dict[str, Any]) -> str:
    """What it holds of its dominant resource."""
    name = share["dominant_resource"]
    return in_words({name: share["held"][name]}) if name else ""


def name_of(share: dict[str, Any]) -> str:
    return share["framework_name"] or share["framework_id"]


def state_of(share: dict[str, Any]) -> str:
    if not share["active"]:
        return "inactive"
    return "suppressed" if share["suppressed"] else "active"


def age_of(share: dict[str, Any]) -> str:
    return f"{share['offer_age_s']:.0f} s" if share["offer_age_s"] else ""


_MORE: dict[str, Callable[[dict[str, Any]], object]] = {
    "one task": lambda each: in_words(each["demand"]),
    ">waited": lambda each: each["waited_cycles"] or "",
    "state": state_of,
}

_MORE_WIDE: dict[str, Callable[[dict[str, Any]], object]] = {
    ">score": lambda each: "" if each["score"] is None else f"{each['score']:.4f}",
    "demand": lambda each: in_words(each["demand"]),
    "from": lambda each: each["demand_source"],
    ">agents": lambda each: each["agents"],
    ">filters": lambda each: each["filters"],
    ">offered for": age_of,
    ">waited": lambda each: each["waited_cycles"],
    "state": state_of,
}


def shadow(data: dict[str, Any]) -> None:
    """Print who would have been offered how much, beside what was."""
    counts, spec = data["counts"], data["shadow"]
    console().print(as_text(shadow_in_words(spec)))
    if not spec["name"]:
        return
    console().print(as_text(f"{policy_in_words(data['policy'])} decides"))
    console().print(as_text(_summary(counts)))
    if counts["error"]:
        console().print(as_text(f"warning: it failed last with {counts['error']}"))
    for name, kind in (("role", "roles"), ("framework", "clients")):
        console().print()
        rows = (_row(name, each, fair=data["fair"]) for each in data[kind])
        head = [name, ">share", ">offered", ">by shadow", ">change", ">cycles", ">shadow's"]
        if data["fair"]:
            head += [">end", ">end, shadow"]
        print_table(head, rows, "nobody is there")
    text = (
        "share: held now. offered: share offered, added up over the cycles compared; by shadow:"
        " what the other policy would have offered in the same cycles. cycles: in so many something"
        " was offered; shadow's: would have been. Nothing comes of that, so the next cycle is"
        " compared from what was really given."
    )
    console().print(as_text(text))


def _summary(counts: dict[str, Any]) -> str:
    passed = {"late": "came too fast", "too_large": "saw too much", "failed": "failed"}
    parts = [f"{counts['compared']} cycles compared"]
    parts += [f"{counts[key]} {text}" for key, text in passed.items() if counts[key]]
    offers = counts["offers_of_both"] + counts["offers_of_policy"] + counts["offers_of_shadow"]
    if offers:
        parts.append(f"{counts['offers_of_both'] / offers:.0%} of {offers} offers are the same")
    return "; ".join(parts)


def _row(name: str, each: dict[str, Any], *, fair: bool) -> list[str]:
    called = each["role"]
    if name == "framework":
        called = f"{name_of(each)} ({each['role']})"
    difference = each["offered_by_shadow"] - each["offered"]
    row = [
        called,
        f"{each['share']:.4f}",
        f"{each['offered']:.4f}",
        f"{each['offered_by_shadow']:.4f}",
        f"{difference:+.4f}",
        str(each["cycles"]),
        str(each["cycles_by_shadow"]),
    ]
    if fair:
        ends = (each["fair_share"], each["fair_share_by_shadow"])
        row += ["" if end is None else f"{end:.4f}" for end in ends]
    return row
