"""Cost of questions for the deciding process, and the lag of its observer.

python -m tests.bench.bench_observer [--agents 50000] [--frameworks 1000]

A real sidecar has a session with a large cluster, all of which is offered and released repeatedly:
first without questions, then while one operator asks for an explanation of a hostile tenant all the
time, then while eight operators ask the most expensive questions. These are why a tenant that
excludes every agent in ten roles gets nothing, fair shares, dumps, and dry runs. Times of the
processes are processor times, from /proc.
"""

import argparse
import os
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import grpc

from allocator.core import CONSTRAINT_LABEL, AddFramework, Define, FrameworkInfo
from allocator.v1 import admin_pb2 as pb
from allocator.v1 import admin_pb2_grpc, explain_pb2, settings_pb2
from tests.bench.cluster import arrivals
from tests.server.sidecar_process import GrpcModule, SidecarProcess
from tests.world.rows import given_back, holdings_of, settled

ROUNDS = 40
OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0)]


def cpu_s(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> float:
    """Memory of a process, including its part of shared memory."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(text.partition("\nPss:")[2].split(maxsplit=1)[0]) / 1024


def begun(module: GrpcModule, agents: int, frameworks: int) -> None:
    """Send the cluster in batches; it includes a tenant whose constraint excludes every agent."""
    module.begin(())
    waiting = list(arrivals(agents, frameworks))
    for at in range(0, len(waiting), 2000):
        module.batch(*waiting[at : at + 2000])
    roles = {5000 + number: f"hostile/{number}" for number in range(10)}
    module.batch(Define({}, {4999: "hostile", **roles}))
    clauses = ";".join(f"!x{number}" if number > 7 else f"none{number}" for number in range(128))
    info = FrameworkInfo("hostile", name="hostile", labels={CONSTRAINT_LABEL: clauses})
    module.batch(AddFramework(frameworks + 1, info, tuple(roles)))


def cycles(module: GrpcModule, sidecar: SidecarProcess) -> tuple[list[float], float]:
    """Release everything that a cycle offers; returns times of the answers, and processor time."""
    took_s, before_s = [], cpu_s(sidecar.process.pid)
    for _ in range(ROUNDS):
        begun_s = time.monotonic()
        made = module.batch(cycle=True)
        took_s.append(time.monotonic() - begun_s)
        if len(made):
            module.batch(settled(made), given_back(holdings_of(made), 0))
    return took_s, (cpu_s(sidecar.process.pid) - before_s) / ROUNDS


def questions(stub: admin_pb2_grpc.AdminServiceStub) -> list[Callable[[], object]]:
    hostile = explain_pb2.ExplainRequest(framework="hostile")
    tsf = pb.SetPolicyRequest(policy=settings_pb2.Policy(name="tsf"), dry_run=True)
    return [
        lambda: stub.Explain(hostile, timeout=60),
        lambda: stub.Explain(explain_pb2.ExplainRequest(role="hostile"), timeout=60),
        lambda: stub.GetShares(pb.GetSharesRequest(fair=True), timeout=60),
        lambda: sum(len(each.json) for each in stub.Dump(pb.DumpRequest(), timeout=60)),
        lambda: stub.SetPolicy(tsf, timeout=60),
        lambda: stub.Explain(explain_pb2.ExplainRequest(agent="agent-7"), timeout=60),
        lambda: stub.GetShares(pb.GetSharesRequest(), timeout=60),
        lambda: stub.ListSettings(pb.ListSettingsRequest(), timeout=60),
    ]


def views(
    stub: admin_pb2_grpc.AdminServiceStub, sidecar: SidecarProcess
) -> dict[str, Callable[[], object]]:
    return {
        "status": lambda: stub.GetStatus(pb.GetStatusRequest(), timeout=60),
        "page": lambda: sidecar.page_now("/"),
        "metrics": lambda: sidecar.page_now("/metrics"),
    }


def beside(
    name: str,
    asked: list[Callable[[], object]],
    viewed: dict[str, Callable[[], object]],
    module: GrpcModule,
    sidecar: SidecarProcess,
) -> None:
    """Ask all questions repeatedly, and at the same time measure cycles and views."""
    over = threading.Event()
    took_s: dict[str, list[float]] = {each: [] for each in viewed}

    def ask_on(ask: Callable[[], object]) -> None:
        while not over.is_set():
            with suppress(grpc.RpcError):
                ask()

    def look(view: str) -> None:
        while not over.is_set():
            begun_s = time.monotonic()
            viewed[view]()
            took_s[view].append(time.monotonic() - begun_s)
            time.sleep(0.2)

    threads = [threading.Thread(target=ask_on, args=(each,)) for each in asked]
    threads += [threading.Thread(target=look, args=(each,)) for each in viewed]
    for each in threads:
        each.start()
    time.sleep(1.0)
    answers_s, cost_s = cycles(module, sidecar)
    over.set()
    for each in threads:
        each.join()
    print(
        f"beside {name}: answer median {1000 * statistics.median(answers_s):.0f} ms, most"
        f" {1000 * max(answers_s):.0f}; decider {1000 * cost_s:.0f} ms a round"
    )
    for view, each_s in took_s.items():
        print(
            f"  {view} meanwhile: median {statistics.median(each_s):.2f} s, most"
            f" {max(each_s):.2f} s of {len(each_s)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=50_000)
    parser.add_argument("--frameworks", type=int, default=1000)
    given = parser.parse_args()
    with ExitStack() as stack:
        sidecar = stack.enter_context(SidecarProcess(compiled=True))
        channel = stack.enter_context(grpc.insecure_channel(sidecar.targets[0], OPTIONS))
        module, observer = GrpcModule(channel), sidecar.observer_pid
        decider, begun_s = sidecar.process.pid, time.monotonic()
        ours_s, its_s = cpu_s(decider), cpu_s(observer)
        begun(module, given.agents, given.frameworks)
        sidecar.catch_up()
        print(
            f"cluster told in {time.monotonic() - begun_s:.1f} s; processor: decider"
            f" {cpu_s(decider) - ours_s:.1f} s, observer {cpu_s(observer) - its_s:.1f} s"
        )
        first, _ = cycles(module, sidecar)
        ours_s, its_s = cpu_s(decider), cpu_s(observer)
        alone, cost = cycles(module, sidecar)
        sidecar.catch_up()
        print(
            f"alone: answer median {1000 * statistics.median(alone):.0f} ms, most"
            f" {1000 * max(alone):.0f}; decider {1000 * cost:.0f} ms a round, observer"
            f" {1000 * (cpu_s(observer) - its_s) / ROUNDS:.0f}"
        )
        print(
            f"memory: decider {memory_mib(decider):.0f} MiB, observer"
            f" {memory_mib(observer):.0f} MiB"
        )
        stub = admin_pb2_grpc.AdminServiceStub(channel)
        for number, ask in enumerate(questions(stub)):
            begun_s, its_s = time.monotonic(), cpu_s(observer)
            with suppress(grpc.RpcError):
                ask()
            print(
                f"question {number}: {time.monotonic() - begun_s:.2f} s, observer"
                f" {cpu_s(observer) - its_s:.2f} s of processor"
            )
        viewed = views(stub, sidecar)
        beside("an explanation", questions(stub)[:1], viewed, module, sidecar)
        del viewed["page"], viewed["metrics"]
        beside("eight questions", questions(stub), viewed, module, sidecar)
        assert len(first) == ROUNDS


if __name__ == "__main__":
    main()
