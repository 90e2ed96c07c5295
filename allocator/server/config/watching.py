"""The options of how it is watched: over HTTP, by logs and metrics."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from allocator.server.config.checks import host_name
from allocator.server.config.schema import Section


class HttpSection(Section):
    """Where /metrics, /healthz, /readyz and the status page are served (HTTP, only to read)."""

    host: str = Field(
        "127.0.0.1", min_length=1, description="Address to listen on; 0.0.0.0: all interfaces."
    )
    port: int = Field(5057, ge=0, le=65535, description="Port; 0: any free one.")
    page: Literal["local", "all", "off"] = Field(
        "local",
        description=(
            "Who may see the status page, which names frameworks, agents and operators: local:"
            " whoever asks from this machine, by localhost or a loopback address; all: whoever"
            " reaches the port; off: nobody."
        ),
    )
    names: Annotated[tuple[Annotated[str, AfterValidator(host_name)], ...], Field(strict=False)] = (
        Field(
            (),
            description=(
                "Names under which this listener is asked, as a scraper has them in its"
                ' configuration; "*": any. Addresses, localhost, names without a dot, http.host and'
                " the name of this machine need not be listed; a request for any other name is"
                " refused, for a browser may have been led here by a page of somebody else's."
            ),
        )
    )


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
