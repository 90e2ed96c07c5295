"""The observer's books: what follows the process that decides, and what is computed from them.

Begin at `books.FollowedBooks`.
"""
