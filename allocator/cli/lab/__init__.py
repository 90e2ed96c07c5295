"""Commands of the laboratory: demo, simulations, papers, torture.

Begin with `demo`. They import the laboratory, and only when they run.
"""
