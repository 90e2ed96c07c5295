"""The site: published pages, their names, and their links."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from allocator import __version__
from allocator.server.metrics.scraping import FAMILIES
from tests.docs.docs_scripts import load

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SETTINGS = (ROOT / "mkdocs.yml").read_text("utf-8")
PUBLISHED = {".md", ".svg", ".png", ".css"}


def test_the_navigation_names_each_page_once():
    named = re.findall(r"(?m)^ +- (\S+\.md)$", SETTINGS)
    pages = [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")]
    assert sorted(named) == sorted([*pages, "changelog.md"])


def test_docs_holds_pages_pictures_and_their_figures():
    (excluded,) = re.findall(r"(?ms)^exclude_docs: \|\n((?:  \S+\n)+)", SETTINGS)
    unpublished = {each.removeprefix("*") for each in excluded.split()}
    found = {each.suffix for each in DOCS.rglob("*") if each.is_file()}
    assert found == PUBLISHED | unpublished


@pytest.mark.parametrize(
    ("address", "name", "menu"),
    [
        (f"https://docs.example/{__version__}/", "mesos-allocator", True),
        ("https://docs.example/", f"mesos-allocator {__version__}", False),
    ],
)
def test_the_header_has_the_version(address, name, menu):
    """In the site's name, or in the theme's menu if several versions are published."""
    config = SimpleNamespace(site_name="mesos-allocator", site_url=address, extra={})
    load("site_hooks").on_config(config)
    assert config.site_name == name
    assert ("version" in config.extra) == menu


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Build the site as a publisher does; returns its directory."""
    directory: Path = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(directory)]
    environment = {
        **os.environ,
        "REPOSITORY_URL": "https://repository.example/allocator",
        "SITE_URL": f"https://docs.example/{__version__}/",
    }
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return directory


@pytest.mark.long
def test_the_site_has_version_edit_links_and_anchors(site):
    home = (site / "index.html").read_text("utf-8")
    assert f"Version {__version__}" in home
    assert "apt install ./mesos-allocator_*.deb" in re.sub("<[^>]+>", "", home)
    assert "https://repository.example/allocator/edit/main/docs/index.md" in home
    assert f"https://docs.example/{__version__}/changelog.html" in home
    assert '"version": {"provider": "mike"}' in home, "the menu of versions"
    assert f">[{__version__}] - " in (site / "changelog.html").read_text("utf-8")
    metrics = (site / "reference" / "metrics.html").read_text("utf-8")
    for family in FAMILIES:
        assert f'id="{family.full_name}"' in metrics
    data = {each.suffix for each in site.rglob("*") if "assets" not in each.parts}
    assert not data & {".py", ".pyc", ".jsonl", ".toml"}
    assert [each.name for each in site.rglob("*.json")] == ["search_index.json"]


BROKEN_NAMES = """() => [...document.querySelectorAll("table td:first-child code")]
  .filter(each => each.getClientRects().length > 1).map(each => each.innerText)"""


@pytest.mark.long
@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize(
    "page", ["index", "reference/metrics", "reference/configuration", "explanation/measured"]
)
def test_pages_fit_the_screen_and_names_do_not_break(site, browser, page, width):
    with browser.new_context(viewport={"width": width, "height": 800}) as context:
        shown = context.new_page()
        shown.goto((site / f"{page}.html").as_uri())
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        assert shown.evaluate(BROKEN_NAMES) == []
