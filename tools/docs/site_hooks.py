"""What the site takes from elsewhere in the repository: version, and changelog as a page."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

from allocator import __version__

CHANGELOG = Path(__file__).resolve().parents[2] / "CHANGELOG.md"


def on_config(config: Any) -> None:  # noqa: ANN401 - MkDocs's own
    """Show the version below each page, and a menu of versions if several are published.

    Then the address ends with the version: `.ci/publish-site`.
    """
    config.copyright = f'<a href="{config.site_url}changelog.html">Version {__version__}</a>'
    if config.site_url.endswith(f"/{__version__}/"):
        config.extra["version"] = {"provider": "mike"}  # the theme's name for such a layout


def on_files(files: Any, config: Any) -> None:  # noqa: ANN401
    """Add the changelog."""
    text = CHANGELOG.read_text("utf-8")
    files.append(File.generated(config, "changelog.md", content=text))
