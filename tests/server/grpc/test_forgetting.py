"""`ForgetUsage` resets averages of use through the channel, and is audited."""

import structlog

from allocator.core import Settings
from allocator.server.engine.core_loop import CoreLoop
from allocator.v1 import admin_pb2 as pb
from tests.server.grpc.test_admin import CLUSTER, refusal
from tests.server.in_process import module_of, tell

HALF_LIFE_MS = 3_600_000


def with_averages(loop: CoreLoop) -> None:
    """Let both frameworks of the cluster hold something for a half-life."""

    def change() -> None:
        settings: Settings = loop.allocator.settings.copied()
        settings.half_life_ms = HALF_LIFE_MS
        loop.step(settings)

    loop.call(change).result(10)
    tell(loop, *CLUSTER)
    module = module_of(loop)
    module.batch(module.clock_ms + HALF_LIFE_MS, cycle=False)


def used(loop: CoreLoop) -> dict[str, int]:
    """Average CPUs by role, in thousandths."""

    def read() -> dict[str, int]:
        state, found = loop.allocator.state, loop.allocator.used()
        assert found is not None
        roles = [state.roles.path[role] for role in state.clients.role.tolist()]
        return dict(zip(roles, found[:, 0].tolist(), strict=True))

    return loop.call(read).result(10)


def test_averages_of_a_role_are_reset_and_others_stay(loop, stub):
    with_averages(loop)
    before = used(loop)
    assert min(before["eng/ads"], before["ops"]) > 1000
    with structlog.testing.capture_logs() as log:
        change = stub.ForgetUsage(pb.ForgetUsageRequest(role="eng")).change
    assert used(loop) == {**before, "eng/ads": 0}
    assert change.lasts_not.startswith("no state directory is configured")
    (line,) = (each for each in log if each["event"] == "setting")
    assert (line["setting"], line["scope"], line["result"]) == ("usage", "role eng", "done")


def test_averages_of_a_framework_are_reset(loop, stub):
    with_averages(loop)
    before = used(loop)
    stub.ForgetUsage(pb.ForgetUsageRequest(framework_id="id-2"))
    assert used(loop) == {**before, "ops": 0}


def test_mistakes_are_named(loop, stub):
    request = pb.ForgetUsageRequest(role="egn")
    assert refusal(stub.ForgetUsage, request).startswith("half_life_s: no averages are kept")
    with_averages(loop)
    text = "role: 'egn' has no past use; check its spelling"
    assert refusal(stub.ForgetUsage, request) == text
