"""What one task of a framework needs: stated by operators or the framework, learned, or remembered.

Start with `sources`, which has their precedence.
"""
