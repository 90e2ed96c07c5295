"""Operators' own scenarios: a TOML file, read strictly, and the workload drawn from it.

Start with `schema`, the format of the file.
"""
