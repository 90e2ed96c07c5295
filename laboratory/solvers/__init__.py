"""Solvers that only papers and experiments use; they follow the rules of `allocator.solvers`."""
