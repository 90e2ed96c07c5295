"""Determines for many clients at once, as bits, whether amounts on an agent are enough for them.

A client needs one task or, if its demand is unknown, anything that reaches a row of its minimum. A
client whose task is below its minimum needs several tasks. There are many clients, one per role of
each framework.
"""

from typing import NamedTuple

import numpy as np

from allocator.core.numba.compiled import part
from allocator.core.openings import opening_tasks, opens_with_several
from allocator.core.snapshot import BitWords, Bools, Ints

_STEPS_MAX = 128
"""Maximum number of steps per scale, without the steps for amounts that many clients need."""
_STEP_WORDS_MAX = 2**22
"""Maximum number of words of all scales together: 32 MiB."""
_looking = part(_nrt=False)
"""Compiles a part that makes no arrays, without counting references to its arguments."""
TASKS, ALL = 0, 1
"""Row indices of available amounts: amounts that tasks can use, and all amounts."""
OPEN, REVOCABLE, SHARED, RESERVED, BESIDE = 2, 3, 4, 5, 6
"""Further row indices, for clients whose offers must hold several tasks. In this order: amounts
neither revocable nor shared (including reserved ones); revocable; shared, which tasks do not use
up; reserved; those that an offer contains in any case."""
ROWS = 7


class Needs(NamedTuple):
    """The needs of clients: an amount is enough if it reaches a client's row in every column.

    `row` (N, R), in thousandths.
    `first`, `end` (C,): the range of each client's rows; at least one row.
    `known` (C,): whether the row is one task. If not, any non-empty amount that reaches a row is
        enough.
    `several` (C,): whether several tasks, together with the rest of the offer, must reach the row;
        no such row is less than a task.
    `demand` (C, R), in thousandths: the size of one task.
    """

    row: Ints
    first: Ints
    end: Ints
    known: Bools
    several: Bools
    demand: Ints


class ThresholdIndex(NamedTuple):
    """Clients sorted by needs, so that one look-up finds the clients that an amount may serve.

    Layer 0 has the first row of each client, layer 1 the second row, and so on. A layer has a
    *scale* for each column that some client needs: a sorted list of steps. A client is on the
    highest step whose amount is not more than its need.

    `scale_of_layer` (L + 1,): index of the first scale of each layer, and the number of scales.
    `column` (D,): the column of each scale.
    `step_of_scale` (D + 1,): index of the first step of each scale, and the number of steps.
    `least` (S,), in thousandths: the smallest need of the clients on a step; ascending in a scale.
    `upto` (S, W): bits of the clients on this step of the scale or a lower one.
    `members` (L, W): bits of the clients with a row in the layer.
    `known` (W,): bits of the clients that need a task.
    """

    scale_of_layer: Ints
    column: Ints
    step_of_scale: Ints
    least: Ints
    upto: BitWords
    members: BitWords
    known: BitWords


def needs_of(known: Bools, demand: Ints, minimum: Ints, minimum_rows: Ints) -> Needs:
    """Collect the needs of all clients; `known` (C,): those that are served in whole tasks."""
    anything = np.zeros((1, demand.shape[1]), np.int64)
    first, end = 1 + minimum_rows.T
    free_choice = first == end
    first, end = np.where(free_choice, 0, first), np.where(free_choice, 1, end)
    task = 1 + len(minimum) + np.arange(len(demand))
    several = opens_with_several(known, opening_tasks(demand, minimum, minimum_rows))
    rows = [anything, minimum, demand]
    single = known & ~several
    first, end = np.where(single, task, first), np.where(single, task + 1, end)
    if several.any():
        rows.append(_both(rows, first, end, np.flatnonzero(several), demand))
    return Needs(
        row=np.concatenate(rows), first=first, end=end, known=single, several=several, demand=demand
    )


def _both(rows: list[Ints], first: Ints, end: Ints, clients: Ints, demand: Ints) -> Ints:
    """Add rows with the larger of minimum and task, and set each client's range of rows to them.

    Clients with the same task and the same minimum share rows.
    """
    table, made = np.concatenate(rows), []
    place: dict[tuple[int, int, bytes], int] = {}
    count = len(table)
    for client in clients.tolist():
        begin, stop = int(first[client]), int(end[client])
        key = begin, stop, demand[client].tobytes()
        if key not in place:
            place[key] = count
            made.append(np.maximum(table[begin:stop], demand[client]))
            count += stop - begin
        first[client], end[client] = place[key], place[key] + stop - begin
    return np.concatenate(made)


@part()
def suffices(needs: Needs, client: int, amount: Ints) -> bool:
    """Return whether amounts (2, R), rows `TASKS` and `ALL`, are enough for a client.

    For clients of `Needs.several`, `opens` must be True as well.
    """
    have = amount[TASKS] if needs.known[client] else amount[ALL]
    some = False
    for r in range(len(have)):
        some |= have[r] > 0
    if not some:
        return False  # an empty amount is not an offer
    for row in range(needs.first[client], needs.end[client]):
        enough = True
        for r in range(len(have)):
            enough &= have[r] >= needs.row[row, r]
        if enough:
            return True
    return False


@part()
def opens(needs: Needs, client: int, amount: Ints, tasks: int) -> bool:
    """Return whether amounts (ROWS, R) are enough for an offer to a client of `Needs.several`.

    They are if all tasks that fit, at most `tasks`, reach a row together with the rest of the
    offer. If resources are indivisible, the answer may be True in error.
    """
    columns = amount.shape[1]
    for r in range(columns):
        one = needs.demand[client, r]
        if one > 0 and amount[SHARED, r] < one:
            tasks = min(tasks, amount[OPEN, r] // one + amount[REVOCABLE, r] // one)
    if tasks == 0:
        return False
    for row in range(needs.first[client], needs.end[client]):
        enough = True
        for r in range(columns):
            one, have = needs.demand[client, r], amount[BESIDE, r]
            if one > 0:
                used = min(tasks, amount[OPEN, r] // one) * one
                have = min(amount[ALL, r], have + max(used - amount[RESERVED, r], 0))
            enough &= have >= needs.row[row, r]
        if enough:
            return True
    return False


def threshold_index(needs: Needs, clients: Ints, words: Ints) -> ThresholdIndex:
    """Sort clients (n,) into scales; `words` (W,): indices of the words that contain their bits."""
    word, bit = np.searchsorted(words, clients >> 6), _bit(clients)
    rows = (needs.end - needs.first)[clients]
    layers = [np.flatnonzero(rows > layer) for layer in range(int(rows.max(initial=0)))]
    table = [needs.row[needs.first[clients[has]] + each] for each, has in enumerate(layers)]
    columns = [np.flatnonzero(each.any(axis=0)) for each in table]
    thresholds = [(layer, column) for layer, its in enumerate(columns) for column in its.tolist()]
    few = _STEP_WORDS_MAX // max(len(words) * len(thresholds), 1)
    none = np.empty((0, len(words)), np.uint64)
    least, upto = [np.empty(0, np.int64)], [none]
    for layer, column in thresholds:
        has, wanted = layers[layer], table[layer][:, column]
        steps = _steps(wanted, min(max(few, 2), _STEPS_MAX))
        on = np.searchsorted(steps, wanted, "right") - 1
        least.append(steps)
        here = _bits(on, word[has], bit[has], (len(steps), len(words)))
        upto.append(np.bitwise_or.accumulate(here, axis=0))
    members = [none, *(_bits(0, word[has], bit[has], (1, len(words))) for has in layers)]
    known = needs.known[clients]
    return ThresholdIndex(
        scale_of_layer=np.cumsum([0, *map(len, columns)]),
        column=np.array([column for _, column in thresholds], np.int64),
        step_of_scale=np.cumsum([0, *map(len, least[1:])]),
        least=np.concatenate(least),
        upto=np.concatenate(upto),
        members=np.concatenate(members),
        known=_bits(0, word[known], bit[known], (1, len(words)))[0],
    )


def _bit(clients: Ints) -> BitWords:
    bits: BitWords = np.uint64(1) << (clients & 63).astype(np.uint64)
    return bits


def _bits(row: Ints | int, word: Ints, bit: BitWords, shape: tuple[int, int]) -> BitWords:
    table = np.zeros(shape, np.uint64)
    np.bitwise_or.at(table.reshape(-1), row * shape[1] + word, bit)
    return table


def _steps(wanted: Ints, count: int) -> Ints:
    """Return the amounts at which the steps of a scale begin, for needs (n,), n > 0.

    The steps are chosen so that few clients are on each.
    """
    ordered = np.sort(wanted)
    picked = ordered[:: -(-len(ordered) // count)]
    # An amount that many clients need gets a step of its own.
    common = picked[1:][picked[1:] == picked[:-1]]
    after = np.searchsorted(ordered, common, "right")
    return np.unique(np.concatenate([picked, ordered[after[after < len(ordered)]]]))


@_looking
def lowest_bit(word: np.uint64) -> int:
    """Return the index of the lowest bit that is set; at least one must be."""
    place = 0
    for half in (32, 16, 8, 4, 2, 1):
        below = (np.uint64(1) << np.uint64(half)) - np.uint64(1)
        if word & below == np.uint64(0):
            word >>= np.uint64(half)
            place += half
    return place


@_looking
def _highest_step(thresholds: ThresholdIndex, scale: int, have: int) -> int:
    """Return the highest step of a scale that an amount reaches; -1: none."""
    first = thresholds.step_of_scale[scale]
    begin, end = first, thresholds.step_of_scale[scale + 1]
    while begin < end:
        middle = (begin + end) // 2
        if thresholds.least[middle] <= have:
            begin = middle + 1
        else:
            end = middle
    return begin - 1 if begin > first else -1


@_looking
def steps_reached(thresholds: ThresholdIndex, amount: Ints, at: Ints) -> bool:
    """Find the highest step on each scale that amounts (2, R) reach, into `at` (2, D); -1: none.

    Returns whether the amounts may be enough for any client.
    """
    some = False
    for each in range(2):
        for layer in range(len(thresholds.members)):
            reached = True
            for d in range(thresholds.scale_of_layer[layer], thresholds.scale_of_layer[layer + 1]):
                at[each, d] = _highest_step(thresholds, d, amount[each, thresholds.column[d]])
                reached &= at[each, d] >= 0
            some |= reached
    return some


@_looking
def could_do(thresholds: ThresholdIndex, at: Ints, word: int, bits: np.uint64) -> np.uint64:
    """Return the clients (bits of a word) for which amounts that reach these steps may be enough.

    The result is an upper bound: a client on the highest step may need slightly more.
    """
    found = np.uint64(0)
    for each in range(2):
        left = bits & (thresholds.known[word] if each == TASKS else ~thresholds.known[word])
        if left == np.uint64(0):
            continue
        for layer in range(len(thresholds.members)):
            those = left & thresholds.members[layer, word]
            for d in range(thresholds.scale_of_layer[layer], thresholds.scale_of_layer[layer + 1]):
                if at[each, d] < 0:
                    those = np.uint64(0)
                if those == np.uint64(0):
                    break
                those &= thresholds.upto[at[each, d], word]
            found |= those
    return found
