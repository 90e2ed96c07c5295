"""Readers of traces: parsed jobs, and errors with their position."""

import os
from pathlib import Path

import numpy as np
import pytest

from laboratory.experiments import demo_runs as catalogue
from laboratory.workloads import traces
from laboratory.workloads.traces import BLOCK_BYTES, TraceError, read_nodes, read_pods, read_swim

ROOT = Path(__file__).resolve().parents[3]
TRACES = Path(os.environ.get("MESOS_ALLOCATOR_TRACES", ROOT.parent / "shared" / "traces"))

SWIM = "job0\t23\t23\t410483\t0\t2513586060\njob1\t3601\t3578\t67108865\t5\t6\n"
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,\nn1,64000,131072,2,T4\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n"
    "p1,6000,12288,1,460,V100M16|V100M32,LS,Running,9,20,9\n"
    "p0,4000,8192,0,0,,BE,Pending,3,3,\n"
)


@pytest.fixture
def write(tmp_path):
    def write_file(text):
        path = tmp_path / "trace"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write_file


def trace(name):
    path = TRACES / name
    if not path.is_file():
        pytest.skip(f"{path} is not there; MESOS_ALLOCATOR_TRACES names the directory")
    return path


def test_swim_jobs_are_read(write):
    first, second = read_swim(write(SWIM))
    assert (first.name, first.submit_s, first.map_bytes) == ("job0", 23, 410483)
    assert (second.shuffle_bytes, second.reduce_bytes) == (5, 6)


def test_an_hour_of_swim_begins_at_zero(write):
    (job,) = read_swim(write(SWIM), hour=1)
    assert (job.name, job.submit_s) == ("job1", 1)


@pytest.mark.parametrize(
    ("size", "maps"),
    [(0, 1), (1, 1), (BLOCK_BYTES, 1), (BLOCK_BYTES + 1, 2), (99 * BLOCK_BYTES, 10)],
)
def test_a_job_has_a_map_for_each_block_up_to_a_maximum(write, size, maps):
    (job,) = read_swim(write(f"j\t0\t0\t{size}\t0\t0"))
    assert job.maps(10) == maps


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a\t1\t1\t1\t1\n", r"trace:1: has 5 fields \('a\\t1\\t1\\t1\\t1'\), not 6"),
        ("a\t1\t1\tx\t1\t1\n", r"trace:1: map_bytes is 'x'; it must be a whole number"),
        ("a\t1\t1\t-5\t1\t1\n", r"trace:1: map_bytes is '-5'"),
        ("a\t1.5\t1\t1\t1\t1\n", r"trace:1: submit_s is '1.5'"),
        ("a\t٣\t1\t1\t1\t1\n", r"trace:1: submit_s is '٣'"),
        ("a\t9\t1\t1\t1\t1\nb\t8\t1\t1\t1\t1\n", r"trace:2: submit_s is '8'; it must be at least"),
        ("\t1\t1\t1\t1\t1\n", r"trace:1: job is ''; it must be a name"),
        ("a\t1\t1\t99999999999999999\t1\t1\n", r"from 0 to 9007199254740992"),
        ("", r"trace: no jobs"),
        (b"\xff\xfe\x00", r"trace: cannot be read as text"),
    ],
)
def test_a_bad_swim_line_is_named(write, text, complaint):
    with pytest.raises(TraceError, match=complaint):
        read_swim(write(text))


def test_an_hour_without_jobs_is_an_error(write):
    with pytest.raises(TraceError, match="no jobs in hour 7; it ends at 3601 s"):
        read_swim(write(SWIM), hour=7)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(TraceError, match="nothing: cannot be read"):
        read_swim(tmp_path / "nothing")


def test_openb_nodes_are_read_in_thousandths(write):
    plain, gpu = read_nodes(write(NODES))
    assert plain.capacity == {"cpus": 32_000, "mem": 262_144_000}
    assert plain.model == ""
    assert gpu.capacity == {"cpus": 64_000, "mem": 131_072_000, "gpus": 2_000}
    assert gpu.model == "T4"


def test_openb_pods_are_read_in_order_of_creation(write):
    first, second = read_pods(write(PODS))
    assert (first.name, first.need) == ("p0", {"cpus": 4_000, "mem": 8_192_000})
    assert (first.models, first.life_s) == (frozenset(), 0)
    assert second.need["gpus"] == 460
    assert second.models == {"V100M16", "V100M32"}
    assert second.qos == "LS"


@pytest.mark.parametrize(
    ("trace", "old", "new", "complaint"),
    [
        (NODES, "sn,cpu_milli", "sn,cpus", r"trace:1: columns are"),
        (NODES, "n0,32000", "n0,0", r"trace:2: cpu_milli is '0'; it must be a whole number from 1"),
        (NODES, "2,T4", "2,", r"trace:3: model is ''; it must be a GPU model exactly where"),
        (NODES, "0,\n", "0,T4\n", r"trace:2: model is 'T4'"),
        (NODES, "2,T4", "999,T4", r"trace:3: gpu is '999'"),
        (NODES, "n1,", ",", r"trace:3: sn is ''"),
        (
            PODS,
            "9,20,9",
            "9,8,9",
            r"trace:2: deletion_time is '8'; it must be at least the creation",
        ),
        (PODS, "1,460", "1,1460", r"trace:2: gpu_milli is '1460'"),
        (PODS, "4000,8192,0,0", "0,0,0,0", r"trace:3: cpu_milli is '0'; it must be above 0"),
        (PODS, "6000", "", r"trace:2: cpu_milli is ''"),
        (PODS, ",LS,", ",,", r"trace:2: qos is ''"),
    ],
)
def test_a_bad_row_is_named(write, trace, old, new, complaint):
    read = {NODES: read_nodes, PODS: read_pods}[trace]
    with pytest.raises(TraceError, match=complaint):
        read(write(trace.replace(old, new)))


def test_the_choosy_hour_of_the_facebook_sample():
    jobs = read_swim(trace(catalogue.SWIM_FILE), hour=21)
    assert len(jobs) == 299
    assert sum(job.maps(1_500) for job in jobs) == 6_902 + sum(job.map_bytes == 0 for job in jobs)


def test_the_openb_files():
    nodes = read_nodes(trace(catalogue.NODES_FILE))
    pods = read_pods(trace(catalogue.PODS_FILE))
    assert (len(nodes), len(pods)) == (1_523, 8_152)
    assert len({node.model for node in nodes if node.model}) == 7
    assert sum(pod.models == {"T4"} for pod in pods) == 1_291
    scenario = traces.openb(nodes, pods, span_s=600)
    assert scenario.arrivals[-1].time_ms == 600_000
    assert max(max(each.durations_ms) for each in scenario.arrivals) <= 3_600_000


def test_a_pod_that_fits_nowhere_is_left_out(write):
    nodes = read_nodes(write(NODES))
    header, constrained, plain = PODS.splitlines()
    on_t4 = constrained.replace("V100M16|V100M32", "T4").replace("p1", "p2")
    too_large = plain.replace("4000", "32001").replace("p0", "p3")
    pods = read_pods(write(f"{header}\n{constrained}\n{plain}\n{on_t4}\n{too_large}"))
    names = [arrival.name for arrival in traces.openb(nodes, pods).arrivals]
    assert sorted(names) == ["p0", "p2"]


# The synthetic stand-ins.


def test_a_seed_fixes_the_synthetic_workloads():
    assert traces.swim_jobs(3) == traces.swim_jobs(3)
    assert traces.swim_jobs(3) != traces.swim_jobs(4)
    assert traces.openb_pods(3, 50) == traces.openb_pods(3, 50)


def test_synthetic_jobs_are_as_large_as_those_of_the_sample():
    maps = np.array([job.maps(10**9) for job in traces.swim_jobs(0, hours=48)])
    assert len(maps) == pytest.approx(277 * 48, rel=0.05)
    for least, most, share in ((1, 1, 0.813), (2, 20, 0.081), (501, 1_500, 0.024)):
        assert ((maps >= least) & (maps <= most)).mean() == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("count", [1, 14, 100, 1_523])
def test_a_synthetic_cluster_has_as_many_nodes_as_were_asked_for(count):
    assert len(traces.openb_nodes(count)) == count


def test_synthetic_pods_are_constrained_as_often_as_those_of_the_list():
    pods = traces.openb_pods(1, 8_000)
    with_gpus = [pod for pod in pods if "gpus" in pod.need]
    assert sum(bool(pod.models) for pod in with_gpus) / len(with_gpus) == pytest.approx(
        1 / 3, abs=0.03
    )
    assert np.median([pod.life_s for pod in pods]) == pytest.approx(540, rel=0.1)
    models = {node.model for node in traces.openb_nodes(1_523)}
    assert all(pod.models & models for pod in with_gpus if pod.models)


def test_missing_traces_are_replaced_and_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("MESOS_ALLOCATOR_TRACES", str(tmp_path))
    scenario, source = catalogue.swim(seed=0, agents=5, hour=21, scale=0.1)
    assert source.startswith("synthetic")
    assert len(scenario.agents) == 5
    scenario, source = catalogue.openb(seed=0, agents=20, scale=0.01)
    assert source.startswith("synthetic")
    assert 15 <= len(scenario.agents) <= 25
    assert scenario.jobs == pytest.approx(82, abs=2)
