"""Finds where the next grant is made, by indices over agents, without scanning all of them.

Start with `agent_index`.
"""
