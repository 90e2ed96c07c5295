"""Seeded stand-ins for the traces, for machines that do not have the files.

The tables are summaries of the files: of FB-2009 sample 1 for SWIM, of the node list and of the pod
list with a third of the pods constrained for openb. What is drawn has the same marginal
distributions; what holds between the columns is kept only as far as it is in one row of a table.
"""

import numpy as np

from allocator.core import MILLI
from allocator.lab.workloads.traces import BLOCK_BYTES, HOUR_S, Node, Pod, SwimJob

JOBS_PER_HOUR = 277

MAPS = (
    # Share of the jobs, least and most map tasks.
    (0.813, 1, 1),
    (0.081, 2, 20),
    (0.021, 21, 60),
    (0.020, 61, 150),
    (0.022, 151, 300),
    (0.009, 301, 500),
    (0.024, 501, 1_500),
    (0.010, 1_501, 4_000),
)

NODES = (
    # Count, thousandths of CPUs, MiB, GPUs, model.
    (549, 96_000, 393_216, 8, "G2"),
    (387, 104_000, 524_288, 2, "T4"),
    (129, 32_000, 262_144, 0, ""),
    (107, 16_000, 122_880, 2, "P100"),
    (89, 96_000, 458_752, 0, ""),
    (39, 128_000, 786_432, 8, "G3"),
    (92, 64_000, 262_144, 0, ""),
    (35, 32_000, 131_072, 4, "V100M16"),
    (19, 8_000, 32_768, 1, "V100M16"),
    (24, 64_000, 262_144, 2, "P100"),
    (21, 96_000, 786_432, 8, "V100M32"),
    (17, 96_000, 393_216, 4, "T4"),
    (9, 48_000, 376_832, 4, "V100M32"),
    (6, 64_000, 262_144, 8, "V100M16"),
)

PODS = (
    # Count, thousandths of CPUs, MiB, GPUs, thousandths of each.
    (1_592, 3_152, 5_600, 1, 470),
    (787, 11_300, 30_517, 1, 1_000),
    (786, 11_908, 47_104, 1, 1_000),
    (1_148, 11_400, 49_152, 1, 1_000),
    (1_078, 8_000, 24_576, 1, 810),
    (666, 4_000, 22_888, 1, 320),
    (534, 12_500, 48_128, 1, 1_000),
    (377, 12_000, 57_344, 1, 650),
    (44, 64_000, 262_144, 8, 1_000),
    (32, 32_000, 131_072, 4, 1_000),
    (1_088, 8_000, 16_384, 0, 0),
)

MODELS = (
    # Share of the pods with GPUs, what they can use.
    (0.662, ""),
    (0.183, "T4"),
    (0.047, "G2"),
    (0.040, "P100"),
    (0.023, "V100M16|V100M32"),
    (0.015, "P100|V100M16|V100M32"),
    (0.012, "G3"),
    (0.010, "P100|T4|V100M16|V100M32"),
    (0.008, "V100M32"),
)

QOS = ((0.57, "LS"), (0.417, "BE"), (0.012, "Burstable"), (0.001, "Guaranteed"))

LIFE_MEDIAN_S = 540.0
LIFE_SIGMA = 1.95


def swim_jobs(seed: int, hours: int = 1) -> list[SwimJob]:
    """Jobs that arrive as a Poisson process, with as many maps as those of the sample."""
    chance = np.random.default_rng(seed)
    count = int(chance.poisson(JOBS_PER_HOUR * hours))
    submit_s = np.sort(chance.integers(0, HOUR_S * hours, count))
    bucket = chance.choice(len(MAPS), count, p=_shares([row[0] for row in MAPS]))
    jobs = []
    for number in range(count):
        _, least, most = MAPS[bucket[number]]
        maps = round(float(np.exp(chance.uniform(np.log(least), np.log(most)))))
        jobs.append(SwimJob(f"job{number}", int(submit_s[number]), maps * BLOCK_BYTES, 0, 0))
    return jobs


def openb_nodes(count: int) -> list[Node]:
    """So many nodes, of every model in proportion, one of each at least where there is room."""
    share = np.array([row[0] for row in NODES], float)
    wanted = np.maximum(np.floor(share / share.sum() * count), 1).astype(int)
    rows = [index for index in range(len(NODES)) for _ in range(wanted[index])]
    rows = (rows + [0] * count)[:count] if len(rows) < count else rows[:count]
    nodes = []
    for number, index in enumerate(rows):
        _, cpus, mem, gpus, model = NODES[index]
        capacity = {"cpus": cpus, "mem": mem * MILLI}
        if gpus:
            capacity["gpus"] = gpus * MILLI
        nodes.append(Node(f"node-{number:04d}", capacity, model))
    return nodes


def openb_pods(seed: int, count: int) -> list[Pod]:
    """So many pods, at a steady rate of one a second; arrivals are rescaled anyway."""
    chance = np.random.default_rng(seed)
    shape = chance.choice(len(PODS), count, p=_shares([row[0] for row in PODS]))
    models = chance.choice(len(MODELS), count, p=_shares([row[0] for row in MODELS]))
    qos = chance.choice(len(QOS), count, p=_shares([row[0] for row in QOS]))
    life_s = np.exp(chance.normal(np.log(LIFE_MEDIAN_S), LIFE_SIGMA, count))
    gap_s = chance.exponential(1.0, count).cumsum()
    pods = []
    for number in range(count):
        _, cpus, mem, gpus, gpu = PODS[shape[number]]
        need = {"cpus": cpus, "mem": mem * MILLI, "gpus": gpus * gpu}
        spec = MODELS[models[number]][1] if gpus else ""
        pods.append(
            Pod(
                name=f"pod-{number:04d}",
                need={name: amount for name, amount in need.items() if amount},
                models=frozenset(filter(None, spec.split("|"))),
                qos=QOS[qos[number]][1],
                create_s=int(gap_s[number]),
                life_s=max(1, round(float(life_s[number]))),
            )
        )
    return pods


def _shares(weights: list[float] | list[int]) -> np.ndarray:
    share = np.array(weights, float)
    return share / share.sum()
