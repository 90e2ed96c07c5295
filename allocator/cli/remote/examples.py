"""Examples shown below the help of commands."""

from collections.abc import Mapping

from allocator.rule_kinds import RULES

EXAMPLES: Mapping[str, str] = {
    "policy_set": "policy set ps-dsf --mode characterised --dry-run",
    "shadow_set": "shadow set tsf --mode characterised",
    "settings_export": "settings export",
    "apply": "apply -f settings.toml --dry-run",
    "settings_history": "settings history --limit 20",
    "settings_revert": "settings revert 12 --dry-run",
    "settings_reset": "settings reset policy shadow",
    "framework": "explain framework spark-pi",
    "role": "explain role eng/ads --cycles 30",
    "agent": "explain agent 10.0.0.7",
    "shares": "shares --role eng --fair",
    "agents": "agents --attributes 'zone=a|b' --state drained",
    "frameworks": "frameworks --role eng --state waiting",
    "roles": "roles --role eng",
    "dump": "dump state.json",
    "snapshot": "snapshot report.journal --pseudonyms",
    "bundle": "bundle report.tar.gz --pseudonyms",
    "usage_show": "usage show --since 7d --by framework --output csv",
    "usage_reset": "usage reset --yes",
    "usage_forget": "usage forget --role eng/ads",
    "resume": "resume eng/ads",
    "schedule_remove": "schedule remove 7b5f7a25",
    "top": "top --role eng --interval 5",
    **{f"{kind.name}_set": f"{kind.name} set {kind.examples[0]}" for kind in RULES},
    **{
        f"{kind.name}_{kind.removes}": f"{kind.name} {kind.removes} {kind.examples[1]}"
        for kind in RULES
    },
    "budget_credit": "budget credit eng/ads 'gpus:20h'",
}
"""Arguments, by the name of the command's function."""
