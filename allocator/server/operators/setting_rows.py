"""Every setting as one row: its value, and where that comes from."""

from collections.abc import Iterator, Mapping

from allocator.core import (
    PolicySpec,
    SetConstraint,
    SetDemand,
    SetDrain,
    SetLimit,
    SetPolicy,
    SetShadow,
    Settings,
    SetWeight,
    format_quantities,
)
from allocator.server.config import Config, Loaded
from allocator.server.config.problems import Key as ConfigKey
from allocator.server.config.problems import Origins
from allocator.server.config.schema import is_rules, model_of, toml_value
from allocator.v1 import settings_pb2 as pb
from allocator.wire.settings.operator_overlay import SINGLE, Key, Overlay, key_of, rules
from allocator.wire.settings.operator_settings import OperatorChange

_POLICY = ("name", "selection", "mode", "flat", "parameters", "subtrees")


def scope_of(key: Key) -> str:
    """What a rule is for, in words."""
    match key:
        case (("policy" | "shadow"),):
            return ""
        case ("limit", role):
            return f"role {role}"
        case ("drain", agent):
            return f"agent {agent}"
        case (_, role, framework_name):
            pairs = (("role", role), ("framework", framework_name))
            return ", ".join(f"{what} {text}" for what, text in pairs if text) or "all"
    raise AssertionError(key)


def value_of(change: OperatorChange | None) -> str:
    """What a change sets, in words; empty where it takes something back, or there is nothing."""
    match change:
        case SetPolicy():
            return policy_in_words(change.spec)
        case SetDemand(demand=dict(demand)):
            override = ", overrides what frameworks state" if change.override else ""
            return (format_quantities(demand) or "unknown") + override
        case SetConstraint():
            return change.expression or ""
        case SetLimit(limit=dict(limit)):
            return format_quantities(limit)
        case SetDrain(drained=True):
            return "drained"
        case SetWeight(weight=float(weight)):
            return f"{weight:g}"
        case SetShadow(spec=PolicySpec() as spec):
            return policy_in_words(spec)
    return ""


def policy_in_words(spec: PolicySpec) -> str:
    """Write a policy in one line."""
    more = [spec.selection or "its own selection", spec.mode, "flat" if spec.flat else "by roles"]
    more += [f"{key}={value}" for key, value in spec.parameters.items()]
    subtrees = "".join(f"; {name} below {role}" for role, name in spec.subtrees.items())
    return f"{spec.name} ({', '.join(more)}){subtrees}"


def rows(
    loaded: Loaded, overlay: Overlay, settings: Settings
) -> Iterator[tuple[pb.Setting, OperatorChange | None]]:
    """Give every setting in force, rules with what sets them.

    Parameters
    ----------
    loaded : Loaded
        The configuration.
    overlay : Overlay
        What operators set.
    settings : Settings
        What is in force: those of the configuration with `overlay` over them.
    """
    config, origins = loaded
    yield from ((row, None) for row in _options(config, origins, overlay, settings))
    places = _places_of_rules(config, origins)
    for key, rule in rules(settings).items():
        row = pb.Setting(key=key[0], scope=scope_of(key), value=value_of(rule))
        _say_where(row, key, overlay, places.get(key, ""))
        yield row, rule


def taken_back(overlay: Overlay) -> Iterator[pb.Setting]:
    """Give the rules of the configuration that an operator took back."""
    for key, kept in overlay.changes.items():
        if key[0] not in SINGLE and not value_of(kept.change):
            row = pb.Setting(key=key[0], scope=scope_of(key), value="taken back")
            _say_where(row, key, overlay, "")
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
            if name in SINGLE and key in (*_POLICY, "policy") and (name,) in overlay.changes:
                value = _value_in_force(settings, name, key)
                _say_where(row, (name,), overlay, "")
            else:
                _say_where(row, (name, key), Overlay(), _origin(origins, (name, key)))
            row.value = toml_value(value, option)
            yield row


def _value_in_force(settings: Settings, name: str, key: str) -> object:
    """What an operator set in the place of an option."""
    if name == "policy":
        return getattr(settings.policy, key)
    spec = settings.shadow or PolicySpec("", mode="")
    return spec.name if key == "policy" else getattr(spec, key)


def _origin(origins: Origins, key: ConfigKey) -> str:
    """Where a value, or a part of it, comes from."""
    if key in origins:
        return origins[key]
    return next((place for each, place in origins.items() if each[: len(key)] == key), "")


def _places_of_rules(config: Config, origins: Origins) -> Mapping[Key, str]:
    found: dict[Key, str] = {}
    for index, demand in enumerate(config.demand):
        found[key_of(demand.event())] = origins.get(("demand", index), "")
    for index, constraint in enumerate(config.constraint):
        found[key_of(constraint.event())] = origins.get(("constraint", index), "")
    for index, limit in enumerate(config.limit):
        found["limit", limit.role] = origins.get(("limit", index), "")
    for index, drain in enumerate(config.drain):
        found["drain", drain.agent] = origins.get(("drain", index), "")
    for index, weight in enumerate(config.weight):
        found[key_of(weight.event())] = origins.get(("weight", index), "")
    return found


def _say_where(row: pb.Setting, key: Key, overlay: Overlay, origin: str) -> None:
    """Fill in where a setting comes from."""
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
