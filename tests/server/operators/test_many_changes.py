"""Thousands of changes at once: the cost is linear in their number."""

import pytest

from allocator import policies
from allocator.core.settings import Settings
from allocator.server.config import Config
from allocator.server.engine.core_loop import CoreLoop
from allocator.v1 import admin_pb2 as pb
from tests.server.grpc.test_admin import CLUSTER
from tests.server.in_process import asking, running, tell


@pytest.fixture
def stub():
    with running(CoreLoop(Config(), build_policy=policies.build)) as loop:
        tell(loop, *CLUSTER)
        with asking(loop) as asked:
            yield asked


def limits(count: int) -> pb.ApplySettingsRequest:
    """Request a limit for each of several roles."""
    request = pb.ApplySettingsRequest()
    for number in range(count):
        limit = request.changes.add().change.limit
        limit.role = f"role-{number}"
        limit.limit.name.append("cpus")
        limit.limit.amount.append(1000)
    return request


@pytest.mark.parametrize("dry_run", [True, False])
def test_the_settings_are_copied_no_more_often_for_many_changes(stub, monkeypatch, dry_run):
    copies: list[Settings] = []
    copied = Settings.copied

    def counted(self: Settings) -> Settings:
        copies.append(self)
        return copied(self)

    monkeypatch.setattr(Settings, "copied", counted)

    def apply(count: int) -> int:
        copies.clear()
        request = limits(count)
        request.dry_run = dry_run
        answer = stub.ApplySettings(request, timeout=60)
        stub.ResetSettings(pb.ResetSettingsRequest(), timeout=60)
        assert len(answer.changes) == count
        return len(copies)

    assert apply(200) <= apply(5)
