"""The sidecar as a process: sockets, threads, files, time.

Start with `process/main`, which assembles everything, then `engine/core_loop`.
"""
