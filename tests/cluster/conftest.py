"""A Mesos installation for the tests that need one: ``pytest tests/cluster --mesos-root=DIR``."""

import functools
from collections.abc import Callable

import pytest

from allocator.server.system import loop_cache
from tests.cluster.mesos import Mesos, NotFoundError, find
from tests.cluster.quorum import Quorum, find_zookeeper
from tests.cluster.sidecar import INTERPRETED


def pytest_addoption(parser):
    parser.addoption("--mesos-root", help="Mesos: an install prefix or a build tree")
    parser.addoption("--mesos-module", help="our allocator module, built for that Mesos")


@pytest.fixture(scope="session")
def mesos(request) -> Mesos:
    """Mesos's programs and our module; without them the test is skipped."""
    options = request.config
    root = options.getoption("--mesos-root", default=None)
    module = options.getoption("--mesos-module", default=None)
    try:
        return find(root, module)
    except NotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def compiled_mesos(mesos) -> Mesos:
    """The same; skips a test whose time or memory limits hold only with compiled loops."""
    if loop_cache.is_off():
        pytest.skip(INTERPRETED)
    return mesos


@pytest.fixture
def quorum(mesos) -> Callable[..., Quorum]:
    """A function that starts three masters with a ZooKeeper; takes the options of `World`."""
    try:
        find_zookeeper()
    except NotFoundError as error:
        pytest.skip(str(error))
    return functools.partial(Quorum, mesos)
