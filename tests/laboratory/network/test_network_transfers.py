"""Transfers over disks, cards and uplinks match the arithmetic, and conserve bytes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laboratory.network.topology import Distance, Topology, Transfers, even_racks
from laboratory.network.workflow import make_input
from tests.oracles import slow_rates

# Four computers in two racks. Disks of 1 GB/s, cards of 0.5, uplinks of 0.25.
FOUR = Topology(even_racks(4, 2), 1.0, 0.5, 0.25)


def play(*moves, topology=FOUR):
    """The end of each transfer: (start, source, target, GB)."""
    transfers, ends = Transfers(topology.capacity()), dict[int, float]()
    to_come = sorted(enumerate(moves), key=lambda each: each[1][0])
    while to_come or len(transfers):
        begin = to_come[0][1][0] if to_come else np.inf
        now = min(begin, transfers.next_end_s())
        for owner in transfers.advance(now):
            ends[owner] = now
        while to_come and to_come[0][1][0] <= now:
            owner, (_, source, target, gb) = to_come.pop(0)
            transfers.start(owner, topology.path(source, target), Distance.LOCAL, gb)
    return [ends[owner] for owner in range(len(moves))], transfers


def test_a_disk_a_card_and_an_uplink_take_what_arithmetic_says():
    # 2 GB at 1 GB/s from the own disk; at 0.5 within the rack; at 0.25 between racks.
    for target, seconds in ((0, 2.0), (1, 4.0), (2, 8.0)):
        assert play((0, 0, target, 2.0))[0] == [pytest.approx(seconds)]


def test_two_transfers_share_an_uplink_and_the_last_one_speeds_up():
    # Each at 0.125 until the shorter one, 1 GB, ends at 8 s; the other has 1 GB left, at 0.25.
    assert play((0, 0, 2, 1.0), (0, 1, 3, 2.0))[0] == [pytest.approx(8.0), pytest.approx(12.0)]


def test_a_later_transfer_slows_down_current_ones():
    # 2 GB at 0.25; at 4 s 1 GB is left, both at 0.125 until 12 s.
    assert play((0, 0, 2, 2.0), (4, 1, 3, 1.0))[0] == [pytest.approx(12.0), pytest.approx(12.0)]


def test_links_are_full_duplex():
    assert play((0, 0, 2, 1.0), (0, 2, 0, 1.0))[0] == [pytest.approx(4.0)] * 2


def test_a_core_switch_that_is_too_small_is_shared_by_all_racks():
    small = Topology(FOUR.rack_of, 1.0, 0.5, 0.25, core_gb_s=0.2)
    assert play((0, 0, 2, 1.0), (0, 2, 0, 1.0), topology=small)[0] == [pytest.approx(10.0)] * 2


def test_a_cancelled_transfer_has_moved_what_it_had_time_for():
    transfers = Transfers(FOUR.capacity())
    transfers.start(7, FOUR.path(0, 2), Distance.CORE, 2.0)
    transfers.start(8, FOUR.path(0, 0), Distance.LOCAL, 9.0)
    transfers.advance(4.0)
    transfers.cancel(7)
    assert len(transfers) == 1
    # 4 s at 0.25 beside 4 s at the 0.75 that the disk has left.
    assert transfers.moved_gb == pytest.approx([3.0, 0.0, 1.0])


moves = st.tuples(
    st.integers(0, 20),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(1, 40).map(lambda n: n / 8),
)


@given(st.lists(moves, min_size=1, max_size=12))
def test_all_that_is_started_is_moved_and_ends_when_the_slow_twin_says(drawn):
    ends, transfers = play(*drawn)
    assert transfers.moved_gb.sum() == pytest.approx(sum(gb for *_, gb in drawn))
    assert ends == pytest.approx(slow_ends(drawn), abs=1e-6)


def slow_ends(drawn):
    """The same with exact rates, from one change of rates to the next."""
    capacity = FOUR.capacity().tolist()
    finite = [1000 if np.isinf(each) else each for each in capacity]
    now, left, ends = 0.0, dict[int, float](), dict[int, float]()
    while len(ends) < len(drawn):
        for owner, (begin, *_, gb) in enumerate(drawn):
            if begin <= now and owner not in left and owner not in ends:
                left[owner] = gb
        owners = list(left)
        paths = [FOUR.path(drawn[owner][1], drawn[owner][2]) for owner in owners]
        rates = [float(each) for each in slow_rates(paths, finite).values()]
        begins = [begin for begin, *_ in drawn if begin > now]
        step = min(
            [begin - now for begin in begins]
            + [left[owner] / rate for owner, rate in zip(owners, rates, strict=True)]
        )
        now += step
        for owner, rate in zip(owners, rates, strict=True):
            left[owner] -= rate * step
            if left[owner] < 1e-9:
                ends[owner] = now
                del left[owner]
    return [ends[owner] for owner in range(len(drawn))]


def test_preferences_and_bounds_are_those_of_the_appendix():
    # 10 GB: 6 on computer 0, 3 on its neighbour, 1 in the other rack.
    read = make_input(FOUR, np.array([0, 1, 2]), np.array([6.0, 3.0, 1.0]))
    assert read.preferred_computers().tolist() == [0, 1]
    assert read.preferred_racks().tolist() == [0]
    assert read.crossing(0) == (3.0, 1.0)
    assert read.crossing(3) == (1.0, 9.0)
    assert read.worst_in_rack(0) == (6.0, 1.0)
    assert read.worst() == (1.0, 9.0)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), min_size=1), st.integers(0, 3))
def test_reads_bring_the_whole_input_from_as_far_as_the_costs_say(pieces, computer):
    at, gb = (np.array(column) for column in zip(*pieces, strict=True))
    read = make_input(FOUR, at, gb.astype(np.float64))
    moved = np.zeros(3)
    for _, distance, amount in read.reads(computer):
        moved[distance] += amount
    assert moved.sum() == pytest.approx(gb.sum())
    assert moved[1:] == pytest.approx(read.crossing(computer))
    worst = read.worst()
    assert sum(worst) >= 0
    assert moved[2] <= worst.core_gb + 1e-9
