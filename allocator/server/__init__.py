"""The sidecar as a process: sockets, threads, files, time. The first host of the core.

Begin with `process/main`, which puts all together, then `engine/core_loop`.
"""
