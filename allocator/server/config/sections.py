"""The table of options: names, types, defaults, bounds and descriptions.

The checks, the error messages and ``deploy/config.example.toml`` are derived from these models. The
section for each kind of rule (`allocator.rule_kinds`) is a base class for the kind's scope, with an
option for the rule's value.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Annotated, Any, Literal, assert_never

from pydantic import AfterValidator, Field, create_model, model_validator
from pydantic_core import PydanticCustomError

from allocator.core import (
    EVENT_OF_KIND,
    PolicySpec,
    SessionLimits,
    Settings,
    parse_hours,
    parse_quantities,
)
from allocator.rule_kinds import BUDGET, RULES, Scope, SettingKind, Value
from allocator.server.config.checks import (
    ELSEWHERE,
    absolute_directory,
    constraint_expression,
    host_name,
    no_directory,
    non_empty,
    non_empty_hours,
    non_empty_quantities,
    optional_policy_name,
    owner,
    plugin_file,
    policy_name,
    readable_file,
    reject_at,
    selection_name,
    spec_that_builds,
)
from allocator.server.config.fairness import FairnessSection
from allocator.server.config.rule_scopes import (
    AgentRule,
    BudgetRule,
    FrameworksRule,
    HoldersRule,
    RoleRule,
)
from allocator.server.config.scheduled import BoundedSchedules, ScheduledSection, schedule_of
from allocator.server.config.schema import Count, Section
from allocator.server.config.starvation import StarvationSection
from allocator.server.system.addresses import is_local, target
from allocator.server.system.tls_files import find_problem
from allocator.wire.settings.overlay import KeptChange

OPEN_SESSIONS = (
    "any client that reaches {} may take this sidecar from its master; set"
    " access.session_token, or name the master's certificate in access.session"
)


class HttpSection(Section):
    """The HTTP listener, for /metrics, /healthz, /readyz and the status page. It is read-only."""

    host: str = Field(
        "127.0.0.1", min_length=1, description="Address to listen on; 0.0.0.0: all interfaces."
    )
    port: int = Field(5057, ge=0, le=65535, description="Port; 0: any free one.")
    page: Literal["local", "all", "off"] = Field(
        "local",
        description=(
            "Clients that may see the status page, which names frameworks, agents and operators."
            " local: those on this machine, by localhost or a loopback address; all: every client"
            " that reaches the port; off: none."
        ),
    )
    names: Annotated[tuple[Annotated[str, AfterValidator(host_name)], ...], Field(strict=False)] = (
        Field(
            (),
            description=(
                'Further host names under which clients such as scrapers may use this listener; "*"'
                ": any. Addresses, localhost, names without a dot, http.host and the name of this"
                " machine are always accepted. Requests for any other name are refused,"
                " because otherwise a page of another site could read the answers through a"
                " browser (DNS rebinding)."
            ),
        )
    )


class LogSection(Section):
    """Logs, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Minimum level of log lines."
    )
    format: Literal["auto", "json", "console"] = Field(
        "auto",
        description=(
            "json: one object per line. console: readable text. auto: console on a terminal, else"
            " json."
        ),
    )


class MetricsSection(Section):
    """Bounds on the number of time series, and computations that only metrics need."""

    frameworks_max: Annotated[int, Field(ge=0, le=100_000)] = Field(
        100,
        description=(
            "Number of frameworks with their own series: those with the largest shares. The"
            ' others are summed under framework="other".'
        ),
    )
    roles_max: Annotated[int, Field(ge=0, le=100_000)] = Field(
        100,
        description="Number of roles with their own series: those with the largest shares. The"
        ' others are summed under role="other".',
    )
    fair_share_every_s: Annotated[float, Field(ge=0, le=86_400)] = Field(
        60.0,
        description=(
            "Seconds between computations of fair shares for the fairness error, on a copy of the"
            " books and in a separate thread; the interval grows so that they cost at most a"
            " hundredth of one processor. 0: never."
        ),
    )


Names = Annotated[tuple[str, ...], Field(strict=False)]
OptionalFile = Annotated[str, AfterValidator(readable_file)]


class AccessSection(Section):
    """Rights of clients of TCP listeners.

    Clients of a Unix socket have all rights; its mode decides who can connect.

    Names are those in clients' certificates (common name, or a subject alternative name), so they
    need listen.tls_client_ca. The right to write includes the right to read.
    """

    session: Names = Field(
        (),
        description=(
            "Names in certificates of masters that may open sessions; empty, and no token: all may."
        ),
    )
    session_token: OptionalFile = Field(
        "",
        description=(
            "File with a token that also permits sessions (the module's parameter"
            " session_token_file); empty: no token."
        ),
    )
    admin_read: Names = Field(
        (),
        description=(
            "Names in certificates of operators that may read; empty, and no token: all may."
        ),
    )
    admin_write: Names = Field(
        (),
        description=(
            "Names in certificates of operators that may change settings; empty, and no token:"
            " all may."
        ),
    )
    admin_read_token: OptionalFile = Field(
        "", description="File with a token that also permits reading; empty: no token."
    )
    admin_write_token: OptionalFile = Field(
        "", description="File with a token that also permits changes of settings; empty: no token."
    )


def _section(kind: SettingKind) -> type[Section]:
    options: dict[str, Any] = {}
    if kind.value is not Value.NOTHING:
        says = Field(description=kind.meaning, examples=[kind.example])
        options[kind.called] = (_type_of(kind), says)
    for text in kind.texts:
        says = Field(text.default, description=text.meaning)
        options[text.name] = (Literal[text.values] if text.values else str, says)
    for flag in kind.flags:
        options[flag.name] = (bool, Field(False, description=flag.meaning))
    bases: tuple[type[Section], ...] = (_base(kind),)
    if kind.scheduled:
        bases = (*bases, ScheduledSection)
        options |= ScheduledSection.options
    return create_model(f"{kind.title}Rule", __base__=bases, __doc__=kind.what, **options)


def _base(kind: SettingKind) -> type[Section]:
    match kind.scope:
        case Scope.FRAMEWORKS:
            return FrameworksRule
        case Scope.ROLE:
            return BudgetRule if kind is BUDGET else RoleRule
        case Scope.HOLDERS:
            return HoldersRule
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
        case Value.HOURS:
            return Annotated[str, AfterValidator(non_empty_hours)]
        case Value.EXPRESSION:
            return Annotated[str, AfterValidator(constraint_expression)]
        case Value.NUMBER | Value.COUNT:
            number: Any = float if kind.value is Value.NUMBER else int
            return Annotated[number, Field(ge=kind.bounds[0], le=kind.bounds[1])]
        case Value.NOTHING | Value.POLICY:
            raise AssertionError(kind)
        case _:
            assert_never(kind.value)


SECTIONS: Mapping[str, type[Section]] = MappingProxyType(
    {kind.name: _section(kind) for kind in RULES}
)


def kept_of(kind: SettingKind, rule: Section) -> KeptChange:
    """Convert a rule to the core's form, with its schedule."""
    value: object = kind.value is Value.NOTHING or getattr(rule, kind.called)
    if kind.value is Value.AMOUNTS:
        value = parse_quantities(str(value))
    elif kind.value is Value.HOURS:
        value = parse_hours(str(value))
    names = (*kind.scope.fields, *kind.options)
    fields = {**{name: getattr(rule, name) for name in names}, kind.field: value}
    return KeptChange(EVENT_OF_KIND[kind.name](**fields), "", 0, schedule_of(rule))


_Rules = tuple[Section, ...]

_SAME = MappingProxyType(
    {
        Scope.FRAMEWORKS: "the patterns of an earlier rule",
        Scope.ROLE: "the role of an earlier {kind}",
        Scope.HOLDERS: "the role and the holders of an earlier {kind}",
        Scope.AGENT: "the agent of an earlier one",
    }
)


def _distinct(kind: SettingKind) -> Callable[[_Rules], _Rules]:
    """Reject several rules for the same subject: only one of them could apply."""

    def check(rules: _Rules) -> _Rules:
        seen = set()
        for index, rule in enumerate(rules):
            key = (*(getattr(rule, name) for name in kind.scope.fields), schedule_of(rule))
            if key in seen:
                same = _SAME[kind.scope].format(kind=kind.name)
                reject_at(index, f"has {same}; keep one of the two")
            seen.add(key)
        return rules

    return check


def _array_of(kind: SettingKind) -> object:
    section: Any = SECTIONS[kind.name]
    return Annotated[tuple[section, ...], Field(strict=False), AfterValidator(_distinct(kind))]


_ARRAYS: dict[str, Any] = {kind.name: (_array_of(kind), ()) for kind in RULES}

RuleSections: Any = create_model("RuleSections", __base__=BoundedSchedules, **_ARRAYS)
"""The rules: an array of sections for each kind."""


GIB = 2**30
MIB = 2**20


Addresses = Annotated[tuple[Annotated[str, AfterValidator(target)], ...], Field(strict=False)]
Targets = Annotated[Addresses, AfterValidator(non_empty)]


def check_tls_files(cert: str, key: str, ca: str, ca_key: str) -> None:
    """Reject invalid TLS files, unless they are those of another machine."""
    problem = None if ELSEWHERE.get() else find_problem(cert, key, ca)
    if problem:
        reject_at(ca_key if problem.part == "ca" else f"tls_{problem.part}", problem.message)


class ListenSection(Section):
    """The gRPC listener, for masters' modules and operators."""

    targets: Targets = Field(
        ("127.0.0.1:5056",),
        description=(
            "Addresses to listen on: host:port (port 0: any free one), [IPv6]:port or unix:/path."
            " A client that reaches one may control the sidecar, so use loopback, a Unix socket,"
            " or TLS with client certificates."
        ),
    )
    tls_cert: OptionalFile = Field(
        "", description="PEM file of the certificate chain for TCP targets; empty: no TLS."
    )
    tls_key: OptionalFile = Field("", description="PEM file of the certificate's private key.")
    tls_client_ca: OptionalFile = Field(
        "",
        description=(
            "PEM file of the authorities that sign clients' certificates; empty: clients need none."
        ),
    )
    allow_plaintext: bool = Field(
        False,
        description=(
            "true: allow TCP targets beyond loopback without TLS. Any host that reaches one may"
            " then control the sidecar."
        ),
    )
    unix_mode: int = Field(
        0o660,
        ge=0,
        le=0o777,
        description="Permissions of Unix sockets.",
        json_schema_extra={"octal": True},
    )
    unix_owner: Annotated[str, AfterValidator(owner)] = Field(
        "",
        description=(
            "Owner of Unix sockets, as user:group or :group, by name or number; empty: the"
            " sidecar's user and group."
        ),
    )

    @model_validator(mode="after")
    def check_tls(self) -> "ListenSection":
        beyond = [each for each in self.targets if not is_local(each)]
        if beyond and not self.tls_cert and not self.allow_plaintext:
            text = "reaches beyond this machine without TLS; give tls_cert and tls_key, or set"
            reject_at("targets", f"{beyond[0]} {text} listen.allow_plaintext = true")
        if self.tls_client_ca and not (self.tls_cert or self.tls_key):
            reject_at("tls_client_ca", "needs tls_cert and tls_key; give them, or leave it empty")
        check_tls_files(self.tls_cert, self.tls_key, self.tls_client_ca, ca_key="tls_client_ca")
        return self


class PolicySection(Section):
    """The policy. `mesos-allocator policy set` switches a running sidecar."""

    live = True
    at_start = ("plugin_deadline_ms", "plan_budget_ms", "plan_interval_ms", "plan_first_wait_ms")

    plugins: Annotated[
        tuple[Annotated[str, AfterValidator(plugin_file)], ...], Field(strict=False)
    ] = Field(
        (),
        description=(
            "Python files with your own policies, see examples/; those of installed packages are"
            " found automatically (entry points of the group mesos_allocator.policies)."
        ),
    )
    plugin_deadline_ms: Annotated[int, Field(ge=1, le=600_000)] = Field(
        1000,
        description=(
            "Time limit of your own policies for a cycle. A policy that exceeds it is no longer"
            " called; DRF decides instead, until the policy is set again."
        ),
    )
    plan_budget_ms: Annotated[int, Field(ge=1, le=3_600_000)] = Field(
        1000,
        description=(
            "Time limit of a plan. A plan that exceeds it is counted, logged and not waited for."
        ),
    )
    plan_interval_ms: Annotated[int, Field(ge=0, le=3_600_000)] = Field(
        1000,
        description=(
            "Minimum time between two checks whether a new plan is needed; so plans begin at"
            " most this often."
        ),
    )
    plan_first_wait_ms: Annotated[int, Field(ge=0, le=5_000)] = Field(
        200,
        description=(
            "Maximum time that the first offers wait for the first plan; 0: they do not wait."
        ),
    )
    name: Annotated[str, AfterValidator(policy_name)] = Field(
        "drf", description="Policy; `mesos-allocator policy show` lists them."
    )
    selection: Annotated[str, AfterValidator(selection_name)] = Field(
        "", description="How agents are selected; empty: the policy's own default."
    )
    mode: Literal["oblivious", "characterised"] = Field(
        "oblivious",
        description=(
            "oblivious: offers contain all free resources of the agent. characterised: offers"
            " contain whole tasks, for frameworks whose demand vector is known."
        ),
    )
    flat: bool = Field(
        False,
        description=(
            "true: all frameworks compete directly. false: roles compete, then their frameworks."
        ),
    )
    seed: int = Field(
        0,
        ge=0,
        le=2**63 - 1,
        description=("Seed of all random choices: the same events give the same decisions."),
    )
    parameters: dict[str, str] = Field(
        default_factory=dict, description="Further parameters of the policy, as text."
    )

    subtrees: dict[str, str] = Field(
        default_factory=dict,
        description=(
            "Other policies for the subtrees of some roles. Key: the role. Value: the"
            " policy's name, or name:key=value,key=value with its parameters and its mode."
        ),
    )

    def spec(self) -> PolicySpec:
        return PolicySpec(
            self.name,
            self.selection,
            self.mode,
            self.flat,
            dict(self.parameters),
            dict(self.subtrees),
        )

    @model_validator(mode="after")
    def check_spec(self) -> "PolicySection":
        spec_that_builds(self.spec(), self.plugin_deadline_ms / 1000)
        return self


class ShadowSection(Section):
    """A shadow policy: its decisions about the same cycles are only compared.

    `mesos-allocator shadow set` changes it in a running sidecar.
    """

    live = True

    policy: Annotated[str, AfterValidator(optional_policy_name)] = Field(
        "", description="Policy; empty: no shadow policy."
    )
    selection: Annotated[str, AfterValidator(selection_name)] = Field(
        "", description="How it selects agents; empty: the policy's own default."
    )
    mode: Literal["", "oblivious", "characterised"] = Field(
        "", description="As policy.mode; empty: the same as the policy in force."
    )
    parameters: dict[str, str] = Field(
        default_factory=dict, description="Further parameters of the policy, as text."
    )

    def spec(self, mode: str) -> PolicySpec | None:
        """The policy in the core's form; `mode`: its default mode."""
        if not self.policy:
            return None
        parameters = dict(sorted(self.parameters.items()))
        return PolicySpec(self.policy, self.selection, self.mode or mode, parameters=parameters)


class LimitsSection(Section):
    """Bounds of one session; what exceeds them is ignored and reported (`set_aside`).

    Modules receive the number of distinguished kinds, and send no more.
    """

    agents: Count = Field(131_072, description="Agents of one master.")
    frameworks: Count = Field(65_536, description="Frameworks of one master.")
    roles: Count = Field(65_536, description="Roles, with their ancestors.")
    role_depth: Annotated[int, Field(ge=1, le=1024)] = Field(
        64, description="Number of names in the path of a role, such as 2 for eng/ads."
    )
    clients: Count = Field(131_072, description="Pairs of a framework and one of its roles.")
    kinds: Count = Field(
        512,
        description=(
            "Kinds of resources that are distinguished, such as memory reserved for one role;"
            " resources of further kinds form one kind per name."
        ),
    )
    filters: Annotated[int, Field(ge=1, le=1_000_000_000)] = Field(
        20_000_000,
        description=(
            "Refusals in force. A framework with 400,000 of them, or, when half of this number is"
            " in use, with as many as are left, gets no offers until some of them expire."
            " Refusals that do not fit are forgotten."
        ),
    )
    message_bytes_max: Annotated[int, Field(ge=64 * 1024, le=GIB)] = Field(
        4 * MIB, description="Largest gRPC message that is read, in bytes."
    )
    queue: Annotated[int, Field(ge=1, le=10_000)] = Field(
        16,
        description="Maximum number of messages of one session that wait for the core;"
        " beyond it, the module waits.",
    )

    def core(self) -> SessionLimits:
        return SessionLimits(
            **{each.name: getattr(self, each.name) for each in fields(SessionLimits)}
        )


class JournalSection(Section):
    """A record of all inputs of the core, for replay."""

    path: Annotated[str, AfterValidator(no_directory)] = Field(
        "", description="File to write; empty: no journal."
    )
    bytes_max: Annotated[int, Field(ge=MIB, le=2**50)] = Field(
        GIB,
        description=(
            "Size in bytes at which this file is renamed to PATH.1 and a new one begun; at least"
            " twice the size of the checkpoint with which a file begins."
        ),
    )
    compression: Literal["zstd", "none"] = Field(
        "zstd", description="zstd: compress each record. none: no compression."
    )
    files: Annotated[int, Field(ge=1, le=10_000)] = Field(
        2,
        description=(
            "Minimum number of files to keep: PATH, PATH.1 and so on. Each start begins a file;"
            " more files are kept while their total size is not larger than that of this number of"
            " full ones. 1: keep no older file."
        ),
    )
    keep_days: Annotated[int, Field(ge=0, le=36_500)] = Field(
        90,
        description=(
            "An older file is removed this many days after its last write, when a new one is"
            " begun. 0: files are not removed because of their age."
        ),
    )


class StateSection(Section):
    """State that survives a restart: operators' settings, learnt demands and usage."""

    directory: Annotated[str, AfterValidator(absolute_directory)] = Field(
        "",
        description=(
            "Directory of the state, used by one sidecar only. Empty: that of systemd"
            " (StateDirectory=), else the journal's directory, else nothing is saved. '-': nothing"
            " is saved."
        ),
    )
    save_s: Annotated[int, Field(ge=1, le=86_400)] = Field(
        30,
        description=(
            "Seconds between saves of learnt demands, which are also saved at the end. Operators'"
            " settings are saved before the command is answered."
        ),
    )


class LearnSection(Section):
    """Learning of demand vectors that frameworks do not state."""

    live = True

    enabled: bool = Field(
        True,
        description="Learn a framework's demand vector from what it accepts.",
    )
    acceptances: Count = Field(
        3, description="Number of acceptances after which the learnt demand vector is used."
    )
    probe_after: Count = Field(
        3,
        description=(
            "If a framework uses nothing and has declined this many consecutive offers of its"
            " demand, it is offered all free resources of an agent until it accepts,"
            " because it may need more than was learnt."
        ),
    )
    priors_max: Annotated[int, Field(ge=0, le=100_000)] = Field(
        1000,
        description=(
            "Number of learnt demands that are remembered after their frameworks leave. A new"
            " framework begins with the demand that is remembered for its role and name"
            " (ignoring digits), or else for its role and principal, or else for its role"
            " and user. 0: none are remembered."
        ),
    )
    prior_half_life_s: Annotated[int, Field(ge=1, le=10 * 365 * 86_400)] = Field(
        7 * 86_400,
        description="Seconds after which the certainty of a remembered demand has halved.",
    )
    patience_cycles: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        30,
        description=(
            "After this many full cycles without an offer, a framework whose demand is learnt"
            " or remembered is once offered all free resources of an agent, because it may"
            " need less. The number doubles each time."
        ),
    )


class MaintenanceSection(Section):
    """Agents before a scheduled drain (`drain set --from`, `--every`)."""

    live = True

    ahead_s: Annotated[int, Field(ge=0, le=30 * 86_400)] = Field(
        4 * 3600,
        description=(
            "For this many seconds before the drain begins, the agent is offered only to"
            " frameworks whose tasks end in time: 95 % of them, by learnt durations. Frameworks"
            " of which too few tasks have ended are offered nothing there. 0: all are offered"
            " the agent until it is drained."
        ),
    )


class ObserverSection(Section):
    """The observer: the process that answers queries, so that they do not delay decisions.

    If `listen` is set, observers on other machines can follow it. The options `sources`, `tls_*`
    and `token` are for such an observer on another machine (`mesos-allocator observe`).
    """

    verify: Literal["all", "sampled", "off"] = Field(
        "sampled",
        description="Which cycles the observer recomputes and compares: all, one in 16, or none.",
    )
    listen: Addresses = Field(
        (),
        description=(
            "Addresses at which the observer serves followers and answers queries, as in"
            " listen.targets, with the certificate of [listen]; empty: none. A client needs"
            " the right to read."
        ),
    )
    sources: Addresses = Field(
        (),
        description=(
            "Addresses (observer.listen) of the observers to follow (`observe --from`). If there"
            " are several, the observer of the sidecar that has a master's session is followed."
        ),
    )
    tls_ca: OptionalFile = Field(
        "",
        description=(
            "PEM file of the authority that signed the sources' certificates; empty: no TLS."
        ),
    )
    tls_cert: OptionalFile = Field(
        "", description="PEM file of the certificate that this observer presents to the sources."
    )
    tls_key: OptionalFile = Field("", description="PEM file of the certificate's private key.")
    token: OptionalFile = Field(
        "", description="File with a token that the sources accept; empty: send no token."
    )

    @property
    def verify_every(self) -> int:
        """Every nth cycle is decided again; 0: none."""
        return {"all": 1, "sampled": 16, "off": 0}[self.verify]

    @model_validator(mode="after")
    def check_sources(self) -> "ObserverSection":
        if (self.tls_cert or self.tls_key) and not self.tls_ca:
            reject_at("tls_ca", "is missing while tls_cert or tls_key is given; give it")
        check_tls_files(self.tls_cert, self.tls_key, self.tls_ca, ca_key="tls_ca")
        beyond = [each for each in self.sources if not is_local(each)]
        if beyond and self.token and not self.tls_ca:
            reject_at("token", f"would pass in clear to {beyond[0]}; give tls_ca, or leave it out")
        return self


class OptionSections(Section):
    """The sections of the configuration that are not rules."""

    listen: ListenSection = Field(default_factory=ListenSection)
    access: AccessSection = Field(default_factory=AccessSection)
    http: HttpSection = Field(default_factory=HttpSection)
    policy: PolicySection = Field(default_factory=PolicySection)
    shadow: ShadowSection = Field(default_factory=ShadowSection)
    limits: LimitsSection = Field(default_factory=LimitsSection)
    journal: JournalSection = Field(default_factory=JournalSection)
    observer: ObserverSection = Field(default_factory=ObserverSection)
    state: StateSection = Field(default_factory=StateSection)
    log: LogSection = Field(default_factory=LogSection)
    metrics: MetricsSection = Field(default_factory=MetricsSection)
    learn: LearnSection = Field(default_factory=LearnSection)
    starvation: StarvationSection = Field(default_factory=StarvationSection)
    maintenance: MaintenanceSection = Field(default_factory=MaintenanceSection)
    fairness: FairnessSection = Field(default_factory=FairnessSection)


class Config(RuleSections, OptionSections):
    """The whole configuration of a sidecar."""

    @model_validator(mode="after")
    def check_shadow(self) -> "Config":
        spec = self.shadow.spec(self.policy.mode)
        if spec is not None:
            try:
                spec_that_builds(spec, self.policy.plugin_deadline_ms / 1000)
            except PydanticCustomError as error:
                context = error.context or {}
                key = {"name": "policy"}.get(context["key"], context["key"])
                reject_at(f"shadow.{key}", context["message"])
        return self

    @model_validator(mode="after")
    def check_access(self) -> "Config":
        """Check that clients must have certificates if the options name some."""
        for right in ("session", "admin_read", "admin_write"):
            if getattr(self.access, right) and not self.listen.tls_client_ca:
                text = "names certificates, but listen.tls_client_ca asks clients for none; give it"
                reject_at(f"access.{right}", text)
        beyond = [each for each in self.listened if not is_local(each)]
        if beyond and not self.listen.tls_cert:
            if not self.listen.allow_plaintext:
                text = "reaches beyond this machine without TLS; give listen.tls_cert and tls_key,"
                mend = "or set listen.allow_plaintext = true"
                reject_at("observer.listen", f"{beyond[0]} {text} {mend}")
            for name in ("session_token", "admin_read_token", "admin_write_token"):
                if getattr(self.access, name):
                    text = f"would pass in clear at {beyond[0]}: give listen.tls_cert and tls_key,"
                    reject_at(f"access.{name}", f"{text} or listen on loopback or a Unix socket")
        return self

    @property
    def listened(self) -> tuple[str, ...]:
        return *self.listen.targets, *self.observer.listen

    def open_to_sessions(self) -> str:
        """A non-local address at which any client may open a session; empty: none."""
        if self.access.session or self.access.session_token:
            return ""
        return next((each for each in self.listen.targets if not is_local(each)), "")

    def settings(self) -> Settings:
        settings = Settings(
            policy=self.policy.spec(),
            seed=self.policy.seed,
            learn_demand=self.learn.enabled,
            learn_after=self.learn.acceptances,
            probe_after=self.learn.probe_after,
            priors_max=self.learn.priors_max,
            prior_half_life_ms=self.learn.prior_half_life_s * 1000,
            learn_patience_cycles=self.learn.patience_cycles,
            patience_cycles=self.starvation.patience_cycles,
            collect_ms=self.starvation.collect_s * 1000,
            drain_ahead_ms=self.maintenance.ahead_s * 1000,
            outstanding_max=self.starvation.outstanding_max,
            half_life_ms=self.fairness.half_life_s * 1000,
            usage_weight=self.fairness.usage_weight,
            shadow=self.shadow.spec(self.policy.mode),
        )
        for rule in _rules_of(self):
            if rule.schedule is None:
                settings.put(rule.change)
        return settings

    def scheduled(self) -> list[KeptChange]:
        return [rule for rule in _rules_of(self) if rule.schedule is not None]


def _rules_of(config: Config) -> Iterator[KeptChange]:
    return (kept_of(kind, rule) for kind in RULES for rule in getattr(config, kind.name))
