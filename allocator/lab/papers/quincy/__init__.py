"""Isard et al., Quincy: scheduling by a flow of minimum cost."""
