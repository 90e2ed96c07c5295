"""The sidecar starts only if it can write the configured journal."""

from pathlib import Path

import pytest

from allocator.server.system.disk import is_full, reason
from tests.server.sidecar_process import SidecarProcess


def test_a_journal_that_cannot_be_opened_is_an_error(tmp_path):
    path = f"{tmp_path}/missing/journal"
    process = SidecarProcess(f"journal.path={path}", "state.directory=-")
    assert process.process.wait(120) == 1
    process.__exit__()
    (said,) = process.said("cannot start")
    assert f"journal {path} cannot be written (No such file or directory)" in said["error"]
    assert "set journal.path to a file that can be" in said["error"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_a_full_disk_is_named():
    with pytest.raises(OSError) as raised, Path("/dev/full").open("wb", buffering=0) as full:
        full.write(b"x")
    assert reason(raised.value) == "the disk is full"
    assert is_full(raised.value)
