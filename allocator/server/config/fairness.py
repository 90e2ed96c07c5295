"""The section `[fairness]`."""

from typing import Annotated

from pydantic import Field

from allocator.server.config.schema import Section


class FairnessSection(Section):
    """Whether shares also count past use, in addition to what is held now."""

    live = True

    half_life_s: Annotated[int, Field(ge=0, le=366 * 86_400)] = Field(
        0,
        description=(
            "Half-life of the average of what a framework holds, in seconds: use that long ago"
            " counts half as much as use now. 0: no averages are kept."
        ),
    )
    usage_weight: Annotated[float, Field(ge=0, le=1)] = Field(
        0.5,
        description=(
            "Weight of that average in shares, if half_life_s is set. 0: only what is held"
            " now counts. 1: only the average counts. Policies that plan ignore it."
        ),
    )
