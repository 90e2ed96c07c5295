"""Tables of results; makes no calls."""
