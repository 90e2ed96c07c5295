"""Suggests known words close to a mistyped one."""

import difflib
import heapq
from collections.abc import Collection, Iterable
from itertools import islice

FEW = 200
"""Maximum number of words that are all compared; of more, only likely ones are."""

BESIDE = 32
"""Number of candidates on either side of the text, in each order."""

LONGEST = 128
"""Maximum length of a compared word: the cost grows with the product of both lengths."""


def suggestion(text: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return ``; did you mean 'x'?`` for the nearest known word, empty if none is near.

    >>> suggestion("ps-dfs", ["drf", "ps-dsf"])
    "; did you mean 'ps-dsf'?"
    >>> suggestion("PS_DSF", ["drf", "ps-dsf"]), suggestion("zebra", ["drf", "ps-dsf"])
    ("; did you mean 'ps-dsf'?", '')
    """
    near = nearest(text, known, cutoff)
    return f"; did you mean {near!r}?" if near else ""


def meant_resource(name: str, known: Collection[str]) -> str:
    """Do what `suggestion` does for a resource name, which may include a role, as printed by Mesos.

    >>> meant_resource("cpu", ["cpus", "mem"]), meant_resource("cpus(prod)", ["cpus", "mem"])
    ("; did you mean 'cpus'?", "; did you mean 'cpus'?")
    """
    plain = name.partition("(")[0].strip()
    return f"; did you mean {plain!r}?" if plain in known else suggestion(name, known)


def nearest(text: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the nearest known word; empty if none is near."""
    near = _close(text, _candidates(text, known), 1, cutoff)
    return near[0] if near else ""


def _close(text: str, words: list[str], most: int, cutoff: float = 0.6) -> list[str]:
    """Return near words, ignoring case."""
    lower = {each.lower(): each for each in words}
    close = difflib.get_close_matches(text.lower(), list(lower), n=most, cutoff=cutoff)
    return [lower[each] for each in close]


def _candidates(text: str, known: Iterable[str]) -> list[str]:
    """Choose words that may be near, because comparing all names of a large cluster takes too long.

    Of many words, take the neighbours of the text in alphabetical order, those in the order of
    reversed words (a mistyped name usually keeps its beginning or its end), and those that contain
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
    """Suggest several near words, including some that start with or contain the text.

    >>> suggestions("spark-1", ["spark-17", "kafka", "spark-11"])
    "; did you mean 'spark-11' or 'spark-17'?"
    """
    words = _candidates(text, known)
    near = _close(text, words, most)
    near += [word for word in words if text and text.lower() in word.lower()]
    chosen = sorted(dict.fromkeys(near))[:most] if near else []
    return f"; did you mean {' or '.join(map(repr, chosen))}?" if chosen else ""
