"""Answers to all queries. Start with `views`."""
