"""Independent checks: the books of both sides compared, and offers looked at one by one."""
