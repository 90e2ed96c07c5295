"""What is set aside of the words of whoever an event is about, for the log."""

from typing import Any, TypeAlias

from allocator.core import Allocator, Aside

Told: TypeAlias = tuple[str, str, Aside]
"""``framework`` or ``agent``, its id, and what of its words is set aside."""


def set_aside_of(allocator: Allocator, name: str, message: Any) -> Told | None:  # noqa: ANN401
    """Find what is set aside of the words of whoever an event is about; None where nothing is."""
    state = allocator.state
    if not (state.frameworks.aside or state.agents.aside):
        return None
    if name in {"add_framework", "update_framework", "request"}:
        rows = state.frameworks.aside.get(message.framework)
        info = state.frameworks.info[message.framework] if rows else None
        return ("framework", info.framework_id, rows) if info and rows else None
    if name in {"add_agent", "update_agent"} and not isinstance(message, list):
        aside = state.agents.aside.get(message.agent)
        agent = state.agents.info[message.agent] if aside else None
        return ("agent", agent.agent_id, aside) if agent and aside else None
    return None
