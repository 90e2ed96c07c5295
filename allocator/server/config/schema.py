"""The base of configuration sections, and their metadata."""

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined


class Section(BaseModel):
    """The base of all parts of the configuration."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    live: ClassVar[bool] = False
    """Whether a reload applies changes of the section; otherwise they take effect after a
    restart."""
    at_start: ClassVar[tuple[str, ...]] = ()
    """Keys of a live section that take effect only after a restart."""


Count = Annotated[int, Field(ge=1, le=10_000_000)]


def is_free(option: FieldInfo) -> bool:
    """Whether this is a table with keys of the user's choice."""
    return get_origin(option.annotation) is dict


def model_of(option: FieldInfo) -> type[BaseModel] | None:
    """Model of a section, or of one element of an array of tables."""
    kind: Any = option.annotation
    if get_origin(kind) is tuple:
        kind = get_args(kind)[0]
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def is_rules(option: FieldInfo) -> bool:
    return get_origin(option.annotation) is tuple and model_of(option) is not None


def option_at(root: type[BaseModel], key: Sequence[str]) -> FieldInfo | None:
    """Return the option ``section.key``, or ``section.table.key`` if the table has free keys."""
    section = root.model_fields.get(key[0])
    if section is None or is_rules(section) or len(key) == 1:
        return None
    model = model_of(section)
    option = model.model_fields.get(key[1]) if model else None
    depth = 3 if option is not None and is_free(option) else 2
    return option if len(key) == depth else None


def keys(root: type[BaseModel]) -> list[tuple[str, str]]:
    models = {name: model_of(section) for name, section in root.model_fields.items()}
    return [(name, key) for name, model in models.items() if model for key in model.model_fields]


def is_live(root: type[BaseModel], key: Sequence[str | int]) -> bool:
    section = root.model_fields.get(str(key[0]))
    model: Any = model_of(section) if section else None
    return bool(model and model.live and (len(key) == 1 or key[1] not in model.at_start))


def live_sections(root: type[BaseModel]) -> list[str]:
    return [name for name in root.model_fields if is_live(root, [name])]


_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_key(key: str) -> str:
    """Format a key as TOML, quoted if necessary.

    >>> toml_key("unit"), toml_key("eng/ads")
    ('unit', '"eng/ads"')
    """
    return key if _BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def toml_value(value: object, option: FieldInfo | None = None) -> str:
    """Format a value as TOML.

    >>> toml_value(("a", 1, True))
    '["a", 1, true]'
    """
    assert value is not PydanticUndefined, "an option has neither a default nor an example"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(part) for part in value)}]"
    if isinstance(value, dict):
        pairs = (f"{toml_key(str(key))} = {toml_value(part)}" for key, part in value.items())
        return f"{{ {', '.join(pairs)} }}" if value else "{}"
    extra = option.json_schema_extra if option else None
    if isinstance(extra, dict) and extra.get("octal") and isinstance(value, int):
        return f"0o{value:o}"
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:
        return "a number of very many digits"
