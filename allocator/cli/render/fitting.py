"""Fits a table to a terminal: omits columns, cuts texts (never numbers), wraps sentences."""

from collections.abc import Mapping, Sequence

from rich.cells import cell_len

TEXT, NUMBER, PROSE, WHOLE = "", ">", "~", "="
"""First character of a column's title, which says what its cells are: numbers (`>`), sentences that
may wrap between words (`~`), texts that are cut after all others (`=`), or other texts."""

GAP = 2

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"

_WISHED = 20
"""Width below which a text column is not cut while another column can be omitted."""

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
"""The order in which kinds of columns are made narrower, and the minimum width in each step."""

_PARTS = ("; ", ", ", ";", ",")
"""Separators between the parts of a text, after which it is cut if possible."""


def title_of(column: str) -> str:
    return column[len(kind_of(column)) :]


def fit(
    columns: Sequence[str], widths: Sequence[int], drop: Sequence[str], room: int
) -> Mapping[int, int]:
    """Choose columns and their widths: a mapping of a column's index to its width.

    `widths`: of each column's widest cell or title.
    `drop`: titles of columns that may be omitted, the least important first.
    `room`: width of the table in characters.

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
    """Width up to which a column's cells should be shown in full."""
    wished = {NUMBER: 1 << 20, PROSE: _PROSE_WISHED, WHOLE: _WHOLE_WISHED}
    return wished.get(kind_of(column), _WISHED)


def _needed(widths: Mapping[int, int]) -> int:
    return sum(widths.values()) + GAP * max(len(widths) - 1, 0)


def _narrow(kept: dict[int, int], places: Sequence[int], least: int, room: int) -> None:
    """Narrow the widest of these columns, repeatedly, until the table fits into `room`."""
    while (missing := _needed(kept) - room) > 0:
        widest = max(places, key=lambda place: kept[place], default=None)
        if widest is None or kept[widest] <= least:
            return
        # Narrow to the next smaller width at once, because names can be very long.
        others = [kept[place] for place in places if kept[place] < kept[widest]]
        step = max(kept[widest] - max(others, default=least), 1)
        kept[widest] = max(kept[widest] - min(step, missing), least)


def shortened(text: str, width: int) -> str:
    """Cut a text to a width, after one of its parts if possible.

    >>> shortened("cpus:4;mem:16384;disk:9", 16)
    'cpus:4;\N{HORIZONTAL ELLIPSIS}'
    >>> shortened("a-long-name", 6)
    'a-lon\N{HORIZONTAL ELLIPSIS}'
    """
    if cell_len(text) <= width:
        return text
    cut = text[: width - 1]
    while cell_len(cut) > width - 1:  # wide characters take two columns
        cut = cut[:-1]
    # End after the last separator, if there is one.
    ends = [cut.rfind(each) + len(each) for each in _PARTS if cut.rfind(each) > 0]
    return f"{cut[: max(ends, default=len(cut))]}{ELLIPSIS}"


def wrapping(text: str, width: int) -> str:
    """Cut those words of a sentence that are longer than a line.

    >>> wrapping("on rack-07.example.com now", 10)
    'on rack-07.e… now'
    """
    return " ".join(shortened(word, width) for word in text.split(" "))


def joined(parts: Sequence[str], room: int) -> str:
    """Join as many parts as fit on one line; cut the first one if necessary.

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
