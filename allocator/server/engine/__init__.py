"""The thread that owns the core, and what it uses: sessions, journal, record stream, plans.

Start with `core_loop`.
"""
