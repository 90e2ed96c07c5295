"""The observer's books: what follows the process that decides, and what is worked out of them.

Begin at `books.FollowedBooks`.
"""
