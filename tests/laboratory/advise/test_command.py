"""`allocator-lab advise` on small days and on what is no day: what is printed, and written."""

import tomllib
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright
from typer.testing import CliRunner

from allocator.cli.app import app as allocator_app
from allocator.core import PolicySpec
from laboratory.cli.app import app
from tests.laboratory.advise.made import Job, MadeDay, agents
from tests.server.sidecar_process import SidecarProcess
from tests.tiers import long

WORK = tuple(Job(0, f"job-{role}", role, "cpus:1;mem:512", (8.0,) * 6) for role in ("red", "blue"))
SMALL = MadeDay(agents(2, "cpus:2;mem:2048"), WORK)


def advise(*arguments: object):
    return CliRunner().invoke(app, ["advise", *map(str, arguments)])


class Page(HTMLParser):
    """The contents of a page: headings, cells, preformatted text, and references."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.said: dict[str, list[str]] = {"h1": [], "h2": [], "td": [], "pre": [], "li": []}
        self.loaded: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, "tags that are never closed"

    def handle_starttag(self, tag, attrs):
        if tag not in {"meta", "link"}:
            self.open.append(tag)
        if tag in self.said:
            self.said[tag].append("")
        names = dict(attrs)
        self.loaded += [names[key] for key in ("src", "href") if names.get(key)]

    def handle_startendtag(self, tag, attrs):
        names = dict(attrs)
        self.loaded += [names[key] for key in ("src", "href", "xlink:href") if names.get(key)]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        for tag in reversed(self.open):
            if tag in self.said:
                self.said[tag][-1] += data
                return


@pytest.fixture(scope="module")
def journal(tmp_path_factory) -> Path:
    return SMALL.write(tmp_path_factory.mktemp("small") / "journal")


@pytest.fixture(scope="module")
def advised(journal, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "advice"
    done = advise(journal, "--seeds", 2, "--jobs", 1, "--out", out)
    assert done.exit_code == 0, done.output
    return done, out / "advice.html"


def test_output_states_the_advice_and_its_reasons(advised):
    done, _ = advised
    lines = done.stdout.splitlines()
    assert lines[1].startswith(("Keep what you have", "Change the policy"))
    assert "drf characterised (in force)" in done.stdout
    for part in ("To paste", "Gains and losses", "a journal does not contain"):
        assert part in done.stdout
    assert "playing" in done.stderr, "progress is told"
    assert "12 tasks" in done.stdout


def test_the_page_is_one_file_that_says_the_same(advised):
    done, path = advised
    text = path.read_text()
    page = Page(text)
    (headline,) = page.said["h1"]
    assert headline == done.stdout.splitlines()[1]
    assert "drf characterised (in force)" in page.said["td"]
    assert text.count("<svg") == 1
    # The icon is empty; everything else is part of the page itself.
    assert all(where.startswith(("data:", "#")) for where in page.loaded), page.loaded


OUTSIDE = """() => [...document.querySelectorAll("section, table, tr, td, th, pre, svg")]
  .filter(each => each.getClientRects().length)
  .filter(each => each.getBoundingClientRect().right > document.documentElement.clientWidth + 1
    || each.scrollWidth > each.clientWidth + 1 && each.matches("section, pre"))
  .map(each => each.tagName + ": " + each.textContent.trim().slice(0, 40))"""


@pytest.mark.parametrize("scheme", ["dark", *long("light")])
@pytest.mark.parametrize("width", [400, *long(1280)])
def test_the_page_fits_the_screen(advised, tool, width, scheme, tmp_path):
    with sync_playwright() as playwright:
        # The tests may run as root, for which Chromium has no sandbox.
        program = tool("chromium")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        page.goto(advised[1].as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(OUTSIDE) == []
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, back.removeprefix("rgb(").removesuffix(")").split(","))) > 3 * 128
        assert light is (scheme == "light")
        page.screenshot(path=tmp_path / "page.png", full_page=True)
        browser.close()


def test_the_text_to_paste_is_a_configuration(advised, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text(Page(advised[1].read_text()).said["pre"][0])
    assert tomllib.loads(config.read_text())["policy"]["name"] == "drf"
    checked = CliRunner().invoke(allocator_app, ["check-config", str(config)])
    assert checked.exit_code == 0, checked.output


@pytest.mark.long
def test_a_journal_of_a_real_sidecar_is_read_with_its_rotated_files(tmp_path):
    """Its directory is one day."""
    from laboratory.links.stream import StreamLink
    from laboratory.workloads.play import play
    from tests.laboratory.advise.made import Staged

    (tmp_path / "journals").mkdir()
    flags = [f"journal.path={tmp_path}/journals/journal", "policy.mode=characterised"]
    socket = f"unix:{tmp_path}/sidecar.sock"
    with SidecarProcess(*flags, listen=[socket]) as sidecar:
        assert play(Staged(SMALL), StreamLink(socket, 1), tell_demand=True).progress.done
        assert sidecar.terminate() == 0
    done = advise(tmp_path / "journals", "--seeds", 2, "--jobs", 1, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "2 agents, 2 frameworks, 12 tasks" in done.stdout


EVIL = "<script>alert(1)</script>\x1b[2J$x"


@pytest.fixture(scope="module")
def torn(tmp_path_factory):
    """The output for a truncated journal that contains a malicious name; and the page."""
    directory = tmp_path_factory.mktemp("torn")
    work = (Job(0, EVIL, "red", "cpus:1;mem:512", (8.0,) * 3), WORK[1])
    data = MadeDay(SMALL.agents, work).write(directory / "journal").read_bytes()
    (directory / "cut").write_bytes(data[: len(data) - 3])
    done = advise(directory / "cut", "--seeds", 2, "--jobs", 1, "--out", directory)
    assert done.exit_code == 0, done.output
    return done, (directory / "advice.html").read_text()


def test_names_of_frameworks_do_no_harm_to_the_page(torn):
    done, text = torn
    assert "<script" not in text
    assert "\x1b" not in text + done.stdout


def test_a_truncated_journal_is_played_as_far_as_possible(torn):
    assert "is cut off at byte" in torn[0].stdout


# Invalid days.


def refused(*arguments: object) -> str:
    done = advise(*arguments)
    assert (done.exit_code, done.stdout) == (1, ""), done.output
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert errors, done.stderr
    return "\n".join(errors)


def test_an_empty_file_is_no_day(tmp_path):
    (tmp_path / "empty").touch()
    told = refused(tmp_path / "empty", "--out", tmp_path)
    assert "no event is recorded" in told
    assert "give a journal" in told


def test_another_file_is_no_day(tmp_path):
    (tmp_path / "notes.txt").write_text("no journal at all, but text")
    assert "the file is not a journal" in refused(tmp_path / "notes.txt", "--out", tmp_path)


def test_a_directory_without_journals_is_no_day(tmp_path):
    (tmp_path / "notes.txt").write_text("no journal")
    assert "contains no journal" in refused(tmp_path, "--out", tmp_path / "out")


def test_a_day_on_which_nothing_was_launched_is_no_day(tmp_path):
    work = (Job(0, "huge", "red", "cpus:100;mem:512", (8.0,)),)
    journal = MadeDay(SMALL.agents, work).write(tmp_path / "journal", until_s=30)
    told = refused(journal, "--out", tmp_path)
    assert "1 framework launched no task in it" in told


def test_a_journal_that_was_cut_off_before_anything_happened_is_no_day(journal, tmp_path):
    (tmp_path / "cut").write_bytes(journal.read_bytes()[:40])
    told = refused(tmp_path / "cut", "--out", tmp_path)
    assert "no event is recorded" in told
    assert "cut off at byte 25" in told


def test_all_errors_are_reported_at_once(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).touch()
    told = refused(tmp_path / "one", tmp_path / "two", "--out", tmp_path)
    assert len(told.splitlines()) == 2


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--backend", "some"], "--backend: 'some'; choose from loky, dask"),
        (["--jobs", "0"], "--jobs: must not be 0"),
        (["--seeds", "1"], "--seeds"),
        (["--hours", "-1"], "--hours"),
    ],
)
def test_wrong_options_are_refused(flags, told, journal, tmp_path):
    done = advise(journal, *flags, "--out", tmp_path)
    assert done.exit_code == 2
    assert told in done.stderr


def test_a_cluster_that_is_not_there_is_named(journal, tmp_path):
    done = advise(journal, "--backend", "ray", "--out", tmp_path)
    assert done.exit_code == 1
    assert "--backend ray" in done.stderr


def test_an_unknown_policy_is_named(tmp_path):
    """The journal of a sidecar with a user's own policy."""
    from allocator import policies

    before = dict(policies.POLICIES.items())
    try:
        policies.POLICIES.replace({**before, "own": before["drf"]})
        journal = MadeDay(SMALL.agents, WORK, PolicySpec("own")).write(tmp_path / "journal")
    finally:
        policies.POLICIES.replace(before)
    assert "there is no policy 'own'" in refused(journal, "--out", tmp_path)
