"""Commands of the laboratory: demo, simulations, papers, torture."""
