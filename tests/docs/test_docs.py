"""The generated pages in docs/ are up to date with the code."""

import re
import subprocess
import sys
from pathlib import Path

from allocator.server.config import Config
from allocator.server.config.schema import keys
from tests.docs.docs_scripts import TOOLS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def test_generated_pages_are_up_to_date(tmp_path):
    command = [sys.executable, str(TOOLS / "generate.py"), str(tmp_path)]
    subprocess.run(command, check=True, timeout=240, cwd=ROOT)
    written = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert len(written) > 5
    for each in written:
        name = each.relative_to(tmp_path)
        assert (DOCS / name).read_text() == each.read_text(), f"docs/{name} is stale: `make docs`"


def test_every_option_is_in_the_reference():
    text = (DOCS / "reference" / "configuration.md").read_text()
    chapters = dict(re.findall(r"(?ms)^## \[+(\w+)\]+\n(.*?)(?=^## |\Z)", text))
    for section, key in keys(Config):
        assert f"| `{key}` |" in chapters[section], (section, key)
