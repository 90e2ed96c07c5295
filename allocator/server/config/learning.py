"""The options about demands that are learnt."""

from typing import Annotated

from pydantic import Field

from allocator.server.config.base import Count, Section


class LearnSection(Section):
    """Demand vectors that nobody states."""

    live = True

    enabled: bool = Field(
        True,
        description="Learn a framework's demand vector from what it accepts out of its offers.",
    )
    acceptances: Count = Field(
        3, description="Acceptances after which the learned demand vector counts."
    )
    probe_after: Count = Field(
        3,
        description=(
            "A framework that uses nothing and declined so many offers of its demand in a row is"
            " offered all that is free until it accepts: it may need more than we think."
        ),
    )
    priors_max: Annotated[int, Field(ge=0, le=100_000)] = Field(
        1000,
        description=(
            "Learned demands that are remembered when their frameworks leave. A new framework of"
            " the same role and name (digits aside), else principal, else user, begins with it."
            " 0: each framework begins anew."
        ),
    )
    prior_half_life_s: Annotated[int, Field(ge=1, le=10 * 365 * 86_400)] = Field(
        7 * 86_400,
        description="After this time, in seconds, what is remembered is half as certain.",
    )
    patience_cycles: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        30,
        description=(
            "A framework of which the demand is learnt or remembered, and which was offered nothing"
            " in so many full cycles, is offered all that is free once: it may need less. Then it"
            " waits twice as long for the next time, and so on."
        ),
    )
