"""Fixtures of the tests that need containers."""

from tests.deploy.containers import engine

__all__ = ["engine"]
