"""The man pages: one for each command, with all its options."""

import re
import subprocess
import sys

from tests.cli.command_tree import commands_of_allocator, options
from tests.docs.docs_scripts import TOOLS

MACROS = {".B", ".PP", ".SH", ".TH", ".TP"}


def test_each_command_has_a_page_with_its_options(tmp_path):
    subprocess.run([sys.executable, str(TOOLS / "man_pages.py"), str(tmp_path)], check=True)
    found = dict(commands_of_allocator())
    for path, command in found.items():
        name = "-".join(("mesos-allocator", *path))
        page = (tmp_path / f"{name}.1").read_text("utf-8")
        plain = page.replace("\\-", "-")
        assert f"\n.SH NAME\n{name} - {command.get_short_help_str(200)}\n" in plain
        shown = {word for each in command.params if not each.hidden for word in each.opts}
        assert options(command) & shown <= set(re.findall(r"--?\w[\w-]*", plain))
        # No text of a help is read as a macro.
        assert {line.split()[0] for line in page.splitlines() if line[:1] in ".'"} <= MACROS
    assert len(list(tmp_path.iterdir())) == len(found)
