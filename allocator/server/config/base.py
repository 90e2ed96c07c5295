"""What the sections of the configuration are made of."""

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """What all parts of the configuration have in common.

    Attributes
    ----------
    live : bool
        Whether it counts at once where the configuration is read again; else after a restart.
    at_start : tuple of str
        Keys of a live one that count after a restart even so.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    live: ClassVar[bool] = False
    at_start: ClassVar[tuple[str, ...]] = ()


Count = Annotated[int, Field(ge=1, le=10_000_000)]
