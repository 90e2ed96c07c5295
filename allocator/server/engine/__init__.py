"""The thread that owns the core, and what it needs: sessions, journal, record stream, plans.

Begin with `core_loop`.
"""
