"""`allocator-lab demo` as a user runs it, on a small scale."""

import csv
import json
import os
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from allocator.cli.tree import Exit
from laboratory.cli.app import app
from tests.plain_loops import plain_sidecar


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "laboratory", "demo", *arguments],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.long
def test_the_demo_plays_prints_and_draws(tmp_path):
    out = tmp_path / "out"
    done = run("--scale", "0.04", "--out", str(out))
    assert done.returncode == Exit.OK, done.stderr
    names = {path.name for path in out.iterdir()}
    pictures = {f"fig-{number}.png" for number in range(1, 6)}
    assert names == pictures | {"runs.json", "runs.csv", "series.csv"}
    for name in pictures:
        assert (out / name).read_bytes().startswith(b"\x89PNG")
    data = json.loads((out / "runs.json").read_text())
    assert len(data["runs"]) == 12
    assert {run["policy"] for run in data["runs"]} == {"drf", "ps-dsf", "rps-dsf", "tsf", "bf-drf"}
    for each in data["runs"]:
        assert each["rejected"] == {}
        assert each["makespan_s"] > 10
        assert 0 < each["mean"]["cpus"] <= 1
    assert all(memory > 20 for memory in data["sidecar_memory_mib"].values())
    lines = list(csv.DictReader((out / "runs.csv").read_text().splitlines()))
    assert len(lines) == 12
    assert "ps-dsf characterised" in done.stdout
    # Fairness and the paper's claims, in 80 columns; progress goes elsewhere.
    assert "Jain" in done.stdout
    assert "PS-DSF ends the batch before DRF (oblivious)" in done.stdout
    printed = [line.rstrip() for line in done.stdout.splitlines() if str(out) not in line]
    assert max(map(len, printed)) <= 80
    assert re.search(r"\d+ of \d+ jobs", done.stderr)
    fair = data["runs"][0]["fairness"]
    assert set(fair["roles"]) == {"Pi", "WordCount"}
    assert 0.5 <= fair["jain_least"] <= fair["jain"] <= 1


@pytest.mark.long
def test_a_running_sidecar_is_used_where_one_is_named(tmp_path):
    with plain_sidecar(tmp_path) as sidecar:
        done = run(
            *("--target", sidecar.target, "--policies", "drf", "--modes", "oblivious"),
            *("--scale", "0.02", "--out", str(tmp_path / "out")),
        )
        log = sidecar.log.read_text()
    assert done.returncode == Exit.OK, done.stderr
    assert (tmp_path / "out" / "all.png").exists()
    assert "error" not in log.lower()


@pytest.mark.long
@pytest.mark.parametrize(("trace", "scale"), [("swim", "0.01"), ("openb", "0.001")])
def test_a_trace_is_replaced_by_its_stand_in_where_it_is_missing(tmp_path, trace, scale):
    done = run(
        *("--trace", trace, "--agents", "30", "--policies", "drf", "--scale", scale),
        *("--out", str(tmp_path / "out")),
        MESOS_ALLOCATOR_TRACES=str(tmp_path),
    )
    assert done.returncode == Exit.OK, done.stderr
    assert "synthetic" in done.stdout
    assert "claim" not in done.stdout
    names = {path.name for path in (tmp_path / "out").glob("*.png")}
    assert names == {f"{trace}-{mode}.png" for mode in ("oblivious", "characterised")}
    data = json.loads((tmp_path / "out" / "runs.json").read_text())
    assert all(run["rejected"] == {} for run in data["runs"])


def test_a_broken_trace_is_named(tmp_path):
    (tmp_path / "FB-2009_samples_24_times_1hr_1.tsv").write_text("job0\t1\n")
    traces = {"MESOS_ALLOCATOR_TRACES": str(tmp_path)}
    done = CliRunner().invoke(app, ["demo", "--trace", "swim"], env=traces)
    assert done.exit_code == Exit.FAILURE
    assert "FB-2009_samples_24_times_1hr_1.tsv:1: has 2 fields" in done.stderr


@pytest.mark.long
def test_claims_are_checked_and_written(tmp_path):
    done = run("claims", "--seeds", "2", "--scale", "0.02", "--cores", "1", "--out", str(tmp_path))
    assert done.returncode == Exit.OK, done.stderr
    data = json.loads((tmp_path / "claims.json").read_text())
    assert data["seeds"] == 2
    assert {claim["outcome"] for claim in data["claims"]} <= {"holds", "not shown", "contrary"}
    assert all(len(claim["values"]) == 2 for claim in data["claims"])
    assert "PS-DSF ends the batch before DRF" in done.stdout


def test_a_soak_compares_the_books_and_says_whose_clock_it_counts():
    done = run("soak", "--seconds", "12", "--size", "4", "--seed", "3")
    assert re.search(r"12 s of the emulated cluster's clock, in \d+ s of real time,", done.stdout)
    told = CliRunner().invoke(app, ["demo", "soak", "--help"]).stdout
    assert "Seconds of the emulated cluster's clock" in told
    assert done.returncode == Exit.OK, done.stderr
    assert "books compared 2 times" in done.stdout
