"""The options about a policy that looks on."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from allocator.core import PolicySpec
from allocator.server.config.base import Section
from allocator.server.config.checks import policy_name, selection_name


def optional_policy(text: str) -> str:
    """Check the name of a policy; empty is none."""
    return text and policy_name(text)


class ShadowSection(Section):
    """A policy that looks on: it decides what was decided, and nothing comes of it.

    A running sidecar is told with `mesos-allocator shadow set`.
    """

    live = True

    policy: Annotated[str, AfterValidator(optional_policy)] = Field(
        "", description="Policy; empty: none looks on."
    )
    selection: Annotated[str, AfterValidator(selection_name)] = Field(
        "", description="How it chooses the agent; empty: the policy's own default."
    )
    mode: Literal["", "oblivious", "characterised"] = Field(
        "", description="As policy.mode; empty: the same as that."
    )
    parameters: dict[str, str] = Field(
        default_factory=dict, description="What else the policy takes, as text."
    )

    def spec(self, mode: str) -> PolicySpec | None:
        """The policy as the core takes it, in this mode where it has none of its own."""
        if not self.policy:
            return None
        parameters = dict(sorted(self.parameters.items()))
        return PolicySpec(self.policy, self.selection, self.mode or mode, parameters=parameters)
