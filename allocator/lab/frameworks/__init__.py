"""Models of frameworks: what they do with offers."""
