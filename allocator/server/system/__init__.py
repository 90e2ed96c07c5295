"""What the operating system and users' code are taken through: files, threads, compiled loops.

Knows nothing of the allocator's service.
"""
