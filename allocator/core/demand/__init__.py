"""The demand of a framework: what one of its tasks needs, as stated, learnt or remembered.

Start with `sources`, which defines which of several demands is in force.
"""
