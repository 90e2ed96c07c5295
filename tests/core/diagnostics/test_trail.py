"""The memory of recorded cycles depends on their number, not on their contents."""

from allocator.core import PolicySpec
from allocator.core.diagnostics.trail import Trail
from tests.core.session import Session


def test_records_share_the_paths_of_roles():
    """A session forgets no role, so a copy of all roles in each record would grow without bound."""
    made = Session(PolicySpec("drf"))
    made.allocator.trail = trail = Trail()
    made.agent(1, 4, 4)
    made.framework(1)
    made.cycle(1000)
    made.agent(2, 4, 4)
    made.framework(2, 2)
    made.cycle(2000)
    first, second = (record.names.path for record in trail.cycles)
    assert first is second is made.state.roles.path
    assert second[1:3] == ["a", "b"]
