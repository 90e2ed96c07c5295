"""From a scenario file to what it says, or to all that is wrong with it."""

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from allocator.lab.scenarios.schema import ScenarioFile

SHOWN_MAX = 80
"""Characters of a wrong value that are shown."""


class ScenarioError(ValueError):
    """A scenario that cannot be played; the text has a line for each thing that is wrong."""


def read(path: Path) -> ScenarioFile:
    """Read a scenario.

    Raises ScenarioError naming the file, each wrong field with its value, and what would be right.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ScenarioError(f"{path}: cannot be read: {reason}") from None
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{path}: is not TOML: {error}") from None
    return check(data, str(path))


def check(data: Mapping[str, Any], origin: str) -> ScenarioFile:
    """Check what a file says; `origin` is named in the errors."""
    try:
        return ScenarioFile.model_validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise ScenarioError("\n".join(f"{origin}: {_problem(each)}" for each in details)) from None


def _problem(detail: ErrorDetails) -> str:
    key = list(detail["loc"])
    if detail["type"] == "section":
        parts = str(detail["ctx"]["key"]).split(".")
        key += [int(part) if part.isdecimal() else part for part in parts]
    value = detail["input"]
    # Of what is wrong with a table as a whole the value is the table: its key says enough.
    shown = "" if isinstance(value, BaseModel | dict) else f" = {_short(value)}"
    return f"{_dotted(key)}{shown}: {_message(detail, key)}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def _dotted(key: list[str | int]) -> str:
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _message(detail: ErrorDetails, key: list[str | int]) -> str:
    """What would be right."""
    context: dict[str, Any] = detail.get("ctx", {})
    match detail["type"]:
        case "missing":
            return "is missing; give it"
        case "extra_forbidden":
            return f"unknown key{_nearest(key)}"
        case "section":
            return str(context["message"])
        case "value_error":
            return str(context["error"])
        case "literal_error":
            return f"must be {context['expected']}"
        case "string_too_short":
            return "must not be empty"
        case "too_short":
            return "must have at least one entry"
        case "greater_than_equal":
            return f"must be {context['ge']} or more"
        case "greater_than":
            return f"must be more than {context['gt']}"
        case "less_than_equal":
            return f"must be {context['le']} or less"
    nouns = {
        "int_type": "a whole number",
        "float_type": "a number",
        "string_type": "text in quotes",
        "bool_type": "true or false",
        "list_type": "a list; tables of a list are written as [[name]]",
        "dict_type": "a table",
        "model_type": "a table",
    }
    return f"must be {nouns.get(detail['type'], detail['msg'])}"


def _nearest(key: list[str | int]) -> str:
    """The key that was probably meant."""
    model: Any = ScenarioFile
    for part in key[:-1]:
        if isinstance(part, str) and part in model.model_fields:
            model = _model_in(model.model_fields[part].annotation) or model
    known = list(model.model_fields)
    near = difflib.get_close_matches(str(key[-1]), known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known)}"


def _model_in(annotation: object) -> type[BaseModel] | None:
    """The table that a field holds, be it in a list or optional."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_model_in(each) for each in get_args(annotation))
    return next((each for each in inner if each is not None), None)
