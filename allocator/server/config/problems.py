"""Messages about errors in a configuration: the origin, the key, the value, and the fix."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from allocator.near import nearest, suggestion
from allocator.server.config.checks import one_of
from allocator.server.config.schema import is_free, is_rules, keys, model_of, option_at, toml_value

BYTES_MAX = 4 * 2**20
"""Maximum size of a file; a thousand rules take a fortieth of it."""

DEPTH_MAX = 16
"""Maximum depth of tables; options need four. Much deeper tables would exhaust the stack."""

VALUE_LINES_MAX = 1000
"""Maximum number of lines of a value; errors behind a longer one are reported without their
line."""

PROBLEMS_MAX = 100

TOO_DEEP = f"is nested too deeply; {DEPTH_MAX} levels are enough for every option"


def unlikely(tree: dict[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Find parts of a tree that are too deep, and texts with NUL; yield the key, and the fix."""
    pending: list[tuple[tuple[str | int, ...], Any]] = [((), tree)]
    while pending:
        key, value = pending.pop()
        if isinstance(value, str) and "\0" in value:
            yield key, "holds a NUL character; leave it out"
        elif isinstance(value, dict | list) and len(key) >= DEPTH_MAX:
            yield key[:2], TOO_DEEP
            return
        elif isinstance(value, dict):
            pending += (((*key, name), part) for name, part in value.items())
        elif isinstance(value, list):
            pending += (((*key, place), part) for place, part in enumerate(value))


SHOWN_MAX = 80

Key = tuple[str | int, ...]
"""Path of a value: names of tables and keys, and indices of arrays."""

Origins = dict[Key, str]
"""Where each value was set, such as ``config.toml:12``."""

BROKEN = ""
"""Origin of a value whose line has already been reported."""


@dataclass(frozen=True)
class ConfigProblem:
    """One problem of the configuration."""

    origin: str
    """File and line, variable of the environment, or flag."""
    key: str
    """Dotted path of the option; empty: the problem is not about an option."""
    message: str
    """The error, with the value if there is one, and what would be valid."""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.origin, self.key, self.message) if part)


class ConfigError(ValueError):
    """The configuration is invalid; `problems`: in the order of the sources."""

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = list(problems)


def unknown_key(root: type[BaseModel], key: Sequence[str]) -> str:
    section = root.model_fields.get(key[0])
    if section is not None and is_rules(section):
        return f"rules are given in the file, as [[{key[0]}]]"
    if section is not None and len(key) == 1:
        return f"is a section; name one of its keys, as in {key[0]}.{_first_key(section)}"
    return f"unknown key{_nearest(root, key)}"


def _first_key(section: FieldInfo) -> str:
    model = model_of(section)
    return next(iter(model.model_fields)) if model else "key"


def _nearest(root: type[BaseModel], key: Sequence[str]) -> str:
    """Suggest the intended key: in the same section, or else with that name in another one."""
    own = nearest(key[-1], [name for section, name in keys(root) if section == key[0]])
    if own:
        return f"; did you mean '{key[0]}.{own}'?"
    known = [".".join(pair) for pair in keys(root)]
    elsewhere = [name for name in known if name.endswith(f".{key[-1]}")]
    return suggestion(".".join(key), elsewhere or known, cutoff=0.3)


def from_validation(
    root: type[BaseModel], error: ValidationError, origins: Origins
) -> Iterator[ConfigProblem]:
    details = error.errors(include_url=False)
    if len(details) > PROBLEMS_MAX:
        yield ConfigProblem("", "", f"{len(details) - PROBLEMS_MAX} more problems are not listed")
    for detail in details[:PROBLEMS_MAX]:
        key: Key = tuple(detail["loc"])
        if detail["type"] == "section":
            part = detail["ctx"]["key"]
            key = (*key, part) if isinstance(part, int) else (*key, *part.split("."))
        origin = next(
            (origins[key[:end]] for end in range(len(key), 0, -1) if key[:end] in origins),
            "defaults",
        )
        if origin != BROKEN:
            yield ConfigProblem(origin, _with_value(key, detail), _message(root, key, detail))


def dotted(key: Key) -> str:
    """Format a key for messages.

    >>> dotted(("limit", 0, "role"))
    'limit[0].role'
    """
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _with_value(key: Key, detail: ErrorDetails) -> str:
    if detail["type"] in ("section", "missing") or isinstance(detail["input"], dict):
        return dotted(key)
    value = toml_value(detail["input"])
    shown = value if len(value) <= SHOWN_MAX else f"{value[:SHOWN_MAX]}..."
    return f"{dotted(key)} = {shown}"


def _message(root: type[BaseModel], key: Key, detail: ErrorDetails) -> str:
    names = [part for part in key if isinstance(part, str)]
    option = option_at(root, names)
    context: dict[str, Any] = detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden" if len(key) == 1:
            return f"unknown section{suggestion(names[0], root.model_fields)}"
        case "extra_forbidden":
            return f"unknown key{_nearest(root, names)}"
        case "missing":
            return "is missing; give it"
        case "section":
            return str(context["message"])
        case "value_error":
            return str(context["error"])
        case "literal_error":
            return _not_a_literal(option, detail["input"])
        case "greater_than_equal" | "greater_than" | "less_than_equal":
            return f"must be {range_of(option)}"
        case "string_too_short":
            return "must not be empty"
        case _:
            return f"must be {_noun(root, key, option)}"


def _not_a_literal(option: FieldInfo | None, value: object) -> str:
    try:
        one_of(str(value), get_args(option.annotation) if option else ())
    except ValueError as error:
        return str(error)
    return "must be text"


def range_of(option: FieldInfo | None) -> str:
    bounds = option.metadata if option else []
    low = [f"from {toml_value(each.ge, option)}" for each in bounds if isinstance(each, Ge)]
    low += [f"above {toml_value(each.gt, option)}, up" for each in bounds if isinstance(each, Gt)]
    high = [toml_value(each.le, option) for each in bounds if isinstance(each, Le)]
    return f"{low[0]} to {high[0]}" if low and high else ""


def _noun(root: type[BaseModel], key: Key, option: FieldInfo | None) -> str:
    """Describe the type of a value, with an example."""
    if option is None or isinstance(key[-1], int) or (is_free(option) and len(key) > 2):
        section = root.model_fields.get(str(key[0]))
        if section is not None and len(key) == 1:
            name = f"[[{key[0]}]]" if is_rules(section) else f"[{key[0]}]"
            return f"a section, as in {name}"
        return "text in quotes"
    nouns = {int: "a whole number", float: "a number", bool: "true or false"}
    kind: Any = option.annotation
    noun = nouns.get(kind) or {tuple: "a list", dict: "a table of texts"}.get(
        get_origin(kind), "text in quotes"
    )
    default = option.get_default(call_default_factory=True)
    return f"{noun}, as in {key[-1]} = {toml_value(default, option)}"
