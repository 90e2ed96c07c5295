"""Tables of settings: policies, rules, their sources, and the results of a change."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import PurePath
from types import SimpleNamespace
from typing import Any, assert_never

from allocator import rule_kinds
from allocator.cli.render.terminal import (
    Cell,
    Columns,
    figure,
    hours_in_words,
    in_words,
    name_of,
    piped,
    print_rows,
    print_section,
    print_table,
    say,
)
from allocator.plain import counted
from allocator.rule_kinds import KINDS, RULES, SettingKind, Value


def policy_in_words(policy: dict[str, Any]) -> str:
    return rule_kinds.policy_in_words(SimpleNamespace(**policy))


def policy(data: dict[str, Any]) -> None:
    if _is_dry(data):
        _forecasts(data)
        tell(data)
        return
    say(policy_in_words(data["policy"]))
    if data.get("policies"):
        say(f"policies:   {', '.join(data['policies'])}")
        say(f"selections: {', '.join(data['selections'])}")
    tell(data)


def _is_dry(data: dict[str, Any]) -> bool:
    return bool(data.get("change", {}).get("dry_run"))


def _forecasts(data: dict[str, Any]) -> None:
    """Print what another policy would give clients, beside what the present one gives."""
    now, then = policy_in_words(data["policy"]), data["change"]["would_be"]
    name, other = now.partition(" ")[0], then.partition(" ")[0]
    if name == other:
        other = "then"
    else:
        now, then = name, other
    say(f"{now} now; {then} would decide:")
    columns: Columns = {
        "framework": name_of,
        "role": "role",
        ">share": figure("share", ".4f"),
        ">next now": lambda each: f"{each['offered_now']:.4f} of {each['agents_now']}",
        f">next {other}": lambda each: f"{each['offered_then']:.4f} of {each['agents_then']}",
        ">end now": figure("fair_now", ".4f"),
        f">end {other}": figure("fair_then", ".4f"),
        ">change": lambda each: f"{each['fair_then'] - each['fair_now']:+.4f}",
    }
    say()
    print_rows(columns, data["forecasts"], "no framework's share would change")
    text = "share: held now. next: offered in the next cycle, share and agents. end: share if the"
    text += " cluster were allocated from scratch. change: difference of the ends."
    if data["unaffected"]:
        text += f" {counted(data['unaffected'], 'framework')} would not change."
    say(text)


def rules(data: dict[str, Any], name: str) -> None:
    kind = KINDS[name]
    if kind.plural not in data:  # scheduled
        differences(data)
        return
    if _is_dry(data):
        _would(kind, data["change"])
        tell(data)
        return
    head = [part.removesuffix("_name") for part in kind.scope.fields]
    if kind.value is not Value.NOTHING:
        head.append(kind.column)
    names = [*(text.name for text in kind.texts), *(flag.name for flag in kind.flags)]
    head += [name.replace("_", " ") for name in names]
    print_table(head, (_row(kind, rule) for rule in data[kind.plural]), kind.none)
    print_section(BUDGET_USES, data.get("uses", []))
    tell(data)


def _hours(field: str) -> Cell:
    return lambda each: hours_in_words(each[field])


def minute(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def _runs_out(use: dict[str, Any]) -> str:
    if use["over"]:
        return "used up"
    return minute(use["runs_out_ms"]) if use["runs_out_ms"] else "not in this period"


BUDGET_USES: Columns = {
    "budget of": "role",
    "used": _hours("used"),
    "of": _hours("budget"),
    "left": _hours("left"),
    "runs out at this pace": _runs_out,
    "next period": lambda each: minute(each["end_ms"]),
}


def _row(kind: SettingKind, rule: dict[str, Any]) -> list[str]:
    row = [rule[part] or "*" for part in kind.scope.fields]
    match kind.value:
        case Value.AMOUNTS:
            row.append(in_words(rule[kind.field]) or kind.empty)
        case Value.HOURS:
            row.append(hours_in_words(rule[kind.field]))
        case Value.EXPRESSION:
            row.append(rule[kind.field])
        case Value.NUMBER | Value.COUNT:
            row.append(f"{rule[kind.field]:g}")
        case Value.NOTHING:
            pass
        case Value.POLICY:
            raise AssertionError(kind)  # not a rule
        case _:
            assert_never(kind.value)
    row += [rule[text.name] for text in kind.texts]
    return row + ["yes" if rule[flag.name] else "" for flag in kind.flags]


def _would(kind: SettingKind, change: dict[str, Any]) -> None:
    named = "" if kind.value is Value.NOTHING else f"{kind.name} "
    new, old = change["would_be"], change["is_now"]
    verb, told = ("set", new) if new else ("remove", old)
    text = ", ".join(filter(None, (change["scope"], f"{named}{told}" if told else "")))
    was = f" (was: {old or 'none'})" if new else ""
    say(f"would {verb}: {text}{was}")


def shadow(data: dict[str, Any]) -> None:
    if _is_dry(data):
        _would(KINDS["shadow"], data["change"])
    else:
        say(shadow_in_words(data["shadow"]))
    tell(data)


def shadow_in_words(spec: dict[str, Any]) -> str:
    if not spec["name"]:
        return "no shadow policy"
    return f"shadow: {policy_in_words(spec).replace(', hierarchical', '')}"


def settings(data: dict[str, Any], *, complete: bool = False, **_options: object) -> None:
    """Print settings, those that differ from the defaults first; on a terminal only these.

    `complete`: all of them, also on a terminal.
    """
    if data.get("change") and not data["change"]["dry_run"]:
        say("reset; the settings are now:")
    found = sorted(data["settings"], key=lambda each: each["source"] == "default")
    shown = [each for each in found if complete or piped() or each["source"] != "default"]
    print_settings(shown)
    if others := len(found) - len(shown):
        say(f"{counted(others, 'other setting')} with defaults; `settings show --all` shows all")
    print_coming(data)
    tell(data)


def print_coming(data: dict[str, Any]) -> None:
    if data.get("coming"):
        say()
    for each in data.get("coming", ()):
        verb = "begins" if each["begins"] else "ends"
        rule = f"{each['key']} {each['scope']}: {each['value']}"
        say(f"{each['at']}: {verb}: {rule} ({each['id']})")


def schedules(data: dict[str, Any]) -> None:
    print_rows(_SCHEDULES, data["schedules"], "there are no scheduled rules", ("set by",))


def _holds(rule: dict[str, Any]) -> str:
    if not (rule["begin"] or rule["end"] or rule["holds"]):
        return "never again"
    if rule["holds"]:
        return f"now, until {rule['end']}" if rule["end"] else "now"
    return f"from {rule['begin']}" + (f" until {rule['end']}" if rule["end"] else "")


def differences(data: dict[str, Any]) -> None:
    """Print what a command changed, or would change: + is new, - is removed, ~ changes."""
    for each in data["changes"]:
        say(_difference(each))
        kind, found = KINDS.get(each["key"]), each["match"]
        if each["coming"]:
            say(f"  holds {each['coming']}")
        if each["coming"] and kind and found["frameworks_total"] + found["agents_total"]:
            say(f"  if it held now, it would apply to {_match(kind, found)}")
    if not data["changes"]:
        say("no differences: everything is already set")
    tell(data)


def _difference(change: dict[str, Any]) -> str:
    before, after = change["before"], change["after"]
    sign = "~" if before and after else "+" if after else "-"
    values = f"{before} -> {after}" if before and after else before or after
    when = f", {change['when']}" if change["when"] else ""
    return f"{sign} {change['key']} {change['scope']}".rstrip() + f": {values}{when}"


def history(data: dict[str, Any]) -> None:
    rows = []
    for change in data["changes"]:
        told = list(map(_difference, change["settings"]))
        if change["left_out"]:
            told.append(f"and {change['left_out']} more, which are no longer recorded")
        begin = (change["number"], _when(change["at_ms"]), change["by"])
        rows += [(*begin, text) for text in told]
    columns = [">number", "=when", "by", "~what"]
    print_table(columns, rows, "no changes yet")
    if data["left_out"]:
        say(f"and {counted(data['left_out'], 'earlier change')}; --limit shows more")


def _when(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%SZ}"


def print_settings(shown: Iterable[dict[str, Any]]) -> None:
    """Print settings and their sources; full paths of files are listed once, below the table."""
    files: dict[str, str] = {}
    rows = []
    for each in shown:
        origin = _origin(each)
        if each["source"] == "file":
            path, _, line = origin.rpartition(":")
            short = PurePath(path).name
            origin = f"{short}:{line}" if files.setdefault(short, path) == path else origin
        rows.append((f"{each['key']} {each['scope']}", each["value"], _matched(each), origin))
    print_table(["=setting", "value", "now", "from"], rows, "nothing is set", ("now",))
    for short, path in files.items():
        if short != path:
            say(f"{short}: {path}")


def _origin(setting: dict[str, Any]) -> str:
    if not setting["set_at_ms"]:
        return setting["place"] or setting["source"]
    return f"{_when(setting['set_at_ms'])} by {setting['place']}"


_SCHEDULES: Columns = {
    "=id": "id",
    "rule": lambda each: f"{each['key']} {each['scope']}",
    "value": "value",
    "when": "when",
    "holds": _holds,
    "set by": _origin,
}


def _matched(setting: dict[str, Any]) -> str:
    kind = KINDS.get(setting["key"])
    if kind is None or not kind.is_rule or setting["value"] == "taken back":
        return ""
    return _match(kind, setting["match"])


def _match(kind: SettingKind, found: dict[str, Any]) -> str:
    return kind.match_in_words(SimpleNamespace(**found))


def tell(data: dict[str, Any]) -> None:
    change = data.get("change")
    if not change:
        return
    kind = next((kind for kind in RULES if kind.plural in data), None)
    if kind and change["match"]["frameworks_total"] + change["match"]["agents_total"]:
        say(f"the rule applies to {_match(kind, change['match'])}")
    for warning in change["warnings"]:
        say(f"warning: {warning}")
    if change["dry_run"]:
        say("dry run: nothing was changed")
    elif change["lasts_not"] and not change["save_failed"]:
        text = f"note: this is lost when the sidecar's process ends: {change['lasts_not']}"
        say(text)
