"""Text that any terminal may show, and JSON that any program reads."""

import json
import math
from typing import Any

_STANDS_FOR = "\N{REPLACEMENT CHARACTER}"


def printable(text: str, also: str = "") -> str:
    r"""Put a mark in the place of whatever is not shown as itself.

    That is control characters, with which a terminal can be told what to do, and marks that turn
    the direction of text round.

    `also`: characters that may stay.

    Examples
    --------
    >>> printable("a" + chr(0x202E) + "b\x1b[2J\n", also="\n").encode("ascii", "replace")
    b'a?b?[2J\n'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in also else _STANDS_FOR for each in text)


def json_text(value: object, **form: Any) -> str:  # noqa: ANN401 - as `json.dumps` takes them
    """Write JSON, which has no word for numbers that are not finite.

    As in protobuf's JSON, an infinite one becomes the text ``Infinity`` or ``-Infinity``; one that
    there is not becomes null.

    Examples
    --------
    >>> json_text({"share": 0.5, "score": [math.inf, -math.inf, math.nan]})
    '{"share": 0.5, "score": ["Infinity", "-Infinity", null]}'
    """
    try:
        return json.dumps(value, allow_nan=False, **form)
    except ValueError:  # rare, and looking through all of it costs as much again
        return json.dumps(_finite(value), allow_nan=False, **form)


def _finite(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
