"""The papers' tables, figures and examples, computed by the real parts; one file a paper.

Each function computes one of them and returns a `report.Report`.
"""
