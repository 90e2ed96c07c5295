"""Scripts: commands to a world and their results, as text.

A line is a verb with its arguments. Agents and frameworks are named by their handles (`agent-1`,
`framework-2`); a new one gets the lowest free handle. Resources are written as in
`tests.world.amounts`, and an offer as its framework, role, agent and resources, in this order.

    policy drf selection=listed mode=oblivious flat=no parameter.unit=tasks
    subtree eng ps-dsf
    options interval_s=1 minimum=cpus:0.01|mem:32
    agent HAS [host=h] [region=r] [zone=z] [attributes=k:v,...]
              [able=A,...] [unavailable_from_ms=MS]
    update-agent AGENT [HAS] [...]          remove-agent AGENT
    deactivate-agent AGENT                  activate-agent AGENT        whitelist HOST...
    framework ROLE... [able=A,...] [suppressed=ROLE,...] [minimum=ROLE/HAS|HAS]
              [inactive] [one-role] [unknown]
    subscribe FRAMEWORK                     remove-framework FRAMEWORK
    update-framework FRAMEWORK [ROLE...|no-roles] [...]
    deactivate FRAMEWORK                    activate FRAMEWORK
    suppress FRAMEWORK [ROLE...]            revive FRAMEWORK [ROLE...]
    exclude FRAMEWORK ROLE AGENT            include FRAMEWORK ROLE AGENT
    weight ROLE=NUMBER...                   quota ROLE [guarantee=HAS] [limit=HAS]
    constrain EXPRESSION [role=PATTERN]     demand FRAMEWORK HAS        pause    resume
    hold OFFER                              use OFFER                   finish OFFER
    decline OFFER [refuse_s=S]
    convert OFFER into HAS                  operate AGENT HAS into HAS
    cycle [AGENT...] [after_ms=MS]          held FRAMEWORK              shares
"""

from collections import Counter
from collections.abc import Callable

import numpy as np

from allocator import core
from allocator.measures import dominant_share
from tests.world.amounts import describe, resources
from tests.world.nouns import Agent, Framework, Offer
from tests.world.world import World

Options = dict[str, str]


class Script:
    """Runs commands line by line."""

    def __init__(self, policy: core.PolicySpec | None = None) -> None:
        """Start with an empty world; it is created when the first line needs it."""
        self.spec = policy or core.PolicySpec("drf", selection="listed")
        self._subtrees: dict[str, str] = {}
        self._world: World | None = None
        self._options: dict = {}

    @property
    def world(self) -> World:
        """The world, created with the policy and the options of previous lines."""
        if self._world is None:
            self._world = World(self.spec, **self._options)
        return self._world

    def run(self, line: str) -> str:
        """Run one command; returns its output or its error."""
        verb, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        if verb in ("weight", "constrain"):
            names = words
        do: Callable[..., str | None] = getattr(self, "do_" + verb.replace("-", "_"))
        try:
            printed = do(options, *names) or ""
        except core.EventError as error:
            return f"error: {error.field}: {error.message}"
        unread = ", ".join(options) if verb not in ("weight", "constrain") else ""
        assert not unread, f"{line}: {unread}?"
        return printed

    def _agent(self, name: str) -> Agent:
        """Find an agent; one that was removed may still be named."""
        handle = int(name.removeprefix("agent-"))
        return self.world.agents.get(handle) or Agent(handle, Counter())

    def _framework(self, name: str) -> Framework:
        """Find a framework; one that was removed may still be named."""
        handle = int(name.removeprefix("framework-"))
        return self.world.frameworks.get(handle) or Framework(handle, (), frozenset())

    def _offer(self, framework: str, role: str, agent: str, what: str = "") -> Offer:
        return Offer(self._framework(framework), role, self._agent(agent), resources(what))

    # ---------------------------------------------------------------- the session

    def do_policy(self, options: Options, name: str) -> None:
        """Choose a policy; without a selection agents are visited in their order."""
        parameters = {
            key.removeprefix("parameter."): options.pop(key)
            for key in list(options)
            if key.startswith("parameter.")
        }
        self.spec = core.PolicySpec(
            name,
            selection=options.pop("selection", "listed"),
            mode=options.pop("mode", "oblivious"),
            flat=options.pop("flat", "no") == "yes",
            parameters=parameters,
            subtrees=self._subtrees,
        )
        if self._world is not None:
            self._world.tell(core.SetPolicy(self.spec))

    def do_subtree(self, options: Options, role: str, name: str) -> None:
        """Use another policy below a role; comes before `policy`."""
        self._subtrees[role] = name

    def do_options(self, options: Options) -> None:
        """Set the options of the master's allocator."""
        if "interval_s" in options:
            self._options["interval_s"] = int(options.pop("interval_s"))
        if "minimum" in options:
            texts = filter(None, options.pop("minimum").split("|"))
            self._options["minimum"] = tuple(core.parse_quantities(text) for text in texts)
        for name in ("region",):
            if name in options:
                self._options[name] = options.pop(name)
        if "excluded" in options:
            self._options["fairness_excluded"] = frozenset(options.pop("excluded").split(","))

    # --------------------------------------------------------------------- agents

    def _agent_info(self, options: Options) -> dict:
        info: dict = {}
        if "host" in options:
            info["hostname"] = options.pop("host")
        if "attributes" in options:
            info["attributes"] = _pairs(options.pop("attributes"))
        if "able" in options:
            info["capabilities"] = _listed(options.pop("able"))
        info.update({name: options.pop(name) for name in ("region", "zone") if name in options})
        if "unavailable_from_ms" in options:
            info["unavailable_from_ms"] = int(options.pop("unavailable_from_ms"))
        return info

    def do_agent(self, options: Options, has: str = "") -> None:
        """Add an agent."""
        self.world.agent(resources(has), **self._agent_info(options))

    def do_update_agent(self, options: Options, agent: str, has: str | None = None) -> None:
        amounts = None if has is None else resources(has)
        self.world.update_agent(self._agent(agent), amounts, **self._agent_info(options))

    def do_remove_agent(self, options: Options, agent: str) -> None:
        self.world.remove_agent(self._agent(agent))

    def do_deactivate_agent(self, options: Options, agent: str) -> None:
        """Deactivate an agent, so that it is not offered."""
        self.world.deactivate_agent(self._agent(agent))

    def do_activate_agent(self, options: Options, agent: str) -> None:
        self.world.deactivate_agent(self._agent(agent), active=True)

    def do_whitelist(self, options: Options, *hosts: str) -> None:
        """Allow offers on these hosts only."""
        self.world.whitelist(*hosts)

    # ----------------------------------------------------------------- frameworks

    def _framework_info(self, options: Options) -> dict:
        info: dict = {}
        if "able" in options:
            info["capabilities"] = _listed(options.pop("able"))
        if "suppressed" in options:
            info["suppressed"] = _listed(options.pop("suppressed"))
        if "minimum" in options:
            role, _, texts = options.pop("minimum").rpartition("/")
            info["minimum"] = {role: [text for text in texts.split("|") if text]}
        return info

    def do_framework(self, options: Options, *words: str) -> None:
        """Subscribe a framework."""
        roles = [word for word in words if word not in ("inactive", "one-role", "unknown")]
        if "unknown" in words:
            self.world.unknown_framework(*roles)
            return
        self.world.framework(
            *roles,
            active="inactive" not in words,
            multi_role="one-role" not in words,
            **self._framework_info(options),
        )

    def do_subscribe(self, options: Options, framework: str) -> None:
        """Subscribe a framework that earlier events named."""
        self.world.subscribe(self._framework(framework), **self._framework_info(options))

    def do_update_framework(self, options: Options, framework: str, *roles: str) -> None:
        """Subscribe a framework again."""
        info = self._framework_info(options)
        named = () if roles == ("no-roles",) else roles or None
        self.world.update_framework(self._framework(framework), named, **info)

    def do_remove_framework(self, options: Options, framework: str) -> None:
        self.world.remove_framework(self._framework(framework))

    def do_deactivate(self, options: Options, framework: str) -> None:
        """Disconnect a framework."""
        self.world.deactivate(self._framework(framework))

    def do_activate(self, options: Options, framework: str) -> None:
        """Reconnect a framework."""
        self.world.activate(self._framework(framework))

    def do_suppress(self, options: Options, framework: str, *roles: str) -> None:
        """Suppress offers to a framework."""
        self.world.suppress(self._framework(framework), *roles)

    def do_revive(self, options: Options, framework: str, *roles: str) -> None:
        """Revive offers to a framework."""
        self.world.revive(self._framework(framework), *roles)

    def do_exclude(self, options: Options, framework: str, role: str, agent: str) -> None:
        """Exclude a pair by offer constraints."""
        self.world.exclude(self._framework(framework), role, self._agent(agent))

    def do_include(self, options: Options, framework: str, role: str, agent: str) -> None:
        """Lift the exclusion."""
        self.world.exclude(self._framework(framework), role, self._agent(agent), excluded=False)

    # ------------------------------------------------------------------ operators

    def do_weight(self, options: Options, *pairs: str) -> None:
        """Set weights of roles."""
        weights = dict(pair.split("=", 1) for pair in pairs)
        self.world.weights(**{role: float(weight) for role, weight in weights.items()})

    def do_quota(self, options: Options, role: str) -> None:
        """Set a quota; without guarantee and limit it is removed."""
        guarantee, limit = options.pop("guarantee", ""), options.pop("limit", "")
        self.world.quota(role, guarantee, limit)

    def do_constrain(self, options: Options, expression: str) -> None:
        """Restrict every framework to agents by their attributes."""
        self.world.tell(core.SetConstraint("", "", expression))

    def do_demand(self, options: Options, framework: str, task: str) -> None:
        """Declare the needs of one task of a framework."""
        self.world.demand(self._framework(framework), task)

    def do_pause(self, options: Options) -> None:
        """Pause offers."""
        self.world.pause()

    def do_resume(self, options: Options) -> None:
        """Resume offers."""
        self.world.pause(paused=False)

    # ------------------------------------------------------------------ resources

    def do_hold(self, options: Options, *words: str) -> None:
        """Add resources in use."""
        offer = self._offer(*words)
        self.world.hold(offer.framework, offer.role, offer.agent, offer.resources)

    def do_decline(self, options: Options, *words: str) -> None:
        """Decline an offer or part of it; without a time there is no filter."""
        self.world.decline(self._offer(*words), float(options.pop("refuse_s", -1)))

    def do_use(self, options: Options, *words: str) -> None:
        """Launch tasks on an offer or part of it."""
        self.world.use(self._offer(*words))

    def do_finish(self, options: Options, *words: str) -> None:
        """End tasks."""
        self.world.finish(self._offer(*words))

    def do_convert(self, options: Options, *words: str) -> None:
        """Apply a framework's operation to its holdings."""
        *named, into, after = words
        assert into == "into"
        self.world.convert(self._offer(*named), self._offer(*named).resources, resources(after))

    def do_operate(self, options: Options, agent: str, before: str, into: str, after: str) -> None:
        """Apply an operator's operation to free resources."""
        assert into == "into"
        self.world.operate(self._agent(agent), resources(before), resources(after))

    # --------------------------------------------------------------------- to see

    def do_cycle(self, options: Options, *agents: str) -> str:
        """Run a cycle; prints the offers."""
        after = options.pop("after_ms", None)
        offers = self.world.cycle(
            *map(self._agent, agents), after_ms=None if after is None else int(after)
        )
        return "\n".join(map(repr, offers)) or "no offers"

    def do_held(self, options: Options, framework: str) -> str:
        """Print the holdings of a framework."""
        return describe(self.world.held(self._framework(framework))) or "nothing"

    def do_demands(self, options: Options) -> str:
        """Print the demand of one task of each framework, and its source."""
        state = self.world.allocator.state
        lines = []
        for client in np.flatnonzero(state.clients.framework).tolist():
            named = state.space.named(state.clients.demand[client])
            amounts = core.format_quantities(named) if named else "unknown"
            source = state.clients.demand_source[client] or "no source"
            framework = state.clients.framework[client]
            lines.append(f"framework-{framework}: {amounts} from {source}")
        return "\n".join(lines) or "none"

    def do_shares(self, options: Options) -> str:
        """Print the holdings of each framework by role, and its dominant share."""
        state = self.world.allocator.state
        held, total = state.held_by_column(), state.total_by_column()
        share = dominant_share(held, total)
        lines = []
        for client in np.flatnonzero(state.clients.framework).tolist():
            framework = state.clients.framework[client]
            path = state.roles.path[state.clients.role[client]]
            named = state.space.named(held[client])
            amounts = core.format_quantities(named) if named else "nothing"
            lines.append(f"framework-{framework} in {path}: {amounts} share {share[client]:.3f}")
        return "\n".join(lines) or "none"


def _listed(text: str) -> list[str]:
    return [each for each in text.split(",") if each]


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split(":", 1) for pair in text.split(",") if pair)
