"""What the operating system and users' code are taken through: files, threads, compiled loops.

Knows nothing of the allocator's service.

Begin with `lasting`: no thread of ours dies in silence.
"""
