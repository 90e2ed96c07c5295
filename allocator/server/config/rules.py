"""The rules of the configuration: a section for each kind (`allocator.settable`).

A section is made of what its kind is for (a base class for each scope) and of what it says (an
option of the value's type, with its check).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, assert_never

from pydantic import AfterValidator, Field, create_model, model_validator

from allocator.core import CHANGES, OperatorChange, parse_quantities
from allocator.server.config.checks import (
    constraint_expression,
    non_blank,
    non_empty_quantities,
    refuse_at,
    role_path,
)
from allocator.server.config.schema import Section
from allocator.settable import RULES, Scope, SettingKind, Value


class RoleRule(Section):
    """Which role a rule is for."""

    live = True

    role: Annotated[str, AfterValidator(role_path)] = Field(
        description="Path of the role.", examples=["eng/ads"]
    )


class AgentRule(Section):
    """Which agent a rule is for."""

    live = True

    agent: Annotated[str, AfterValidator(non_blank)] = Field(
        description="Its id or its host name.", examples=["node-17"]
    )


class FrameworksRule(Section):
    """Which frameworks a rule is for."""

    live = True

    role: str = Field(
        "",
        description='Shell pattern of roles, such as "eng/*"; empty: all.',
        examples=["eng/*"],
    )
    framework_name: str = Field("", description="Shell pattern of framework names; empty: all.")
    all: bool = Field(
        False, description="true: for every framework. Needed where both patterns are empty."
    )

    @model_validator(mode="after")
    def check_patterns(self) -> "FrameworksRule":
        """A rule for everybody is meant to be one."""
        named = bool(self.role or self.framework_name)
        if named and self.all:
            refuse_at("all", "does not go with role or framework_name; leave it out, or them")
        if not named and not self.all:
            text = "the rule would be for every framework; give role or framework_name, or all ="
            refuse_at("all", f"{text} true")
        return self


def _section(kind: SettingKind) -> type[Section]:
    """Make the section of a kind."""
    options: dict[str, Any] = {}
    if kind.value is not Value.NOTHING:
        says = Field(description=kind.meaning, examples=[kind.example])
        options[kind.called] = (_type_of(kind), says)
    for flag in kind.flags:
        options[flag.name] = (bool, Field(False, description=flag.meaning))
    return create_model(f"{kind.title}Rule", __base__=_base(kind), __doc__=kind.what, **options)


def _base(kind: SettingKind) -> type[Section]:
    match kind.scope:
        case Scope.FRAMEWORKS:
            return FrameworksRule
        case Scope.ROLE:
            return RoleRule
        case Scope.AGENT:
            return AgentRule
        case Scope.CLUSTER:
            raise AssertionError(kind)  # has a section of its own
        case _:
            assert_never(kind.scope)


def _type_of(kind: SettingKind) -> object:
    match kind.value:
        case Value.AMOUNTS:
            return Annotated[str, AfterValidator(non_empty_quantities)]
        case Value.EXPRESSION:
            return Annotated[str, AfterValidator(constraint_expression)]
        case Value.NUMBER:
            return Annotated[float, Field(ge=kind.bounds[0], le=kind.bounds[1])]
        case Value.NOTHING | Value.POLICY:
            raise AssertionError(kind)
        case _:
            assert_never(kind.value)


SECTIONS: Mapping[str, type[Section]] = MappingProxyType(
    {kind.name: _section(kind) for kind in RULES}
)
"""The sections of rules by the names of their kinds."""


def change_of(kind: SettingKind, rule: Section) -> OperatorChange:
    """The rule as the core takes it."""
    value: object = True
    if kind.value is not Value.NOTHING:
        value = getattr(rule, kind.called)
    if kind.value is Value.AMOUNTS:
        value = parse_quantities(str(value))
    names = (*kind.scope.fields, *(flag.name for flag in kind.flags))
    change: OperatorChange = CHANGES[kind.name](
        **{name: getattr(rule, name) for name in names}, **{kind.field: value}
    )
    return change


_Rules = tuple[Section, ...]

_SAME = MappingProxyType(
    {
        Scope.FRAMEWORKS: "the patterns of an earlier rule",
        Scope.ROLE: "the role of an earlier {kind}",
        Scope.AGENT: "the agent of an earlier one",
    }
)


def _distinct(kind: SettingKind) -> Callable[[_Rules], _Rules]:
    """Refuse two rules for the same: one would be lost, or is meant for another."""

    def check(rules: _Rules) -> _Rules:
        seen = set()
        for index, rule in enumerate(rules):
            key = tuple(getattr(rule, name) for name in kind.scope.fields)
            if key in seen:
                same = _SAME[kind.scope].format(kind=kind.name)
                refuse_at(index, f"has {same}; keep one of the two")
            seen.add(key)
        return rules

    return check


def _array_of(kind: SettingKind) -> object:
    section: Any = SECTIONS[kind.name]
    return Annotated[tuple[section, ...], Field(strict=False), AfterValidator(_distinct(kind))]


_ARRAYS: dict[str, Any] = {kind.name: (_array_of(kind), ()) for kind in RULES}

RuleSections: Any = create_model("RuleSections", __base__=Section, **_ARRAYS)
"""What of the configuration is rules: an array of sections for each kind."""
