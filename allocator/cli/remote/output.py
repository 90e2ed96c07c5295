"""Conversion of answers to plain Python data, and the output formats."""

from enum import StrEnum
from math import isnan
from typing import Annotated, Any

import typer
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from allocator.plain import json_text, yaml_text
from allocator.rule_kinds import SettingKind

MILLI = 1000

# Fields with amounts, in thousandths, that are not of type Quantities.
_AMOUNTS = {("ResourceUse", field) for field in ("total", "held", "offered")}


def plain(message: Message) -> dict[str, Any]:
    """Convert a message to dictionaries, lists, numbers and strings.

    Amounts become numbers in the resource's unit, `Quantities` a mapping of name to amount. Every
    field is present, even if it is empty; NaN becomes None.
    """
    return {field.name: _value(message, field) for field in message.DESCRIPTOR.fields}


def by_kind(kind: SettingKind, response: Message) -> dict[str, Any]:
    """Convert a response with rules of one kind, which are listed under the kind's name."""
    data = plain(response)
    rules = [rule[kind.name] for rule in data.pop("rules")]
    beside = {name: data[name] for name in ("change", *kind.beside) if name in data}
    return {kind.plural: rules, **beside}


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
    """Convert thousandths to a number; an int if it is whole.

    >>> units(2000), units(1500)
    (2, 1.5)
    """
    return amount // MILLI if amount % MILLI == 0 else amount / MILLI


class Form(StrEnum):
    """Values of `--output`."""

    JSON = "json"
    YAML = "yaml"
    WIDE = "wide"
    NAME = "name"


FormOption = Annotated[
    Form | None,
    typer.Option(
        "--output",
        "-o",
        help="json, yaml, wide (a table with all columns), or name (only names, in the form"
        " that other commands accept); default: a table.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Same as --output json.")]


def form_of(output: Form | None, *, json: bool) -> Form | None:
    if json and output not in {None, Form.JSON}:
        raise typer.BadParameter(f"--json contradicts --output {output}; give one of them")
    return Form.JSON if json else output


def written(form: Form | None, data: dict[str, Any]) -> str | None:
    if form is Form.JSON:
        return json_text(data, indent=2)
    return yaml_text(data) if form is Form.YAML else None
