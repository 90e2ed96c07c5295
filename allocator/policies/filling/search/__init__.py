"""Finds where the next grant is made, by indices over agents, so that steps do not scan all agents.

Start with `agent_index`.
"""
