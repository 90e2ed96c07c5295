"""A cluster for tests of commands: two agents, and two frameworks, each in a role of its own."""

from allocator.core import AddAgent, AddFramework, AgentInfo, Define, FrameworkInfo, Kind

CLUSTER = (
    Define({0: Kind("cpus"), 1: Kind("mem")}, {1: "eng", 2: "ops"}),
    AddFramework(1, FrameworkInfo("id-1", name="spark"), (1,)),
    AddFramework(2, FrameworkInfo("id-2", name="kafka"), (2,)),
    AddAgent(1, AgentInfo("a1", attributes={"zone": "a"}), {0: 8000, 1: 16_384_000}),
    AddAgent(2, AgentInfo("a2", attributes={"zone": "b"}), {0: 8000, 1: 16_384_000}),
)
