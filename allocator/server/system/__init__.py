"""Access to the operating system: files, threads, the cache of compiled loops.

Independent of the allocator's service.

Start with `lasting`, which restarts and reports failed threads.
"""
