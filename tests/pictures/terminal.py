"""Renders a command's output on a real terminal as SVG."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

MARGIN = 2
"""Columns left free at the right, so that no text touches the edge."""

THEME = TerminalTheme(
    background=(27, 31, 39),
    foreground=(214, 219, 227),
    normal=[
        *((47, 53, 64), (240, 113, 120), (152, 195, 121), (229, 192, 123)),
        *((97, 175, 239), (198, 140, 222), (86, 182, 194), (214, 219, 227)),
    ],
    bright=[
        *((127, 136, 150), (240, 113, 120), (152, 195, 121), (229, 192, 123)),
        *((97, 175, 239), (198, 140, 222), (86, 182, 194), (255, 255, 255)),
    ],
)

# Like rich's own template, without a remote font: each run of text states its length.
FORM = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<title>What a terminal showed</title>
<style>
.{unique_id}-matrix {{
  font-family: "DejaVu Sans Mono", Menlo, Consolas, "Liberation Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px;
}}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def printed(command: Sequence[str], columns: int, environment: dict[str, str]) -> str:
    """Run a command on a terminal of its own; returns its output, including escapes."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    told = {**os.environ, "TERM": "xterm-256color", **environment}
    for name in ("COLUMNS", "LINES", "NO_COLOR", "CI"):
        told.pop(name, None)
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=told) as running:
        os.close(its)
        parts = []
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the last process that had the terminal open has ended
                break
            if not part:
                break
            parts.append(part)
    os.close(ours)
    text = b"".join(parts).decode().replace("\r\n", "\n")
    assert running.returncode == 0, text
    return text


def capture(words: Sequence[str], columns: int, environment: dict[str, str], path: Path) -> None:
    """Run ``mesos-allocator WORDS`` on a terminal, and draw the prompt and the output."""
    text = printed([sys.executable, "-m", "allocator", *words], columns, environment)
    shown = " ".join(("mesos-allocator", *words))
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=columns + MARGIN, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi(f"\x1b[32m$\x1b[0m \x1b[1m{shown}\x1b[0m\n"))
        console.print(Text.from_ansi(text.rstrip()))
        svg = console.export_svg(title=shown, theme=THEME, code_format=FORM, unique_id="terminal")
    path.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")
