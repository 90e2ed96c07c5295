"""Commands of the laboratory: demo, simulations, papers, advice.

Begin with `demo`. To keep `--help` quick, a command imports the laboratory only when it runs.
"""
