"""A sidecar is upgraded under load, as docs/how-to/roll-out.md says, while offers continue.

The module's brain is in session with the old process and then with the new one, which uses the same
socket and state directory. Offers are counted by intervals of the module's own clock, which never
waits for a sidecar, so the load of the machine makes no difference.
"""

import json
import signal

import pytest

from tests.integration.operators.test_lasting_settings import ask, command, settings
from tests.integration.sessions.live_brain import LiveBrain
from tests.server.sidecar_process import SidecarProcess
from tests.tiers import long

SETTINGS = (
    ("policy", "set", "tsf", "--mode", "characterised"),
    ("demand", "set", "cpus:1;mem:1024", "--role", "eng"),
    ("constraint", "set", "zone=a", "--role", "nobody", "--force"),
)


@pytest.mark.parametrize("end", [signal.SIGTERM, *long(signal.SIGKILL)])
def test_a_sidecar_is_upgraded_under_load_with_no_gap_in_offers(tmp_path, brain_library, end):
    target = f"unix:{tmp_path}/sidecar.sock"

    def started() -> SidecarProcess:
        flags = f"state.directory={tmp_path}/state", f"journal.path={tmp_path}/journal/journal"
        return SidecarProcess(*flags, listen=[target])

    (tmp_path / "state").mkdir()
    (tmp_path / "journal").mkdir()
    with LiveBrain(brain_library, target) as module:
        with started() as old:
            module.await_served(5)
            for words in SETTINGS:
                assert ask(old, *words)["change"]["lasts"]
            before = settings(old)
            module.await_served(5)
            old.process.send_signal(end)
            module.until(lambda: not old.alive)
            assert old.process.returncode == (0 if end == signal.SIGTERM else -end)
        # Without a sidecar the module decides by itself.
        module.await_alone(3)
        new = started()
        module.until(lambda: bool(new.said("ready")) or not new.alive)
        with new:
            module.await_served(5)
            assert settings(new) == before
            assert len(module.offered_ms) > 100
            assert module.empty_intervals() == []
            module.settle()
            dump = command(new, "dump")
            module.audit_with(json.loads(dump.stdout))
            assert new.terminate() == 0
    again = command(new, "replay", str(tmp_path / "journal"))
    assert again.returncode == 0, again.stderr
    assert "all as recorded" in again.stdout
