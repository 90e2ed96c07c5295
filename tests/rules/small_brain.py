"""The state of a case as the module's brain is told it, and what becomes of the wish there.

The brain runs in this process, by a script (`mesos-module/tests/brain` has more of them).
"""

import re
from pathlib import Path

from allocator.core import Kind, format_amount
from tests.rules.cases import Case, Wish, amounts_of, object_of
from tests.rules.small_master import UNKNOWN, SmallMaster
from tests.simulation.brain import Brain

SPEAKS = re.compile(r"outcomes: 1:(?P<reason>\S+?)(?:=(?P<amounts>\S+))?$")
UNBOUND = 99
CAPABILITIES = {
    "GPU_RESOURCES": "gpus",
    "REGION_AWARE": "region",
    "RESERVATION_REFINEMENT": "refinement",
    "REVOCABLE_RESOURCES": "revocable",
    "SHARED_RESOURCES": "shared",
}
LEFT_OUT = ("+label", "+provider", "+static", "+raw=", "rebound", "old=HIERARCHICAL_ROLE")
"""What a script has no word for; every raw disk is space there."""


def can_be_told(case: Case) -> bool:
    """Whether scripts have words for all of the case."""
    # A master refuses quotas below the top, so a module never has one.
    below = any(line[0] in {"guarantee", "limit"} and "/" in line[1] for line in case.state)
    left_out = any(part in word for line in case.state for word in line for part in LEFT_OUT)
    return not below and not left_out


def verdict(case: Case, library: Path) -> tuple[str, dict[str, int]]:
    """The reason, and what is offered, by the names that scripts have for kinds."""
    brain = Brain(library, in_bytes=False)
    try:
        for line in script(case):
            said = brain.run(line)
    finally:
        brain.close()
    (found,) = filter(None, map(SPEAKS.match, said))
    reason = found["reason"].upper().replace("-", "_")
    if reason == "OFFERED":
        return reason, named(_wish(case))
    parts = (part.rpartition(":") for part in (found["amounts"] or "").split(";") if part)
    amounts = {name: round(1000 * float(amount)) for name, _, amount in parts}
    return reason, {name: amount for name, amount in amounts.items() if amount}


def named(amounts: Wish) -> dict[str, int]:
    """Amounts by the names of their kinds in scripts."""
    return {_kind(kind): amount for kind, amount in amounts.items()}


def _kind(kind: Kind) -> str:
    name = kind.name + f"({kind.reserved_role})" * bool(kind.depth)
    name += f"[{kind.form}]" * bool(kind.form)
    return name + "{revocable}" * kind.revocable + "{shared}" * kind.shared


def _piece(word: str) -> str:
    """An object, as scripts write it."""
    resource, amount = object_of(word)
    roles = "+".join(each.role for each in resource.reservations)
    form = "volume" if resource.persistence else resource.source
    which = resource.persistence or resource.source_id
    text = resource.name + f"({roles})" * bool(roles)
    text += f"[{form}{':' * bool(which)}{which}]" * bool(form)
    text += "{revocable}" * resource.revocable + "{shared}" * resource.shared
    return f"{text}:{format_amount(amount) if resource.scalar else f'[1-{amount // 1000}]'}"


def _pieces(words: list[str]) -> str:
    return ";".join(map(_piece, words))


def script(case: Case) -> list[str]:
    """The case as lines of a script."""
    state = case.state

    def those(word: str) -> list[list[str]]:
        return [line[1:] for line in state if line[0] == word]

    holds_back = bool(those("paused") or those("recovering"))
    head = "initialize fallback=0"
    head += "".join(f" region={line[0]}" for line in those("region"))
    head += " filter-gpus=0" * bool(those("gpus-for-everybody"))
    if minimums := those("minimum"):
        head += " minimum=" + "|".join(";".join(line) for line in minimums)
    lines = [head, "recover agents=100 guarantee.nobody=gold:1" if holds_back else "recover"]
    lines += [f"whitelist {' '.join(line)}".strip() for line in those("whitelist")]
    lines += [_framework(case, line) for line in those("framework")]
    for line in those("agent"):
        lines += _agent(case, line)
    lines += [f"exclude {' '.join(line)}" for line in those("excluded")]
    for role in dict.fromkeys(line[0] for line in [*those("guarantee"), *those("limit")]):
        parts = [
            f"{what}={';'.join(_of_role(those(what), role))}" for what in ("guarantee", "limit")
        ]
        lines.append(f"quota {role} {' '.join(parts)}")
    lines += ["welcomed", "connected", "settle"]
    for framework, role, agent, life_ms, *objects in those("refused"):
        refuse = f"refuse={int(life_ms) + 1}"
        lines.append(f"release {agent} {framework} @{role}={_pieces(objects)} {refuse}")
    lines += [f"pass {line[0]}" for line in those("later")]
    return [*lines, "settle", _answer(case)]


def _of_role(lines: list[list[str]], role: str) -> list[str]:
    return [quantity for line in lines if line[0] == role for quantity in line[1:]]


def _framework(case: Case, line: list[str]) -> str:
    name, *roles = line
    words = [word for other in case.state if other[:2] == ["framework-is", name] for word in other]
    able = [CAPABILITIES[word[4:]] for word in words if word.startswith("can=")]
    suppressed = [word.partition("=")[2] for word in words if word.startswith("suppressed=")]
    text = f"add-framework {name} roles={','.join(roles)} capabilities={','.join(able)}"
    text += f" suppressed={','.join(suppressed)}" * bool(suppressed)
    text += " active=0" * ("inactive" in words) + " old=1" * ("old=MULTI_ROLE" in words)
    for role in roles:
        own = [other[3:] for other in case.state if other[:3] == ["framework-minimum", name, role]]
        if own:
            least = "|".join(";".join(each) for each in own if each != ["none"])
            text += f" minimum.{role}={least}"
    return text


def _agent(case: Case, line: list[str]) -> list[str]:
    name, *objects = line
    words = [word for other in case.state if other[:2] == ["agent-is", name] for word in other]
    held: dict[str, list[str]] = {}
    for other in case.state:
        if other[0] in {"used", "offered", "refused"} and other[3] == name:
            skipped = 5 if other[0] == "refused" else 4
            held.setdefault(f"used.{other[1]}@{other[2]}", []).extend(other[skipped:])
    text = f"add-agent {name} total={_pieces(objects)}"
    text += "".join(f" {word}" for word in words if word.startswith(("host=", "region=")))
    text += " unavailable=0" * ("maintained" in words) + " old=1" * ("old=MULTI_ROLE" in words)
    text += "".join(f" {key}={_pieces(pieces)}" for key, pieces in held.items())
    return [text, *[f"deactivate-agent {name}"] * ("inactive" in words)]


def _wish(case: Case) -> Wish:
    if not case.wants_all:
        return amounts_of(case.wish[3:])
    master = SmallMaster(case)
    kinds, wish = master.ledger.kinds.kinds, master.decision
    return {kinds[kind]: amount for kind, amount in zip(wish.kinds, wish.amounts, strict=True)}


def _answer(case: Case) -> str:
    framework, role, agent, *objects = case.wish
    if UNKNOWN in case.wish[:3] or not objects:
        handles = "@".join(str(UNBOUND) if name == UNKNOWN else "1" for name in case.wish[:3])
        return f"answer raw@{handles}={'0:1000' if objects else ''}"
    wish = named(_wish(case))
    text = ";".join(f"{name}:{format_amount(amount)}" for name, amount in wish.items())
    return f"answer {framework}@{role}@{agent}={text}"
