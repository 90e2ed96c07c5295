"""The sidecar as a process: sockets, threads, files, time. The first host of the core."""

import os

# Read when gRPC begins. Its handlers would start threads of its own in a process that
# `system/frozen.py` forks, and hold the core's thread up.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
