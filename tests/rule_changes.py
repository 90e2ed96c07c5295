"""Requests to change rules."""

from typing import Any

from allocator.v1 import admin_pb2 as pb
from allocator.v1 import settings_pb2 as spb


def rule_change(
    *,
    remove: bool = False,
    to_all: bool = False,
    dry_run: bool = False,
    force: bool = False,
    **rule: Any,
) -> pb.ChangeRuleRequest:
    """Make a request from a rule, named as its kind: `limit=spb.Limit(...)`."""
    change = spb.OperatorChange(remove=remove, **rule)
    return pb.ChangeRuleRequest(change=change, all=to_all, dry_run=dry_run, force=force)


def listed(response: pb.ListRulesResponse | pb.ChangeRuleResponse) -> list[Any]:
    """Return the rules in a response, each as the message of its kind."""
    return [getattr(each, each.WhichOneof("change") or "") for each in response.rules]
