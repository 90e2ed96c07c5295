"""The options about what outlives the process."""

from typing import Annotated

from pydantic import AfterValidator, Field

from allocator.server.config.base import Section

NOWHERE = "-"
"""As a directory: nothing is kept."""


def absolute_directory(text: str) -> str:
    """Check a directory that may not be there yet."""
    if text and text != NOWHERE and not text.startswith("/"):
        message = "must be an absolute path, as in '/var/lib/mesos-allocator', or '-' for none"
        raise ValueError(message)
    return text


class StateSection(Section):
    """What outlives the process: what operators set, and what was learnt of demands."""

    directory: Annotated[str, AfterValidator(absolute_directory)] = Field(
        "",
        description=(
            "Directory to keep it in, of one sidecar alone. Empty: where systemd says"
            " (StateDirectory=), else the journal's directory, else nothing is kept. '-': nothing"
            " is kept."
        ),
    )
    save_s: Annotated[int, Field(ge=1, le=86_400)] = Field(
        30,
        description=(
            "What was learnt is saved so often, in seconds, and at the end. What operators set is"
            " saved before they are answered."
        ),
    )
