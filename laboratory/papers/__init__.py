"""Tables, figures and examples of the papers, computed by the real components; one file a paper.

Each function computes one of them and returns a `report.Report`.

Begin with `report`, then `drf`.
"""
