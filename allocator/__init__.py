"""Decide which frameworks an Apache Mesos master offers each agent's resources to."""

import os

__version__ = "1.0.0"

# Must be set before gRPC is first imported. Its fork handlers would start threads in a process
# that `server/system/frozen.py` forks, and delay the core's thread.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

# Must be set before numpy is first imported. A multithreaded linear algebra library waits for its
# threads on fork while it holds the GIL; in the middle of a product, the fork would never return.
# The solvers' matrices are small, so one thread is also faster.
for _library in ("OPENBLAS", "GOTO", "OMP", "MKL", "BLIS"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"
