"""The sidecar as a process: sockets, threads, files, time. The first host of the core."""
