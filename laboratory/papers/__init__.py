"""Tables, figures and examples of the papers, computed by the real components; one module a paper.

Each function computes one of them and returns a `report.Report`.

Start with `report`, then `drf`.
"""
