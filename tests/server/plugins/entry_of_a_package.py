"""The module of a package with a policy that an entry point names."""

from allocator.policies import filled_by
from allocator.policies.drf import drf

ENTRY = filled_by(lambda: drf)
