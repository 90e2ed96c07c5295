"""Decide, for an Apache Mesos master, who is offered which agent's resources."""

import os

__version__ = "0.1.0"

# Read when gRPC is imported, whoever imports it. Its handlers would start threads of its own in a
# process that `server/system/frozen.py` forks, and hold the core's thread up.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
