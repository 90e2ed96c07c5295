"""What commands print, as tables and words.

Begin with `tables`. What is printed comes as messages or records; nothing is asked for here.
"""
