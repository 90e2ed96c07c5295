"""All pages of the repository: short, in plain English, and correct where a test can check it.

This file checks the links of pages outside the site; `mkdocs build` checks the others.
"""

import doctest
import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from allocator.policies import POLICIES
from tests.cli.command_tree import LAB, commands, options
from tests.docs.prose import phrases, prose_of_page
from tests.test_tidy import tracked

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PICTURES = DOCS / "pictures"

README_LINES_MAX = 150
PICTURES_BYTES_MAX = 1_000_000
COLUMNS_MAX = 100

PAGES = sorted(ROOT / name for name in tracked() if name.endswith(".md"))
WRITTEN_BY_US = [
    page
    for page in PAGES
    if "`make docs` writes this file" not in page.read_text("utf-8")
    and "Written by `allocator-lab reproduce pages`" not in page.read_text("utf-8")
]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_the_readme_is_read_in_one_go():
    assert len(README.read_text("utf-8").splitlines()) <= README_LINES_MAX


def test_the_readme_has_its_pictures():
    text = README.read_text("utf-8")
    references = dict(re.findall(r"(?m)^\[(\w+)\]: (\S+)$", text))
    pictures = [references[name] for name in re.findall(r"!\[[^\]]*\]\[(\w+)\]", text)]
    assert {"architecture.svg", "status-page.png", "explain.svg", "comparison.png"} == {
        Path(picture).name for picture in pictures
    }


def test_the_readme_has_the_figures_of_its_picture():
    figures = json.loads((PICTURES / "comparison.json").read_text("utf-8"))
    text = " ".join(README.read_text("utf-8").split())
    assert f"finish {figures['ps-dsf']['earlier_percent']} % earlier" in text
    waits = [figures[policy]["wait_max_s"] for policy in ("drf", "ps-dsf")]
    assert f"grows from {waits[0]} to {waits[1]} s" in text


def test_pages_agree_on_how_long_the_demo_takes():
    first = DOCS / "tutorials" / "first-quarter-of-an-hour.md"
    for page in (README, first):
        text = " ".join(page.read_text("utf-8").split())
        assert "one to two minutes on two quiet cores, and up to six on busy ones" in text


def anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page."""
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text("utf-8"))
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


# `mkdocs build` checks the same for the pages of the site.
@pytest.mark.parametrize("page", [each for each in PAGES if DOCS not in each.parents], ids=name_of)
def test_links_outside_the_site_lead_somewhere(page: Path):
    text = re.sub(r"(?ms)^ *```.*?^ *```$|`[^`]*`", "", page.read_text("utf-8"))
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"(?m)^\[\w+\]: (\S+)$", text)
    for link in (each for each in links if not each.startswith("https://")):
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        assert target.is_file(), link
        assert not heading or heading in anchors(target), link


def test_pictures_are_small_and_load_nothing():
    found = [each for each in PICTURES.iterdir() if each.suffix in {".png", ".svg"}]
    assert sum(each.stat().st_size for each in found) <= PICTURES_BYTES_MAX
    for each in found:
        if each.suffix == ".svg":
            assert not re.search(r"url\(['\"]?http|href=['\"]http", each.read_text("utf-8")), each


@pytest.mark.parametrize("page", WRITTEN_BY_US, ids=name_of)
def test_a_page_begins_with_what_it_is_for(page: Path):
    title, first, *_ = re.split(r"\n\s*\n", page.read_text("utf-8").strip())
    assert title.startswith("# ")
    assert re.match(r"[A-Z]|mesos-allocator ", first), first
    assert len(first.split()) >= 10, first


@pytest.mark.parametrize("page", WRITTEN_BY_US, ids=name_of)
def test_a_page_has_none_of_the_phrases(page: Path):
    found = phrases(prose_of_page(page.read_text("utf-8")))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", WRITTEN_BY_US, ids=name_of)
def test_lines_fit_a_screen(page: Path):
    lines = page.read_text("utf-8").splitlines()
    # Rows of tables, commands and headings cannot be broken.
    free = re.compile(r" *(\||\$ |# [a-z]|##+ |    |\S+$)")
    long = [line for line in lines if len(line) > COLUMNS_MAX and not free.match(line)]
    assert not long, "\n".join(long)


@cache
def known() -> dict[tuple[str, ...], set[str]]:
    return {path: options(command) for path, command in commands()}


def typed() -> Iterator[tuple[str, str]]:
    """Commands in all pages, as an operator types them."""
    for page in WRITTEN_BY_US:
        text = page.read_text("utf-8")
        for line in re.findall(r"(?m)^ *[$#] (?:mesos-allocator |(?=allocator-lab ))(.*)$", text):
            yield name_of(page), line


def test_commands_of_the_pages_are_commands():
    found = list(typed())
    assert len(found) > 30
    for page, line in found:
        words = shlex.split(line, comments=True)
        paths = (tuple(words[:length]) for length in (3, 2, 1))
        path = next((each for each in paths if each in known()), None)
        assert path not in {None, (LAB,)}, (page, line)
        used = {word for word in words if word.startswith("--")}
        assert used <= known()[path] | {"--help"}, (page, line)


def test_worked_examples_are_what_the_policies_do():
    page = str(DOCS / "explanation" / "policies.md")
    done = doctest.testfile(page, module_relative=False)
    assert done.attempted > 8
    assert not done.failed


def test_the_table_of_policies_names_each():
    page = (DOCS / "explanation" / "policies.md").read_text("utf-8")
    first = re.findall(r"(?m)^\| (`.*?) \|", page)
    assert set(POLICIES) == {name for cell in first for name in re.findall(r"`([\w-]+)`", cell)}
