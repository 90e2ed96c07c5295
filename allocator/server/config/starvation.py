"""The section `[starvation]`."""

from typing import Annotated

from pydantic import Field

from allocator.server.config.schema import Section


class StarvationSection(Section):
    """Bounds on how long a framework waits, and on what it may hold without using it."""

    live = True

    patience_cycles: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        60,
        description=(
            "A framework is overdue if this many full cycles could have served it but did"
            " not. The next cycle then makes it one offer before it serves others. 0:"
            " never."
        ),
    )
    collect_s: Annotated[int, Field(ge=0, le=86_400)] = Field(
        300,
        description=(
            "A gang that has waited for patience_cycles keeps resources that become free on"
            " some agents until all of its tasks fit, for at most this many seconds. 0:"
            " gangs keep nothing."
        ),
    )
    outstanding_max: Annotated[float, Field(gt=0, le=1)] = Field(
        1.0,
        description=(
            "Maximum fraction of the cluster that a framework may have on offer and not in use,"
            " summed over its roles. One task may always be offered. 1: no bound."
        ),
    )
