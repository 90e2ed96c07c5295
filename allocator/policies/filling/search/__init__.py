"""Where the next grant goes: indexes over agents, so that a step does not look at all of them.

Begin with `agent_index`.
"""
