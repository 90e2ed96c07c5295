"""The journal: its records, their framing in a file, and their replay. Start with `records`."""
