"""Published frameworks on a real master: they finish tasks with a sidecar and after its death."""

import pytest

from tests.cluster.live import PACKAGES, interpreter, live
from tests.cluster.mesos import NotFoundError

pytestmark = pytest.mark.long


@pytest.mark.parametrize("name", PACKAGES)
def test_a_framework_outlives_the_sidecar(mesos, name):
    try:
        interpreter(name)
    except NotFoundError as error:
        pytest.skip(str(error))
    for row in live(mesos, [name], [("drf", "oblivious"), ("ps-dsf", "characterised")]):
        for counts in (row.alive[name], row.dead[name]):
            assert counts.finished >= 3
            assert counts.accepted > 0
            assert counts.otherwise == 0
            assert counts.subscribed == 0
