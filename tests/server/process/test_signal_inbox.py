"""No signal is lost, whenever it arrives."""

import signal
import subprocess
import sys

import pytest

from allocator.server.process.lifetime import SignalInbox


class Interrupted(SignalInbox):
    """A second SIGHUP arrives right after the check for one."""

    looked = 0

    @property
    def _to_reload(self) -> bool:
        value = self._kept
        self.looked += 1
        if self.looked == 1:
            self.take(signal.SIGHUP, None)
        return value

    @_to_reload.setter
    def _to_reload(self, value: bool) -> None:
        self._kept = value


def test_a_signal_between_two_steps_is_not_lost():
    told = Interrupted()
    assert told.wait(0) or told.wait(0)


def test_signals_are_delivered_once():
    told = SignalInbox()
    told.take(signal.SIGHUP, None)
    told.take(signal.SIGHUP, None)
    assert told.wait(0)
    assert not told.wait(0)


EVERYWHERE = """
import signal, sys
from allocator.server.process.lifetime import SignalInbox

told, came = SignalInbox(), 0

def come(frame, event, argument):
    global came
    if event == "line" and frame.f_code.co_name != "take":
        came += 1
        sys.settrace(None)
        told.take(signal.SIGTERM, None)
        sys.settrace(come)
    return come

sys.settrace(come)
told.wait(0.01)
sys.settrace(None)
print(came, told.to_end)
"""


def test_a_signal_may_come_between_any_two_lines():
    """The handler runs on the thread that waits, so it must not wait for locks of that thread."""
    done = subprocess.run(
        [sys.executable, "-c", EVERYWHERE], capture_output=True, text=True, timeout=60, check=True
    )
    came, ends = done.stdout.split()
    assert int(came) >= 2
    assert ends == "True"


ELSEWHERE = """
import signal, threading, time
from allocator.server.process.lifetime import LOOK_S, SignalInbox

told = SignalInbox()
signal.signal(signal.SIGHUP, told.take)

def send():
    time.sleep(0.2)
    signal.pthread_kill(threading.get_ident(), signal.SIGHUP)
    time.sleep(60)

threading.Thread(target=send, daemon=True).start()
while not told.wait(LOOK_S):
    pass
print("heard")
"""


@pytest.mark.long
def test_a_signal_that_another_thread_gets_is_heard():
    """The system may choose any thread, for example if the main one is handling another signal."""
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "heard\n"
