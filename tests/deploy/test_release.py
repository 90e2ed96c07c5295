"""A tag publishes notes from the changelog, and a site with all versions."""

import json
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from allocator import __version__
from tests.deploy.containers import ROOT, run

WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))
STEPS = WORKFLOW["jobs"]["release"]["steps"]


@pytest.fixture
def publish(tmp_path):
    """Publish a site of one page; returns the directory of all versions."""

    def publish(version: str, page: str = "index.html") -> Path:
        source = tmp_path / "source" / page
        source.parent.mkdir(exist_ok=True)
        source.write_text(version)
        archive = tmp_path / "site.tar.gz"
        with tarfile.open(archive, "w:gz") as file:
            file.add(source, page)
        run(ROOT / ".ci" / "publish-site", archive, version, tmp_path / "pages")
        return tmp_path / "pages"

    return publish


def test_versions_of_the_site_lie_side_by_side_and_the_newest_is_shown_first(publish):
    publish("1.2.0", "withdrawn.html")
    publish("1.10.0")
    pages = publish("1.2.0")
    versions = json.loads((pages / "versions.json").read_text())
    assert [each["version"] for each in versions] == ["1.10.0", "1.2.0"]
    assert 'url=1.10.0/index.html"' in (pages / "index.html").read_text()
    files = {str(each.relative_to(pages)) for each in pages.rglob("*") if each.is_file()}
    assert files == {"1.10.0/index.html", "1.2.0/index.html", "index.html", "versions.json"}


def test_a_release_has_the_notes_of_its_version():
    (script,) = (step["run"] for step in STEPS if "gh release create" in step.get("run", ""))
    (command,) = re.findall(r"(?s)(awk .*?CHANGELOG.md)", script)
    notes = run("bash", "-c", command, VERSION=__version__)
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    (ours,) = re.findall(rf"(?ms)^## \[{__version__}\] .*?\n(.*?)(?=^## |\Z)", changelog)
    assert notes == ours.strip() != ""


def test_the_workflow_builds_with_make_for_the_tag_of_the_version(tool):
    scripts = "\n".join(step.get("run", "") for step in STEPS)
    assert "make release" in scripts
    assert run("make", "--silent", "version") == __version__
    check = 'test "$GITHUB_REF_NAME" = "v$version"'
    assert check in scripts
    guard = [tool("bash"), "-ec", f"version=$(make --silent version)\n{check}"]
    for tag, code in ((f"v{__version__}", 0), (f"v{__version__}.1", 1)):
        environment = {"GITHUB_REF_NAME": tag, "PATH": "/usr/bin:/bin"}
        assert subprocess.run(guard, cwd=ROOT, env=environment, check=False).returncode == code
