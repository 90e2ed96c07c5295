"""What one task of a framework needs: stated, learnt, remembered, or read from its own words.

Begin with `sources`, which tells their order.
"""
