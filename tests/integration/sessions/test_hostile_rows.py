"""The hostile sidecar of the cluster tests is effective: many of its decisions become offers."""

import pytest

from tests.cluster.hostile import HostileSidecar
from tests.integration.sessions.live_brain import LiveBrain


@pytest.mark.long
def test_a_fifth_of_a_hostile_sidecars_rows_become_offers(tmp_path, brain_library):
    """Enough rows must pass the gates that the code behind the gates is tested, too."""
    target = f"unix:{tmp_path}/hostile.sock"
    with HostileSidecar(target, seed=1, ended=0) as hostile, LiveBrain(brain_library, target) as it:
        it.await_served(50)
    figures = hostile.figures
    assert figures.rows > 300
    # On a real master it may be less, as frameworks hold and refuse resources.
    assert figures.offered > figures.rows / 5
    assert len(figures.answers) > 3, "and still it is hostile in many ways"
