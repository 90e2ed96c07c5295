"""What the sections of the configuration are made of."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """What all parts of the configuration have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


Count = Annotated[int, Field(ge=1, le=10_000_000)]
