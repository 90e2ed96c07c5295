"""Scenarios of an operator's own: a TOML file, read strictly, and what is drawn from it.

Begin with `schema`: what a file may say.
"""
