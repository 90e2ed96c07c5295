"""The stages of a cycle.

First those are served who are owed part of a guarantee, as far as it brings them nearer to it; then
those who waited too long, with one grant each; then everybody; at last, what is reserved and makes
no whole task is offered to those it is reserved for.
"""

GUARANTEED, OVERDUE, USUAL, LEFT_OVER = range(4)
