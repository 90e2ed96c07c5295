"""The sidecar as a process: sockets, threads, files, time. The first host of the core.

Start with `process/main`, which assembles everything, then `engine/core_loop`.
"""
