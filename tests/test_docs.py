"""The references in docs/: what the code says now."""

import re
import subprocess
import sys
from pathlib import Path

from allocator.server.config import Config
from allocator.server.config.schema import keys

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def test_they_are_what_is_generated(tmp_path):
    command = [sys.executable, str(DOCS / "generate.py"), str(tmp_path)]
    subprocess.run(command, check=True, timeout=240, cwd=ROOT)
    for written in tmp_path.iterdir():
        text = (DOCS / written.name).read_text()
        assert text == written.read_text(), f"docs/{written.name} is stale: `make docs`"


def test_every_option_is_in_the_reference():
    text = (DOCS / "configuration.md").read_text()
    chapters = dict(re.findall(r"(?ms)^## \[+(\w+)\]+\n(.*?)(?=^## |\Z)", text))
    for section, key in keys(Config):
        assert f"| `{key}` |" in chapters[section], (section, key)
