"""How much of strangers' words the sidecar takes: one table, each bound with its reason.

Frameworks and agents may say whatever Mesos lets them say. What that costs here is bounded.
Nonsense harms only the one who says it: that framework is served as if it had not said it, see
`SetAside`. No honest framework comes near any of these bounds. `limits` in the configuration bounds
how many agents, frameworks, roles, clients and kinds a session has. The module's own bounds
(`mesos-module/brain/user_input/bounds.hpp`) are smaller or equal, so what it lets through is taken.
`wire.codec.validation.TEXT_LENGTH_MAX` bounds the length of any text.
"""

CAPACITY_MAX = 2**43 + 1
"""Thousandths of one kind on one agent: so the sum over all agents stays an int64. Larger amounts
are cut down to this, and then the rest after an operation on part of them is unknown. No
honest amount is cut: a module reports at least one less of any object (8 PB of disk at most)."""

LABELS_MAX = 256
"""Labels of a framework that are kept: each is copied with every checkpoint. Ours are first."""

DEMAND_LENGTH_MAX = 4096
"""Characters of a demand: a hundred resources by name take no more. It is read at each update."""

DEMAND_NAMES_MAX = 64
"""Resources that a demand, or one alternative of a minimum, names: each is looked up."""

AMOUNT_LENGTH_MAX = 64
"""Characters of a number: what has more digits is no amount, and costs time to be found none."""

REQUESTS_MAX = 64
"""Requests of one REQUEST that are looked at; the first that asks for something counts."""

ALTERNATIVES_MAX = 16
"""Alternatives of a minimum: each is compared with each offer."""

CLAUSES_MAX = 128
"""Clauses of a constraint: each may ask for another attribute of each agent."""

CLAUSE_VALUES_MAX = 4096
"""Values of a constraint in all its clauses, such as host names: each is read at each update."""

ROLES_OF_FRAMEWORK_MAX = 4096
"""Roles in which one framework is served: each is a client, bounded by `limits.clients`."""

FILTER_BYTES_MAX = 2**32
"""Bytes of refusals: where strangers make up kinds, each refusal is as wide as all of them."""

RULE_NAME_BYTES_MAX = 4096
"""Bytes of a role, pattern or agent that operators' rules are for: as many as the module takes of a
role. They stand in tables, logs and files."""

ROWS_MAX = 16
"""Rows about what is set aside, of a framework or an agent: they are kept, copied and shown."""

ROW_TEXT_MAX = 200
"""Characters of such a row: it stands in logs, tables and pages."""

ROW_FIELD_MAX = 64
"""Characters of where the words stood."""

QUOTED_MAX = 40
"""Characters of strangers' own text in it."""


def harmless(text: str, length_max: int) -> str:
    r"""Shorten strangers' text, and take out what a terminal or a log would not print.

    >>> harmless("a\x1b[31mred\u202e" + 9 * "x", 12)
    'a?[31mred...'
    """
    shown = text if len(text) <= length_max else f"{text[: length_max - 3]}..."
    return "".join(sign if sign.isprintable() else "?" for sign in shown)


def refuse_long(text: str) -> None:
    """Raise a ValueError where a rule would be for a name that is too long."""
    if (length := len(text.encode())) > RULE_NAME_BYTES_MAX:
        raise ValueError(f"has {length} bytes; at most {RULE_NAME_BYTES_MAX} are taken, shorten it")


def quoted(text: str) -> str:
    r"""Strangers' text as it stands in a message: short, harmless, in quotes.

    >>> quoted("cpus:\n1")
    "'cpus:?1'"
    """
    return f"'{harmless(text, QUOTED_MAX)}'"
