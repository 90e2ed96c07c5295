"""A Prometheus for the tests that need one, and the sidecar that it scrapes."""

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from tests.integration.metrics.scraped import DEPLOY, process, sidecar
from tests.server.processes import free_port

__all__ = ["process", "query", "sidecar"]


@pytest.fixture
def query(sidecar, tool, tmp_path) -> Iterator[Callable[[str], list[dict]]]:
    """Run the Prometheus of deploy/ against the sidecar; returns a function for queries."""
    for file in ("prometheus.yml", "alerts.yaml"):
        shutil.copy(DEPLOY / file, tmp_path)
    config = tmp_path / "prometheus.yml"
    text = config.read_text()
    assert "127.0.0.1:5057" in text
    text = text.replace("127.0.0.1:5057", sidecar.process.http).replace("15s", "1s")
    config.write_text(text)
    port = free_port()
    command = [
        tool("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={tmp_path}/data",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(command, stderr=log, stdout=log)

    def ask(expression: str) -> list[dict]:
        parameters = urllib.parse.urlencode({"query": expression})
        url = f"http://127.0.0.1:{port}/api/v1/query?{parameters}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.load(answer)["data"]["result"]

    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                if ask("scrape_samples_scraped"):
                    break
            except OSError:
                pass
            assert server.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.2)
        yield ask
    finally:
        server.terminate()
        server.wait(60)
