"""Answers as names, one a line, as other commands take them: for `xargs` and loops of a shell."""

import shlex
from collections.abc import Iterator
from typing import Any

from allocator.settable import KINDS, Scope


def frameworks(data: dict[str, Any]) -> Iterator[str]:
    """Ids of frameworks; one in two roles is named once."""
    yield from dict.fromkeys(each["framework_id"] for each in data["clients"])


def policy(data: dict[str, Any], field: str = "policy") -> Iterator[str]:
    """The name of a policy, where there is one."""
    if data[field]["name"]:
        yield data[field]["name"]


def rules(data: dict[str, Any], name: str) -> Iterator[str]:
    """What stands behind `remove`, for each rule of a kind."""
    kind = KINDS[name]
    for rule in data[kind.plural]:
        if kind.scope is not Scope.FRAMEWORKS:
            yield rule[kind.scope.fields[0]]
            continue
        given = ((part, rule[part]) for part in kind.scope.fields if rule[part])
        words = (f"--{part.replace('_', '-')} {shlex.quote(text)}" for part, text in given)
        yield " ".join(words) or "--all"


def settings(data: dict[str, Any]) -> Iterator[str]:
    """Keys of settings, and rules by whom they are for."""
    yield from (f"{each['key']} {each['scope']}".rstrip() for each in data["settings"])
