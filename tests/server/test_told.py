"""No signal is lost, whenever it comes."""

import signal

from allocator.server.main import Told


class Interrupted(Told):
    """A second SIGHUP comes right after somebody has looked whether there was one."""

    looked = 0

    @property
    def _to_reload(self) -> bool:
        value = self._kept
        self.looked += 1
        if self.looked == 1:
            self.tell(signal.SIGHUP, None)
        return value

    @_to_reload.setter
    def _to_reload(self, value: bool) -> None:
        self._kept = value


def test_a_signal_between_two_steps_is_not_lost():
    told = Interrupted()
    assert told.wait(0) or told.wait(0)


def test_signals_are_told_once():
    told = Told()
    told.tell(signal.SIGHUP, None)
    told.tell(signal.SIGHUP, None)
    assert told.wait(0)
    assert not told.wait(0)
