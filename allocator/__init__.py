"""Decide, for an Apache Mesos master, who is offered which agent's resources."""

import os

__version__ = "0.1.0"

# Read when gRPC is imported, whoever imports it. Its handlers would start threads of its own in a
# process that `server/system/frozen.py` forks, and hold the core's thread up.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

# Read when numpy is imported. A library of linear algebra that has threads waits for them when a
# process is forked, and holds the interpreter's lock meanwhile: with one in the middle of a
# product the fork never returns. Matrices of the solvers are small, and one thread is faster.
for _library in ("OPENBLAS", "GOTO", "OMP", "MKL", "BLIS"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"
