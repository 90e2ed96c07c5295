"""Suggest known words close to a mistyped one."""

import difflib
import heapq
from collections.abc import Collection, Iterable
from itertools import islice

FEW = 200
"""Up to this many words, all are compared; beyond it, only likely ones."""

BESIDE = 32
"""Candidates taken on either side of the text, in each order."""

LONGEST = 128
"""Longest word compared, in characters: the cost grows with the product of both lengths."""


def suggestion(text: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """``; did you mean 'x'?`` for the nearest known word, empty if none is near.

    Examples
    --------
    >>> suggestion("ps-dfs", ["drf", "ps-dsf"])
    "; did you mean 'ps-dsf'?"
    >>> suggestion("PS_DSF", ["drf", "ps-dsf"]), suggestion("zebra", ["drf", "ps-dsf"])
    ("; did you mean 'ps-dsf'?", '')
    """
    near = nearest(text, known, cutoff)
    return f"; did you mean {near!r}?" if near else ""


def meant_resource(name: str, known: Collection[str]) -> str:
    """`suggestion` for a resource name, which may carry a role, as Mesos prints it.

    Examples
    --------
    >>> meant_resource("cpu", ["cpus", "mem"]), meant_resource("cpus(prod)", ["cpus", "mem"])
    ("; did you mean 'cpus'?", "; did you mean 'cpus'?")
    """
    plain = name.partition("(")[0].strip()
    return f"; did you mean {plain!r}?" if plain in known else suggestion(name, known)


def nearest(text: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The nearest known word; empty if none is near."""
    near = _close(text, _candidates(text, known), 1, cutoff)
    return near[0] if near else ""


def _close(text: str, words: list[str], most: int, cutoff: float = 0.6) -> list[str]:
    """Near words, ignoring case."""
    lower = {each.lower(): each for each in words}
    close = difflib.get_close_matches(text.lower(), list(lower), n=most, cutoff=cutoff)
    return [lower[each] for each in close]


def _candidates(text: str, known: Iterable[str]) -> list[str]:
    """Choose a few words that may be near; comparing all names of a large cluster takes too long.

    Of many words, take the neighbours of the text in alphabetical order, those in the order of
    words reversed (a mistyped name usually keeps its beginning or its end), and those that contain
    the text.
    """
    if len(text) > LONGEST:
        return []
    words = [each for each in set(known) if each and len(each) <= LONGEST]
    if len(words) <= FEW:
        return sorted(words)
    back, lower = text[::-1], text.lower()
    found = heapq.nlargest(BESIDE, (each for each in words if each <= text))
    found += heapq.nsmallest(BESIDE, (each for each in words if each > text))
    turned = [each[::-1] for each in words]
    beside = heapq.nlargest(BESIDE, (each for each in turned if each <= back))
    beside += heapq.nsmallest(BESIDE, (each for each in turned if each > back))
    found += (each[::-1] for each in beside)
    found += islice((each for each in words if lower in each.lower()), BESIDE)
    return sorted(set(found))


def suggestions(text: str, known: Iterable[str], most: int = 3) -> str:
    """Like `suggestion`, with several near words; these may also start with or contain the text.

    Examples
    --------
    >>> suggestions("spark-1", ["spark-17", "kafka", "spark-11"])
    "; did you mean 'spark-11' or 'spark-17'?"
    """
    words = _candidates(text, known)
    near = _close(text, words, most)
    near += [word for word in words if text and text.lower() in word.lower()]
    chosen = sorted(dict.fromkeys(near))[:most] if near else []
    return f"; did you mean {' or '.join(map(repr, chosen))}?" if chosen else ""
