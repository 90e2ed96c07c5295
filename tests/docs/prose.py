"""The prose of the repository: pages, comments and messages, and phrases to avoid."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

PHRASES = {
    r"who(m|so|som)?ever": "the client, the caller, any framework that ...",
    r"why(so)?ever": "for whatever reason",
    r"(some|no|any|every)body('s)?": "name the actor: a framework, a client, an operator",
    r"(no|any|every) one (is|can|has|may)": "name the actor",
    r"who is there": "members, clients",
    r"those (who|whom)|of whom|to whom|for whom": "name the actor: clients that ...",
    r"so (many|much|long)(?! (as|that))": "at most N; the limit; the duration",
    r"(is|are|was|were|be) (told(?! apart)|borne)": "receives, is reported; is handled, withstands",
    r"(cannot|can|could not) be had": "is not available",
    r"of which (nothing|nobody|none)": "that yields no ...",
    r"what it takes": "requirements",
    r"strangers?('s?)?": "external input, untrusted input",
    r"the mend": "the fix",
    r"anew": "again, from scratch",
    r"in vain": "without effect",
    r"for ever": "forever, without end",
    r"is to (have|leave|get|be)": "should",
    r"shall": "must, should",
    r"comes? first once": "is served first, once",
    r"looks? on": "runs in shadow",
    r"it lasts": "the session continues",
    r"goes? on(?! (the|a|an|to)\b)": "continues",
}
"""Phrases that prose must not contain, each with what to write instead (CONTRIBUTING, Style)."""


class Piece(NamedTuple):
    """Some text, and the line where it begins."""

    line: int
    text: str


def phrases(text: str) -> list[str]:
    """Find phrases in a text: each with its surroundings and what to write instead."""
    plain = " ".join(re.sub(r"`[^`]*`", "NAME", text).split())
    return [
        f"...{plain[max(0, found.start() - 30) : found.end() + 30]}...: write {better!r}"
        for phrase, better in PHRASES.items()
        for found in re.finditer(rf"\b(?:{phrase})\b", plain, re.IGNORECASE)
    ]


def prose_of_page(text: str) -> str:
    """Drop code, link targets, and the names of tests after statements."""
    text = re.sub(r"(?ms)^ *```.*?^ *```$", "", text)
    text = re.sub(r"(?m)^(    (?! *[-*\d])|\[\w+\]: |<).*$", "", text)
    text = re.sub(r"\[held\s+by\s[^\]]*\]", "", text)
    text = re.sub(r"`[^`]*`", "NAME", text)
    return " ".join(re.sub(r"\]\([^)]*\)", "]", text).split())


def prose_of_python(source: str, *, messages: bool = True) -> Iterator[Piece]:
    """Yield docstrings, comments and, unless left out, other texts of more than one word."""
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = [each for each in nodes if messages or id(each) in docstrings]
    for each in texts:
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and " " in each.value:
            yield Piece(each.lineno, each.value)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [each for each in tokens if each.type == tokenize.COMMENT]
    yield from _joined([Piece(each.start[0], each.string.lstrip("#")) for each in comments])


def names_of_python(source: str) -> Iterator[Piece]:
    """Yield the names of functions and classes, as words."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield Piece(node.lineno, node.name.replace("_", " ").lstrip())


def prose_of_slashes(source: str) -> Iterator[Piece]:
    """Yield ``//`` comments, of C++ and protocol buffers."""
    lines = enumerate(source.splitlines(), 1)
    found = ((number, re.search(r"(?:^|\s)//(.*)", line)) for number, line in lines)
    yield from _joined([Piece(number, match[1]) for number, match in found if match])


def _joined(pieces: list[Piece]) -> Iterator[Piece]:
    """Join comments on consecutive lines."""
    for _, group in groupby(enumerate(pieces), lambda each: each[1].line - each[0]):
        block = [piece for _, piece in group]
        yield Piece(block[0].line, " ".join(piece.text for piece in block))
