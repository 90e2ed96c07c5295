"""The options of what is watched: logs and metrics."""

from typing import Annotated, Literal

from pydantic import Field

from allocator.server.config.schema import Section


class LogSection(Section):
    """Logs, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="What is logged: this and everything worse."
    )
    format: Literal["auto", "json", "console"] = Field(
        "auto",
        description=(
            "json: one object a line. console: for people. auto: console on a terminal, else json."
        ),
    )


class MetricsSection(Section):
    """Bounds on the number of time series, and what is worked out for them alone."""

    frameworks_max: Annotated[int, Field(ge=0, le=100_000)] = Field(
        100,
        description=(
            "Frameworks with series of their own: those with the largest shares. All others are"
            ' added up under framework="other".'
        ),
    )
    roles_max: Annotated[int, Field(ge=0, le=100_000)] = Field(
        100, description='The same for roles; all others are added up under role="other".'
    )
    fair_share_every_s: Annotated[float, Field(ge=0, le=86_400)] = Field(
        60.0,
        description=(
            "How often fair shares are worked out for the fairness error, on a copy of the books"
            " and a thread of its own; less often where it takes long, so that it costs at most a"
            " hundredth of one processor. 0: never."
        ),
    )
