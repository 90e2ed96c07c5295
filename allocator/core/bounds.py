"""Bounds on untrusted input, each with its reason.

Frameworks and agents may send anything that Mesos accepts; these bounds limit its cost. Input
beyond a bound is ignored and reported, see `SetAside`, which affects only its sender. Ordinary
frameworks stay far below all bounds. The module's own bounds
(`mesos-module/brain/user_input/bounds.hpp`) are smaller or equal, so the sidecar accepts what the
module sends. `wire.codec.validation.TEXT_LENGTH_MAX` bounds the length of any text, and `limits` in
the configuration the number of agents, frameworks, roles, clients and kinds.
"""

CAPACITY_MAX = 2**43 + 1
"""Maximum capacity of one kind on one agent, in thousandths, so that sums over all agents fit an
int64. Larger capacities, which are never real, are reduced to this value; they stay there after an
operation on a part of them. The module reports at most 8 PB of disk.
"""

LABELS_MAX = 256
"""Maximum number of labels kept per framework. Those that the sidecar reads are kept first."""

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
"""Entries of one REQUEST call that are read."""

UNLIKE_MAX = 16
"""Different tasks of a gang: each is compared with all agents."""

ALTERNATIVES_MAX = 16
"""Alternatives of a minimum: each is compared with each offer."""

CLAUSES_MAX = 128
"""Maximum number of clauses of a constraint, as each may need another attribute of each agent."""

CLAUSE_VALUES_MAX = 4096
"""Maximum number of values, such as host names, in all clauses of a constraint together."""

ROLES_OF_FRAMEWORK_MAX = 4096
"""Maximum number of roles in which a framework is served; `limits.clients` bounds the total."""

FRAMEWORK_FILTERS_MAX = 400_000
"""Filters of one framework, enough to refuse all of 50,000 agents in eight roles. While it has as
many, it gets no offers, so that it does not add more."""

FILTER_BYTES_MAX = 2**32
"""Maximum size of all filters, each of which has an amount for each of the callers' kinds."""

RULE_NAME_BYTES_MAX = 4096
"""Maximum size of a role, pattern or agent in an operator's rule; the same as in the module."""

ROWS_MAX = 16
"""Maximum number of reports of ignored input per framework or agent."""

ROW_TEXT_MAX = 200
"""Maximum number of characters in the text of a report of ignored input."""

ROW_FIELD_MAX = 64
"""Maximum number of characters in the field's name of a report of ignored input."""

QUOTED_MAX = 40
"""Maximum number of characters of untrusted text quoted in a report of ignored input."""


def harmless(text: str, length_max: int) -> str:
    r"""Shorten untrusted text, and replace unprintable characters.

    >>> harmless("a\x1b[31mred\u202e" + 9 * "x", 12)
    'a?[31mred...'
    """
    shown = text if len(text) <= length_max else f"{text[: length_max - 3]}..."
    return "".join(sign if sign.isprintable() else "?" for sign in shown)


def refuse_long(text: str) -> None:
    if (length := len(text.encode())) > RULE_NAME_BYTES_MAX:
        raise ValueError(f"has {length} bytes; at most {RULE_NAME_BYTES_MAX} are taken, shorten it")


def quoted(text: str) -> str:
    r"""Format untrusted text for a message: shortened, printable, in quotes.

    >>> quoted("cpus:\n1")
    "'cpus:?1'"
    """
    return f"'{harmless(text, QUOTED_MAX)}'"
