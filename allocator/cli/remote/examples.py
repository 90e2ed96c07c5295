"""Examples below the help of commands that speak to a sidecar, without the program's name."""

from collections.abc import Mapping

EXAMPLES: Mapping[str, str] = {
    "policy_set": "policy set ps-dsf --mode characterised --dry-run",
    "demand_set": "demand set 'cpus:2;mem:2048' --framework-name 'spark*'",
    "demand_remove": "demand remove --framework-name 'spark*'",
    "constraint_set": "constraint set 'zone=a|b; ssd' --role 'eng/*'",
    "constraint_remove": "constraint remove --role 'eng/*'",
    "limit_set": "limit set eng/ads 'cpus:20;mem:65536'",
    "limit_remove": "limit remove eng/ads",
    "weight_set": "weight set 2 --framework-name 'spark-etl'",
    "weight_remove": "weight remove --framework-name 'spark-etl'",
    "drain_set": "drain set 10.0.0.7 10.0.0.8",
    "drain_remove": "drain remove 10.0.0.7",
    "shadow_set": "shadow set tsf --mode characterised",
    "settings_reset": "settings reset policy shadow",
    "framework": "explain framework spark-pi",
    "role": "explain role eng/ads --cycles 30",
    "agent": "explain agent 10.0.0.7",
    "shares": "shares --role eng --fair",
    "dump": "dump --output state.json",
    "snapshot": "snapshot report.journal --anonymise",
    "top": "top --role eng --interval 5",
}
"""By the name of the command's function."""
