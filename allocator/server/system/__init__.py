"""Access to the operating system, independent of the allocator: files, threads, cached loops.

Start with `lasting`, which restarts and reports failed threads.
"""
