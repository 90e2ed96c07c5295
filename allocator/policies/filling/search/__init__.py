"""Find where the next grant goes: indexes over agents, so that a step does not scan all of them.

Start with `agent_index`.
"""
