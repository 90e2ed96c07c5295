"""What a policy that looks on would have decided, as tables."""

from typing import Any

from allocator.cli.render.setting_tables import policy_in_words, shadow_in_words
from allocator.cli.render.terminal import as_text, console, print_table


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
        head = [name, ">share", ">offered", ">shadow", ">", ">cycles", ">shadow"]
        if data["fair"]:
            head += [">in the end", ">shadow"]
        print_table(head, rows, "nobody is there")
    text = (
        "share: held now. offered: share offered, added up over the cycles compared; shadow: what"
        " the other policy would have offered in the same cycles. Nothing comes of that, so the"
        " next cycle is compared from what was really given."
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
        called = f"{each['framework_name'] or each['framework_id']} ({each['role']})"
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
