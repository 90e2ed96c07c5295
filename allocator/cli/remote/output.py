"""In which form an answer is printed: a table, all of its columns, JSON, YAML, or names alone."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from allocator.plain import json_text, yaml_text


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
