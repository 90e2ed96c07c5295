"""What the site takes from elsewhere in the repository: version, and changelog as a page."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

from allocator import __version__

CHANGELOG = Path(__file__).resolve().parents[2] / "CHANGELOG.md"


def on_config(config: Any) -> None:  # noqa: ANN401 - MkDocs's own
    """Say below each page of which version it tells."""
    config.copyright = f'<a href="{config.site_url}changelog.html">Version {__version__}</a>'


def on_files(files: Any, config: Any) -> None:  # noqa: ANN401
    """Add the changelog."""
    text = CHANGELOG.read_text("utf-8")
    files.append(File.generated(config, "changelog.md", content=text))
