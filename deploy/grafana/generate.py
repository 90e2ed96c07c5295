"""Write the dashboards: `python deploy/grafana/generate.py [DIRECTORY]`."""

import sys
from pathlib import Path

from pages import PAGES
from panels import render


def write(directory: Path) -> None:
    """Write one file for each dashboard."""
    directory.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        (directory / f"{page.uid}.json").write_text(render(page), encoding="utf-8")


if __name__ == "__main__":
    here = Path(__file__).resolve().parent / "dashboards"
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else here)
