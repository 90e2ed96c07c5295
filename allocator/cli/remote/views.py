"""Responses as plain Python data: what `--json` prints and what tables are made of."""

from math import isnan
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

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
