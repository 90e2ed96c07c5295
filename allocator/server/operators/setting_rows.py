"""Every setting as one row: its value and its source."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, assert_never

from allocator.core import (
    OperatorChange,
    PolicySpec,
    Settings,
    format_hours,
    format_quantities,
)
from allocator.rule_kinds import KINDS, RULES, SettingKind, Value, policy_in_words
from allocator.server.config import Config, Loaded
from allocator.server.config.problems import Key as ConfigKey
from allocator.server.config.problems import Origins
from allocator.server.config.schema import is_rules, model_of, toml_value
from allocator.server.config.sections import kept_of
from allocator.server.operators.calendar import about_rule
from allocator.server.operators.unknown_names import probably_mistyped
from allocator.server.system import timetable
from allocator.v1 import settings_pb2 as pb
from allocator.wire.settings.overlay import KeptChange, Key, Overlay

_POLICY = ("name", "selection", "mode", "flat", "parameters", "subtrees")


def scope_of(key: Key) -> str:
    """Scope of a rule as text; keys of scheduled rules have one more part."""
    kind = KINDS[key[0]]
    return kind.scope_in_words(key[1 : 1 + len(kind.scope.fields)])


def value_of(change: OperatorChange | None) -> str:
    """Value of a change as text; empty if it removes something, or there is none."""
    if change is None or change.takes_back:
        return ""
    kind = change.kind
    texts = (text.words.format(said) for text in kind.texts if (said := getattr(change, text.name)))
    flags = (flag.words for flag in kind.flags if getattr(change, flag.name))
    moments = (timetable.shown(at, "UTC") for name in kind.moments if (at := getattr(change, name)))
    later = (f"from {each}" for each in moments)
    return ", ".join([_in_words(kind, getattr(change, kind.field)), *texts, *flags, *later])


def _in_words(kind: SettingKind, value: Any) -> str:  # noqa: ANN401 - as the kind says
    match kind.value:
        case Value.POLICY:
            return policy_in_words(value)
        case Value.AMOUNTS:
            return format_quantities(value) or kind.empty
        case Value.HOURS:
            return format_hours(value)
        case Value.EXPRESSION:
            return str(value)
        case Value.NUMBER | Value.COUNT:
            return f"{value:g}"
        case Value.NOTHING:
            return kind.field
        case _:
            assert_never(kind.value)


def rows(
    loaded: Loaded, overlay: Overlay, settings: Settings, holding: Iterable[KeptChange] = ()
) -> Iterator[tuple[pb.Setting, OperatorChange | None]]:
    """Yield every setting in force; rules with the change that sets them.

    `settings`: those in force, including `overlay` and `holding` (the core's scheduled rules).
    """
    by_calendar: dict[Key, list[KeptChange]] = {}
    for each in holding:
        by_calendar.setdefault(each.change.key, []).insert(0, each)
    config, origins = loaded
    yield from ((row, None) for row in _options(config, origins, overlay, settings))
    places = places_of_rules(config, origins)
    for rule in settings.rules():
        row = pb.Setting(key=rule.kind.name, scope=scope_of(rule.key), value=value_of(rule))
        held_by = next((one for one in by_calendar.get(rule.key, ()) if one.change == rule), None)
        if held_by is not None:
            row.source, row.place, row.set_at_ms = "calendar", about_rule(held_by), held_by.at_ms
        else:
            say_where(row, rule.key, overlay, places.get(rule.key, ""))
        yield row, rule


MISTYPED_LOGGED = 20


def mistyped_names(loaded: Loaded, overlay: Overlay | None = None) -> Iterator[str]:
    """Find rules with resource names that look mistyped, before any agent is known."""
    places = places_of_rules(*loaded)
    kept = [each.change for each in overlay.changes.values()] if overlay else []
    replaced = set(overlay.changes) if overlay else set()
    own = [rule for rule in loaded.config.settings().rules() if rule.key not in replaced]
    for rule in (*own, *kept):
        for text in probably_mistyped(rule):
            place = places.get(rule.key, "") if rule.key not in replaced else "set by an operator"
            what = f"{rule.kind.name} of {scope_of(rule.key)}"
            yield f"{place}: {what}: {text}" if place else f"{what}: {text}"


def taken_back(overlay: Overlay) -> Iterator[pb.Setting]:
    """Yield the rules of the configuration that an operator removed."""
    for key, kept in overlay.changes.items():
        by_calendar = kept.schedule is not None
        if kept.change.kind.is_rule and kept.change.takes_back and not by_calendar:
            row = pb.Setting(key=key[0], scope=scope_of(key), value="taken back")
            say_where(row, key, overlay, "")
            yield row


def _options(
    config: Config, origins: Origins, overlay: Overlay, settings: Settings
) -> Iterator[pb.Setting]:
    for name, section in Config.model_fields.items():
        model = model_of(section)
        if model is None or is_rules(section):
            continue
        for key, option in model.model_fields.items():
            value = getattr(getattr(config, name), key)
            row = pb.Setting(key=f"{name}.{key}")
            if key in (*_POLICY, "policy") and (name,) in overlay.changes:
                value = _value_in_force(settings, name, key)
                say_where(row, (name,), overlay, "")
            else:
                say_where(row, (name, key), Overlay(), _origin(origins, (name, key)))
            row.value = toml_value(value, option)
            yield row


def _value_in_force(settings: Settings, name: str, key: str) -> object:
    if name == "policy":
        return getattr(settings.policy, key)
    spec = settings.shadow or PolicySpec("", mode="")
    return spec.name if key == "policy" else getattr(spec, key)


def _origin(origins: Origins, key: ConfigKey) -> str:
    if key in origins:
        return origins[key]
    return next((place for each, place in origins.items() if each[: len(key)] == key), "")


def places_of_rules(config: Config, origins: Origins) -> Mapping[Key, str]:
    return {
        kept_of(kind, rule).key: origins.get((kind.name, index), "")
        for kind in RULES
        for index, rule in enumerate(getattr(config, kind.name))
    }


def say_where(row: pb.Setting, key: Key, overlay: Overlay, origin: str) -> None:
    kept = overlay.changes.get(key)
    if kept is not None:
        row.source, row.place, row.set_at_ms = "operator", kept.by, kept.at_ms
    elif origin.startswith("environment "):
        row.source, row.place = "environment", origin.removeprefix("environment ")
    elif origin.startswith("--"):
        row.source, row.place = "flag", origin
    elif origin:
        row.source, row.place = "file", origin
    else:
        row.source = "default"
