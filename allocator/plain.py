"""Formats text that is safe for any terminal, and JSON and YAML that any program can read."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

_STANDS_FOR = "\N{REPLACEMENT CHARACTER}"


def printable(text: str, also: str = "") -> str:
    r"""Replace characters that are not printable.

    These include control characters, which can send commands to a terminal, and marks that reverse
    the direction of text.

    `also`: characters to keep.

    >>> printable("a" + chr(0x202E) + "b\x1b[2J\n", also="\n").encode("ascii", "replace")
    b'a?b?[2J\n'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in also else _STANDS_FOR for each in text)


def counted(number: int, noun: str) -> str:
    """Format a number of things.

    >>> counted(1, "agent"), counted(1200, "agent")
    ('1 agent', '1,200 agents')
    """
    return f"{number:,} {noun}" + "s" * (number != 1)


def how_many(frameworks: int, clients: int) -> str:
    """Format the number of frameworks, and of clients if some have several roles.

    >>> how_many(2, 2), how_many(2, 3), how_many(1, 2)
    ('2 frameworks', '2 frameworks as 3 clients', '1 framework in 2 roles')
    """
    if frameworks == clients:
        return counted(frameworks, "framework")
    if frameworks == 1:
        return f"1 framework in {clients:,} roles"
    return f"{frameworks:,} frameworks as {clients:,} clients"


def json_text(value: object, **form: Any) -> str:  # noqa: ANN401 - as `json.dumps` takes them
    """Write JSON, which cannot represent numbers that are not finite.

    As in protobuf's JSON, infinities become the text ``Infinity`` or ``-Infinity``; NaN becomes
    null.

    >>> json_text({"share": 0.5, "score": [math.inf, -math.inf, math.nan]})
    '{"share": 0.5, "score": ["Infinity", "-Infinity", null]}'
    """
    try:
        return json.dumps(value, allow_nan=False, **form)
    except ValueError:  # rare, and checking every value first would double the cost
        return json.dumps(_finite(value), allow_nan=False, **form)


def _finite(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


_PLAIN_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_OTHER_MEANING = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def yaml_text(value: object) -> str:
    """Write `value` as block-style YAML, with the same values as `json_text`.

    >>> print(yaml_text({"share": 1e-6, "roles": ["eng", "no"], "held": {}}))
    share: 1.0e-06
    roles:
    - eng
    - "no"
    held: {}
    """
    return "\n".join(_block(_finite(value), ""))


def _block(value: Any, indent: str) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _entry(f"{indent}{_scalar(key)}:", each, indent)
    elif isinstance(value, list) and value:
        for each in value:
            first, *rest = _block(each, f"{indent}  ")
            yield f"{indent}- {first.lstrip(' ')}"
            yield from rest
    else:
        yield f"{indent}{_scalar(value)}"


def _entry(head: str, value: Any, indent: str) -> Iterator[str]:  # noqa: ANN401
    if isinstance(value, dict | list) and value:
        yield head
        # YAML allows a list at the indentation of its key.
        yield from _block(value, indent if isinstance(value, list) else f"{indent}  ")
    else:
        yield f"{head} {_scalar(value)}"


def _scalar(value: Any) -> str:  # noqa: ANN401
    """Write a scalar so that YAML reads it back with the same type."""
    if isinstance(value, float):
        text = repr(value)
        return text if "e" not in text or "." in text else text.replace("e", ".0e")
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN_WORD.fullmatch(value) and value.lower() not in _OTHER_MEANING:
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in quoted)
