"""The configuration to paste, and the call for quotas."""

import json

from allocator.core import PolicySpec
from allocator.lab.advise.advising import Report
from allocator.lab.advise.limits import cut_down


def toml_of(spec: PolicySpec) -> str:
    """Write a policy as the section of a configuration.

    >>> print(toml_of(PolicySpec("choosy", parameters={"unit": "tasks"})), end="")
    [policy]
    name = "choosy"
    selection = ""
    mode = "oblivious"
    flat = false
    <BLANKLINE>
    [policy.parameters]
    "unit" = "tasks"
    """
    lines = ["[policy]", f"name = {_text(spec.name)}", f"selection = {_text(spec.selection)}"]
    lines += [f"mode = {_text(spec.mode)}", f"flat = {str(spec.flat).lower()}"]
    for table, values in (("parameters", spec.parameters), ("subtrees", spec.subtrees)):
        if values:
            lines += ["", f"[policy.{table}]"]
            lines += [f"{_text(key)} = {_text(value)}" for key, value in sorted(values.items())]
    return "\n".join(lines) + "\n"


def to_paste(report: Report) -> str:
    """Write the policy to have in force: the one that is advised, or the one that is."""
    spec = report.advice.spec or report.now
    note = "as it is" if report.advice.spec is None else "as advised"
    return f"# The policy {note}: for config.toml, then SIGHUP.\n{toml_of(spec)}"


def quota_calls(report: Report) -> str:
    """Write the operators' call to the master with guarantees cut down; empty: none is advised."""
    changed = cut_down(report.days[-1].day, report.bounds) if report.quotas is not None else {}
    if not changed:
        return ""
    configs = [
        {
            "role": role,
            "guarantees": {name: {"value": n / 1000} for name, n in quota.guarantees.items()},
            "limits": {name: {"value": n / 1000} for name, n in quota.limits.items()},
        }
        for role, quota in changed.items()
    ]
    call = {"type": "UPDATE_QUOTA", "update_quota": {"quota_configs": configs}}
    return json.dumps(call, indent=2) + "\n"


def _text(text: str) -> str:
    # A basic string of TOML has the escapes of JSON.
    return json.dumps(text)
