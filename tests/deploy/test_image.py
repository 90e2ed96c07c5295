"""The sidecar's image, built and run by a container engine: unprivileged, with durable state."""

import json

import pytest

from tests.deploy.containers import Container, until

OTHER_USER = "12345"
"""A user that the image does not know."""
STOPPED_WITHIN_S = "20"
SOCKET = "/run/mesos-allocator/allocator.sock"

pytestmark = pytest.mark.long


@pytest.mark.parametrize("user", ["mesos-allocator", OTHER_USER])
def test_locked_down_it_is_healthy_ends_in_time_and_keeps_its_state(engine, image, user):
    with engine.volume() as socket, engine.volume() as state:
        locked_down = ["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"]
        kept = [f"{socket}:/run/mesos-allocator", f"{state}:/var/lib/mesos-allocator/state"]
        volumes = [f"--volume={each}" for each in kept]
        with engine.running(image, *locked_down, f"--user={user}", *volumes) as sidecar:
            sidecar.until_healthy()
            assert sidecar.exec("id", "-u") == (OTHER_USER if user == OTHER_USER else "5056")
            sidecar.exec("mesos-allocator", "policy", "set", "tsf")

            sidecar.do("stop", "--time", STOPPED_WITHIN_S)
            assert sidecar.state("ExitCode") == "0", "killed, or it failed"

            sidecar.do("start")
            sidecar.until_healthy()
            until(lambda: status(sidecar)["loops_state"] == "compiled", sidecar.log)
            assert status(sidecar)["policy"]["name"] == "tsf"
            assert compiled_since_start(sidecar) == [], "the image has them"
            sidecar.exec("mesos-allocator", "status", "--target", f"unix:{SOCKET}")


def status(sidecar: Container) -> dict:
    return json.loads(sidecar.exec("mesos-allocator", "status", "--json"))


def compiled_since_start(sidecar: Container) -> list[str]:
    """Files of loops compiled since the start; the socket is created before any compilation."""
    places = ("/tmp", "/dev/shm", "/var/lib/mesos-allocator")
    return sidecar.exec("find", *places, "-name", "*.nb[ci]", "-newer", SOCKET).split()
