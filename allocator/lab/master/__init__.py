"""The emulated master: its books, its gates, its end of the session, and what Mesos does to it."""
