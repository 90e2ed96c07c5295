"""What of a table a terminal has room for: columns that go, values that are cut, and prose.

A value is never broken over two lines. A number is never cut.
"""

from collections.abc import Mapping, Sequence

from rich.cells import cell_len

TEXT, NUMBER, PROSE, WHOLE = "", ">", "~", "="
"""A column's title may begin with one of these. Its cells are numbers; or sentences that may wrap
between words; or texts that are cut after all others."""

GAP = 2
"""Between two columns."""

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"

_WISHED = 20
"""A column of texts is not cut below this width while there is another one to leave out."""

_LEAST = 8

_PROSE_WISHED = 36
_PROSE_LEAST = 24
_WHOLE_WISHED = 40

_STEPS = (
    (PROSE, _PROSE_LEAST),
    ((TEXT,), _WISHED),
    (PROSE, _PROSE_LEAST // 2),
    ((TEXT,), _LEAST),
    (WHOLE, _LEAST),
    ((TEXT, PROSE, WHOLE), 1),
)
"""Which columns are made narrower, one kind after the other, and down to which width."""

_PARTS = ("; ", ", ", ";", ",")
"""What stands between the parts of a text: it is cut behind one of them where that is possible."""


def title_of(column: str) -> str:
    return column[len(kind_of(column)) :]


def fit(
    columns: Sequence[str], widths: Sequence[int], drop: Sequence[str], room: int
) -> Mapping[int, int]:
    """Choose columns and their widths.

    `widths`: of the widest cell of each, or of its title.
    `drop`: titles of columns that may be left out, the least important first.

    Examples
    --------
    >>> fit(["name", ">share", "state"], [30, 6, 8], ["state"], 80)
    {0: 30, 1: 6, 2: 8}
    >>> fit(["name", ">share", "state"], [30, 6, 8], ["state"], 36)
    {0: 28, 1: 6}
    """
    kept = dict(enumerate(widths))
    for title in drop:
        if _needed({place: min(_wished(columns[place]), w) for place, w in kept.items()}) <= room:
            break
        kept = {place: w for place, w in kept.items() if title_of(columns[place]) != title}
    for kinds, least in _STEPS:
        places = [place for place in kept if kind_of(columns[place]) in kinds]
        _narrow(kept, places, least, room)
    return kept


def kind_of(column: str) -> str:
    return column[:1] if column[:1] in {NUMBER, PROSE, WHOLE} else ""


def _wished(column: str) -> int:
    """How wide a column has to be, if its cells are as wide."""
    wished = {NUMBER: 1 << 20, PROSE: _PROSE_WISHED, WHOLE: _WHOLE_WISHED}
    return wished.get(kind_of(column), _WISHED)


def _needed(widths: Mapping[int, int]) -> int:
    return sum(widths.values()) + GAP * max(len(widths) - 1, 0)


def _narrow(kept: dict[int, int], places: Sequence[int], least: int, room: int) -> None:
    """Take the room that is missing from the widest of some columns."""
    while (missing := _needed(kept) - room) > 0:
        widest = max(places, key=lambda place: kept[place], default=None)
        if widest is None or kept[widest] <= least:
            return
        # Down to the next one at once: a name may be very long.
        others = [kept[place] for place in places if kept[place] < kept[widest]]
        step = max(kept[widest] - max(others, default=least), 1)
        kept[widest] = max(kept[widest] - min(step, missing), least)


def shortened(text: str, width: int) -> str:
    """Cut a text, between two of its parts where it has some.

    Examples
    --------
    >>> shortened("cpus:4;mem:16384;disk:9", 16)
    'cpus:4;\N{HORIZONTAL ELLIPSIS}'
    >>> shortened("a-long-name", 6)
    'a-lon\N{HORIZONTAL ELLIPSIS}'
    """
    if cell_len(text) <= width:
        return text
    cut = text[: width - 1]
    while cell_len(cut) > width - 1:  # of wide characters fewer have room
        cut = cut[:-1]
    # Where a part ends exactly here, the sign behind it stands beyond.
    ends = [cut.rfind(each) + len(each) for each in _PARTS if cut.rfind(each) > 0]
    return f"{cut[: max(ends, default=len(cut))]}{ELLIPSIS}"


def wrapping(text: str, width: int) -> str:
    """Cut the words of a sentence that are longer than a line.

    Examples
    --------
    >>> wrapping("on rack-07.example.com now", 10)
    'on rack-07.e… now'
    """
    return " ".join(shortened(word, width) for word in text.split(" "))


def joined(parts: Sequence[str], room: int) -> str:
    """Join as many parts as one line has room for; the first one is cut where it must be.

    Examples
    --------
    >>> joined(["drf", "2 of 2 agents", "master m"], 20)
    'drf, 2 of 2 agents'
    """
    told = ""
    for part in parts:
        longer = f"{told}, {part}" if told else shortened(part, room)
        if cell_len(longer) > room:
            break
        told = longer
    return told
