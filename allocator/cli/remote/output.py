"""Answers as plain Python data, and in which form they are printed.

A table, all of its columns, JSON, YAML, or names alone.
"""

from enum import StrEnum
from math import isnan
from typing import Annotated, Any

import typer
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from allocator.plain import json_text, yaml_text

MILLI = 1000

# Amounts that stand alone, in thousandths; those in Quantities are found by their message.
_AMOUNTS = {("ResourceUse", field) for field in ("total", "held", "offered")}


def plain(message: Message) -> dict[str, Any]:
    """Turn a message into dictionaries, lists, numbers and texts.

    Amounts become numbers in the resource's own unit, `Quantities` a mapping of name to amount.
    Every field is there, also where it is empty; a number that there is not is None.
    """
    return {field.name: _value(message, field) for field in message.DESCRIPTOR.fields}


def _value(message: Message, field: FieldDescriptor) -> object:
    value = getattr(message, field.name)
    if isinstance(value, float) and isnan(value):
        return None
    if field.message_type is None:
        if field.is_repeated:
            return list(value)
        amount = (message.DESCRIPTOR.name, field.name) in _AMOUNTS
        return units(value) if amount else value
    if field.message_type.GetOptions().map_entry:
        return dict(value)
    return [_part(part) for part in value] if field.is_repeated else _part(value)


def _part(message: Message) -> dict[str, Any]:
    if message.DESCRIPTOR.name == "Quantities":
        pairs = zip(message.name, message.amount, strict=True)  # type: ignore[attr-defined]
        return {name: units(amount) for name, amount in pairs}
    return plain(message)


def units(amount: int) -> float | int:
    """Thousandths as a number, whole where it is.

    Examples
    --------
    >>> units(2000), units(1500)
    (2, 1.5)
    """
    return amount // MILLI if amount % MILLI == 0 else amount / MILLI


class Form(StrEnum):
    """What `--output` may say."""

    JSON = "json"
    YAML = "yaml"
    WIDE = "wide"
    NAME = "name"


FormOption = Annotated[
    Form | None,
    typer.Option(
        "--output",
        "-o",
        help="json, yaml, wide (all columns), or name (of a list: what other commands call each);"
        " none: a table.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="The same as --output json.")]


def form_of(output: Form | None, *, json: bool) -> Form | None:
    """Put both options together; None: a table."""
    if json and output not in {None, Form.JSON}:
        raise typer.BadParameter(f"--json is --output json, and so not {output}; give one of them")
    return Form.JSON if json else output


def written(form: Form | None, data: dict[str, Any]) -> str | None:
    """Write an answer for programs; None where people read it."""
    if form is Form.JSON:
        return json_text(data, indent=2)
    return yaml_text(data) if form is Form.YAML else None
