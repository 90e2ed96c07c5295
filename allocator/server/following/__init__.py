"""The observer's books, which follow the deciding process, and computations on them.

Start with `books.FollowedBooks`.
"""
