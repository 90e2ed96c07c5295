"""Bounds on untrusted input, each with its reason.

Frameworks and agents may send anything that Mesos accepts; these bounds limit its cost. Input
beyond a bound is ignored and reported, see `SetAside`, which affects only its sender. Ordinary
frameworks stay far below all bounds. `limits` in the configuration bounds the number of agents,
frameworks, roles, clients and kinds of a session. The module's own bounds
(`mesos-module/brain/user_input/bounds.hpp`) are smaller or equal, so the sidecar accepts what the
module sends.
`wire.codec.validation.TEXT_LENGTH_MAX` bounds the length of any text.
"""

CAPACITY_MAX = 2**43 + 1
"""Maximum capacity of one kind on one agent, in thousandths, so that sums over all agents fit an
int64. Larger capacities are reduced to this value. An operation on a part of such a capacity leaves
it at this value, because the true amount is unknown. Real capacities are never reduced: the module
reports at most 8 PB of disk.
"""

LABELS_MAX = 256
"""Labels kept per framework, those that the sidecar reads first: checkpoints copy each label."""

DEMAND_LENGTH_MAX = 4096
"""Characters of a demand, enough for a hundred resources: it is parsed at each update."""

DEMAND_NAMES_MAX = 64
"""Resources in a demand, or in one alternative of a minimum: each is looked up."""

AMOUNT_LENGTH_MAX = 64
"""Characters of a number: longer ones are no valid amounts, and expensive to parse."""

GANG_LENGTH_MAX = 64
"""Characters of the size of a gang: it is parsed at each update."""

GANG_TASKS_MAX = 100_000
"""Tasks of a gang: a cycle looks for room for all of them."""

REQUESTS_MAX = 64
"""Entries of one REQUEST call that are read; the first non-empty one counts."""

ALTERNATIVES_MAX = 16
"""Alternatives of a minimum: each is compared with each offer."""

CLAUSES_MAX = 128
"""Clauses of a constraint: each may need another attribute of each agent."""

CLAUSE_VALUES_MAX = 4096
"""Values in all clauses of a constraint, such as host names: each is parsed at each update."""

ROLES_OF_FRAMEWORK_MAX = 4096
"""Roles in which one framework is served: each makes a client, bounded by `limits.clients`."""

FILTER_BYTES_MAX = 2**32
"""Total bytes of filters: the size of one grows with the number of kinds, which is untrusted."""

RULE_NAME_BYTES_MAX = 4096
"""Bytes of a role, pattern or agent in an operator's rule: it appears in tables, logs and files.
The module accepts as many bytes for a role."""

ROWS_MAX = 16
"""Reports of ignored input per framework or agent: they are kept, copied and shown."""

ROW_TEXT_MAX = 200
"""Characters of the text in such a report, which appears in logs, tables and pages."""

ROW_FIELD_MAX = 64
"""Characters of the field's name in such a report."""

QUOTED_MAX = 40
"""Characters of untrusted text quoted in such a report."""


def harmless(text: str, length_max: int) -> str:
    r"""Shorten untrusted text, and replace unprintable characters.

    >>> harmless("a\x1b[31mred\u202e" + 9 * "x", 12)
    'a?[31mred...'
    """
    shown = text if len(text) <= length_max else f"{text[: length_max - 3]}..."
    return "".join(sign if sign.isprintable() else "?" for sign in shown)


def refuse_long(text: str) -> None:
    """Raise a ValueError if a name in a rule is too long."""
    if (length := len(text.encode())) > RULE_NAME_BYTES_MAX:
        raise ValueError(f"has {length} bytes; at most {RULE_NAME_BYTES_MAX} are taken, shorten it")


def quoted(text: str) -> str:
    r"""Format untrusted text for a message: shortened, printable, in quotes.

    >>> quoted("cpus:\n1")
    "'cpus:?1'"
    """
    return f"'{harmless(text, QUOTED_MAX)}'"
