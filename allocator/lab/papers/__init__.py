"""The papers' tables, figures and examples, computed by the real parts; one file a paper.

Each function computes one of them and returns a `report.Report`.

Begin with `report`, then `drf`.
"""
