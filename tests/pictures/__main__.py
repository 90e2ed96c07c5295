"""Make the pictures of the README and the site: `make pictures`, or `python -m tests.pictures`.

They come from a real sidecar process with an emulated master and jobs, a real Chromium that loads
the status page, a real terminal on which `explain` prints, the demo, and an example that real
policies decide. `architecture.svg` is drawn by hand.
"""

import csv
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import FloatRect, ViewportSize, sync_playwright

from laboratory.reports.plots import over_time
from tests.pictures import worked_example
from tests.pictures.scene import BUSY, COLLECTING, USED, Scene, at_work
from tests.pictures.terminal import capture

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"

WIDTH, SCALE = 1280, 1.5
"""Size of the page in CSS pixels, and the picture's pixels per CSS pixel."""

ROWS = 8
"""Number of visible frameworks; the page continues below."""

COLOURS = 256
COLUMNS = 106
EXPLAINED = "graph-rank"
GANG = "train-speech"
OVER_BUDGET = "train-text"


def main() -> None:
    """Make all generated pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with at_work(BUSY) as scene:
        # First, because a browser is slow, and frameworks that wait now may be served meanwhile.
        explain(scene, (EXPLAINED, "--cycles", "2"), PICTURES / "explain.svg")
        photograph(f"http://{scene.http}/?refresh=0", PICTURES / "status-page.png", ROWS)
    with at_work(COLLECTING) as scene:
        explain(scene, (GANG, "--cycles", "1"), PICTURES / "gang-explain.svg")
        url = f"http://{scene.http}/explain?refresh=0&kind=framework&name={GANG}"
        photograph(url, PICTURES / "gang-page.png")
    with at_work(USED) as scene:
        explain(scene, (OVER_BUDGET, "--cycles", "1"), PICTURES / "budget-explain.svg")
        photograph(f"http://{scene.http}/?refresh=0", PICTURES / "budgets.png", part="#budgets")
        photograph(f"http://{scene.http}/usage?refresh=0&by=role", PICTURES / "usage-page.png")
    compare(PICTURES / "comparison.png")
    worked_example.draw(PICTURES / "policies.svg")


def explain(scene: Scene, words: Sequence[str], path: Path) -> None:
    """Draw what a terminal shows of a framework."""
    target = {"MESOS_ALLOCATOR_TARGET": scene.target}
    capture(("explain", "framework", *words), COLUMNS, target, path)


def photograph(url: str, path: Path, rows: int | None = None, part: str = "") -> None:
    """Photograph a page.

    `rows`: only from its head to that row of the frameworks; `part`: only this element.
    """
    program = shutil.which("chromium")
    assert program, "chromium is needed (Debian's package chromium)"
    with sync_playwright() as playwright:
        # The user may be root, for which Chromium has no sandbox.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        screen = ViewportSize(width=WIDTH, height=1000 if rows else 1)
        page = browser.new_page(viewport=screen, device_scale_factor=SCALE)
        page.goto(url)
        seen = None
        if rows:
            table = page.locator("section", has_text="longest wait first")
            box = table.locator("tbody tr").nth(rows - 1).bounding_box()
            assert box is not None
            seen = FloatRect(x=0, y=0, width=WIDTH, height=box["y"] + box["height"])
        if part:
            page.locator(part).screenshot(path=path)
        else:
            page.screenshot(path=path, full_page=True, clip=seen)
        browser.close()
    smaller(path)


def compare(path: Path) -> None:
    """Play the demo under two policies, and draw its results, with gain and price."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "laboratory", "demo", "--policies", "drf,ps-dsf"]
        subprocess.run([*command, "--modes", "oblivious", "--out", out], check=True)
        draw_comparison(Path(out), path)
    smaller(path)


def draw_comparison(out: Path, path: Path) -> None:
    """Draw the runs in a directory of the demo, and write their figures beside it."""
    played = json.loads((out / "runs.json").read_text("utf-8"))["runs"]
    figures = {
        run["policy"]: {name: round(run[name], 1) for name in ("makespan_s", "wait_max_s")}
        for run in played
    }
    before, after = figures["drf"], figures["ps-dsf"]
    earlier = 100 * (1 - after["makespan_s"] / before["makespan_s"])
    figures["ps-dsf"]["earlier_percent"] = round(earlier, 1)
    with (out / "series.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    kinds = [name for name in rows[0] if name not in {"run", "time_s"}]
    series = {}
    for name in dict.fromkeys(row["run"] for row in rows):
        mine = [row for row in rows if row["run"] == name]
        part = np.array([[float(row[kind]) for kind in kinds] for row in mine])
        series[name] = np.array([float(row["time_s"]) for row in mine]), part
    title = f"All jobs are done {earlier:.1f} % earlier under PS-DSF; the longest wait for a first"
    title += f" offer grows from {before['wait_max_s']:.1f} to {after['wait_max_s']:.1f} s"
    over_time(path, title, series, kinds)
    text = json.dumps(figures, indent=1)
    path.with_suffix(".json").write_text(f"{text}\n", encoding="utf-8")


def smaller(path: Path) -> None:
    """Reduce a picture to its most frequent colours; areas of one colour stay unchanged."""
    with Image.open(path) as picture:
        full = picture.convert("RGB")
    packed = np.asarray(full, np.int64) @ (1 << 16, 1 << 8, 1)
    colours, counts = np.unique(packed, return_counts=True)
    most = colours[np.argsort(-counts, kind="stable")[:COLOURS]]
    palette = Image.new("P", (1, 1))
    palette.putpalette((most[:, None] >> (16, 8, 0) & 255).ravel().tolist())
    few = full.quantize(palette=palette, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


if __name__ == "__main__":
    main()
