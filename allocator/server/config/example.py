"""Writes the example configuration: every option with its default and its description."""

import textwrap
from collections.abc import Iterator
from typing import Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from allocator.server.config.problems import range_of
from allocator.server.config.schema import is_free, is_rules, model_of, toml_value
from allocator.server.config.sections import Config

HEAD = """\
# Every option of the sidecar with its default. `mesos-allocator check-config FILE` checks a file,
# `mesos-allocator check-config --example` prints this one.
#
# Each value can also be given in the environment (MESOS_ALLOCATOR_HTTP__PORT=5057) and, before
# that, on the command line (--set http.port=5057)."""


def example() -> str:
    """Return the text of ``deploy/config.example.toml``."""
    parts = [HEAD]
    for name, section in Config.model_fields.items():
        model = model_of(section)
        assert model is not None
        parts.append("\n".join(_rules(name, model) if is_rules(section) else _section(name, model)))
    return "\n\n".join(parts) + "\n"


def _comment(text: str) -> Iterator[str]:
    for line in textwrap.wrap(" ".join(text.split()), 96):
        yield f"# {line}"


def _section(name: str, model: type[BaseModel]) -> Iterator[str]:
    yield from _comment(model.__doc__ or "")
    yield f"[{name}]"
    tables = []
    for key, option in model.model_fields.items():
        if is_free(option):
            tables.append((key, option))
            continue
        yield from _comment(described(option))
        yield f"{key} = {toml_value(option.default, option)}"
    for key, option in tables:
        yield ""
        yield from _comment(described(option))
        yield f"[{name}.{key}]"


def _rules(name: str, model: type[BaseModel]) -> Iterator[str]:
    """Yield an example of an array of tables, commented out by ``#`` without a space."""
    yield from _comment(f"{model.__doc__} One block a rule; none by default.")
    yield f"#[[{name}]]"
    for key, option in model.model_fields.items():
        yield from _comment(described(option))
        value = option.examples[0] if option.examples else option.default
        yield f"#{key} = {toml_value(value, option)}"


def described(option: FieldInfo) -> str:
    return f"{option.description or ''}{_bounds(option)}"


def _bounds(option: FieldInfo) -> str:
    if get_origin(option.annotation) is Literal:
        return f" One of {', '.join(get_args(option.annotation))}."
    bounds = range_of(option)
    return f" {bounds[0].upper()}{bounds[1:]}." if bounds else ""
