"""Comments, docstrings and messages of all sources are in plain English, as the pages are.

Pages are also checked by proselint (https://github.com/amperser/proselint).
"""

import re
from itertools import chain
from pathlib import Path

import pytest
from proselint.checks import __register__ as checks
from proselint.config import DEFAULT
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

from tests.docs.prose import (
    names_of_python,
    phrases,
    prose_of_page,
    prose_of_python,
    prose_of_slashes,
)
from tests.docs.test_pages import PAGES, name_of
from tests.test_tidy import tracked

ROOT = Path(__file__).resolve().parents[2]

CheckRegistry().register_many(checks)

SUFFIXES = (".py", ".cpp", ".hpp", ".proto")

WRITTEN_BY_US = (
    "allocator",
    "deploy",
    "examples",
    "laboratory",
    "mesos-module",
    "proto",
    "tests",
    "tools",
)


NAMES_TOO = ("laboratory", "tests", "tools")
"""Where names of functions and classes are in plain English, too: those of tests are read."""

PROSELINT = {
    # These take "32,768 amounts" for a time, and Mesos's "Allocatable" for a mistake.
    "dates_times.am_pm": False,
    "spelling.able_atable": False,
    **DEFAULT["checks"],
    # It misreads "for everything"; our phrases have the one of these that occurs.
    "archaism": False,
    # Pages are ASCII: straight quotes, three dots, an x for times, !!! before a note.
    "typography": False,
}
"""Checks of proselint, the most specific first: its defaults without those that misfire here."""


def found_in(path: Path) -> list[str]:
    """List phrases in a file, each with its place."""
    source, name = path.read_text("utf-8"), path.relative_to(ROOT)
    if path.suffix == ".py":
        # Texts in tests are data: names of roles, or what a hostile client sends.
        pieces = prose_of_python(source, messages=name.parts[0] != "tests")
        pieces = chain(pieces, names_of_python(source) if name.parts[0] in NAMES_TOO else ())
    else:
        pieces = prose_of_slashes(source)
    return [f"{name}:{each.line}: {found}" for each in pieces for found in phrases(each.text)]


@pytest.mark.parametrize("directory", WRITTEN_BY_US)
def test_sources_have_none_of_the_phrases(directory: str):
    names = [name for name in tracked() if name.startswith(f"{directory}/") and "_pb2" not in name]
    paths = [ROOT / name for name in names if Path(name).suffix in SUFFIXES]
    assert paths
    found = [line for path in paths for line in found_in(path)]
    assert not found, "\n".join(found)


def test_phrases_are_found_in_comments_docstrings_and_messages_of_python():
    source = '''
"""Tell everybody."""
def wait():
    # Wait here, for nobody
    # else may.
    raise ValueError(f"{wait} in vain: nobody's fault")
'''
    found = [each for piece in prose_of_python(source) for each in phrases(piece.text)]
    words = ("everybody", "nobody else may", "in vain", "nobody's fault")
    assert len(found) == len(words)
    assert all(any(word in each for each in found) for word in words)


def test_phrases_are_found_in_names_of_python():
    (name,) = names_of_python("def test_nobody_waits_in_vain(): pass")
    assert len(phrases(name.text)) == 2


def test_phrases_are_found_in_comments_of_cpp():
    source = '// Asks whoever\n// is there.\nint a;  // in vain\nconst char* b = "http://anew";\n'
    found = [each for piece in prose_of_slashes(source) for each in phrases(piece.text)]
    assert ["whoever is there" in found[0], "in vain" in found[1]] == [True, True]
    assert len(found) == 2


def test_names_in_backticks_are_no_prose():
    assert not phrases("Returns `NOBODY` if no agent is left; ``in vain`` is a name, too.")


def linted(page: str) -> list[str]:
    """Findings of proselint in the prose of a page, without headings, code and links."""
    text = prose_of_page(re.sub(r"(?m)^#+ .*$", "", page))
    found = LintFile("page", text).lint({"max_errors": 100, "checks": PROSELINT})
    # Its offsets include a line break that it adds before the text.
    whats = [f"\n{text}"[slice(*each.check_result.span)].strip() for each in found]
    results = zip(whats, (each.check_result for each in found), strict=True)
    return [f"{what}: {each.message}" for what, each in results if "NAME" not in what]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_proselint_finds_nothing_in_a_page(page: Path):
    found = linted(page.read_text("utf-8"))
    assert not found, "\n".join(found)


def test_proselint_finds_what_is_wrong():
    found = linted("# Title\n\nAn agent is is very unique. `is` `is` a name.\n")
    assert {each.split(":")[0] for each in found} == {"is is", "very", "very unique"}
