#include "tests/session/small_master.hpp"

#include <algorithm>

namespace allocator {
namespace session {
namespace {

// Amounts by kind.
template <typename All>
Amounts amountsOf(const All& all)
{
  Amounts result;
  for (int64_t amount : all) {
    result.emplace_back(result.size(), amount);
  }
  return result;
}

} // namespace {


SmallMaster::SmallMaster(const Options& _options)
  : options(_options),
    random(_options.seed),
    agents(_options.agents + 1),
    frameworks(_options.frameworks + 1)
{
  for (uint32_t handle = 1; handle < agents.size(); ++handle) {
    addAgent(handle, [](wire::Event&&) { return 0; });
  }

  for (uint32_t handle = 1; handle < frameworks.size(); ++handle) {
    frameworks[handle].role = handle;
  }
}


wire::Agent SmallMaster::toWire(uint32_t handle) const
{
  const Agent& agent = agents[handle];
  wire::Agent message;
  message.set_agent(handle);
  message.set_agent_id("agent-" + std::to_string(handle));
  message.set_hostname("host-" + std::to_string(handle));

  for (size_t kind = 0; kind < KINDS; ++kind) {
    message.mutable_capacity()->add_kind(kind);
    message.mutable_capacity()->add_amount(agent.capacity[kind]);
  }

  return message;
}


wire::Framework SmallMaster::toWireFramework(uint32_t handle) const
{
  wire::Framework message;
  message.set_framework(handle);
  message.set_framework_id("framework-" + std::to_string(handle));
  message.set_name("framework");
  message.add_roles(frameworks[handle].role);
  message.set_inactive(!frameworks[handle].active);
  return message;
}


wire::Holdings SmallMaster::toWire(const Holding& holding) const
{
  wire::Holdings message;
  message.add_framework(holding.framework);
  message.add_role(frameworks[holding.framework].role);
  message.add_agent(holding.agent);

  for (size_t kind = 0; kind < KINDS; ++kind) {
    message.add_kind(kind);
    message.add_amount(holding.amounts[kind]);
  }

  return message;
}


void SmallMaster::describe(SnapshotWriter* writer)
{
  const char* const names[KINDS] = {"cpus", "mem"};

  for (uint32_t kind = 0; kind < KINDS; ++kind) {
    wire::Kind* message = writer->nouns()->add_kinds();
    message->set_kind(kind);
    message->set_name(names[kind]);
    message->set_type(wire::VALUE_TYPE_SCALAR);
  }

  for (uint32_t handle = 1; handle < frameworks.size(); ++handle) {
    wire::Role* role = writer->nouns()->add_roles();
    role->set_role(frameworks[handle].role);
    role->set_path("role-" + std::to_string(handle));
  }

  for (uint32_t handle = 1; handle < frameworks.size(); ++handle) {
    *writer->nouns()->add_frameworks() = toWireFramework(handle);
  }

  for (uint32_t handle = 1; handle < agents.size(); ++handle) {
    agents[handle].since = 0;

    if (agents[handle].known) {
      *writer->nouns()->add_agents() = toWire(handle);
    }
  }

  for (const Holding& holding : held) {
    const wire::Holdings row = toWire(holding);
    writer->addHolding(
        Place{row.framework(0), row.role(0), row.agent(0)},
        amountsOf(holding.amounts));
  }

  describeFilters(writer);
}


void SmallMaster::describeFilters(SnapshotWriter* writer) const
{
  for (uint32_t i = 0; i < options.filters; ++i) {
    const uint32_t framework = i % options.frameworks + 1;
    const uint32_t agent = i / options.frameworks % options.agents + 1;

    if (!agents[agent].known) {
      continue;
    }

    writer->addFilter(
        Place{framework, frameworks[framework].role, agent},
        amountsOf(agents[agent].capacity),
        options.filtersUntilMs);
  }
}


wire::OutcomeReason SmallMaster::gate(
    const Decision& decision,
    uint64_t sequence) const
{
  const uint32_t framework = decision.framework();
  const uint32_t agent = decision.agent();

  for (size_t column = 0; column < decision.kinds(); ++column) {
    if (decision.kind(column) >= KINDS) {
      return wire::OUTCOME_REASON_MALFORMED;
    }
  }

  if (framework >= frameworks.size()) {
    return wire::OUTCOME_REASON_UNKNOWN_FRAMEWORK;
  }

  if (!frameworks[framework].active) {
    return wire::OUTCOME_REASON_INACTIVE_FRAMEWORK;
  }

  if (frameworks[framework].role != decision.role()) {
    return wire::OUTCOME_REASON_BAD_ROLE;
  }

  if (agent >= agents.size() || !agents[agent].known) {
    return wire::OUTCOME_REASON_UNKNOWN_AGENT;
  }

  if (agents[agent].since > sequence) {
    return wire::OUTCOME_REASON_STALE;
  }

  return wire::OUTCOME_REASON_OFFERED;
}


Outcomes SmallMaster::offer(const Decisions& decisions)
{
  Outcomes outcomes(decisions);

  decisions.each([&](const Decision& decision) {
    const wire::OutcomeReason reason = gate(decision, decisions.sequence);

    if (reason == wire::OUTCOME_REASON_OFFERED) {
      give(decision, &outcomes);
    } else {
      outcomes.refused(reason);
    }
  });

  return outcomes;
}


void SmallMaster::give(const Decision& decision, Outcomes* outcomes)
{
  Agent& agent = agents[decision.agent()];
  Holding holding{decision.framework(), decision.agent(), {}, false};
  std::vector<int64_t> given(decision.kinds());
  bool exact = true;
  bool any = false;

  for (size_t column = 0; column < decision.kinds(); ++column) {
    const uint32_t kind = decision.kind(column);
    given[column] = std::min(decision.amount(column), agent.free[kind]);
    exact = exact && given[column] == decision.amount(column);
    any = any || given[column] > 0;
    holding.amounts[kind] = given[column];
  }

  if (!any) {
    outcomes->refused(wire::OUTCOME_REASON_NOTHING_AVAILABLE);
    return;
  }

  for (size_t kind = 0; kind < KINDS; ++kind) {
    agent.free[kind] -= holding.amounts[kind];
  }

  held.push_back(holding);
  ++offers_;

  if (exact) {
    outcomes->offered();
  } else {
    outcomes->partial(decision, given);
  }
}


void SmallMaster::release(
    const Holding& holding,
    int64_t refuseMs,
    const Send& send)
{
  Agent& agent = agents[holding.agent];

  for (size_t kind = 0; kind < KINDS; ++kind) {
    agent.free[kind] += holding.amounts[kind];
  }

  wire::Event event;
  *event.mutable_release()->mutable_released() = toWire(holding);
  event.mutable_release()->add_refuse_ms(refuseMs);
  event.mutable_release()->add_allocated(holding.used);
  send(std::move(event));
}


void SmallMaster::live(const Send& send)
{
  std::vector<Holding> kept;

  for (Holding& holding : held) {
    const uint32_t draw = random() % 10;

    if (holding.used ? draw < 3 : draw < 5) {
      release(holding, !holding.used && draw < 2 ? 2000 : -1, send);
      continue;
    }

    if (!holding.used) {
      wire::Event event;
      *event.mutable_transition() = toWire(holding);
      holding.used = true;
      send(std::move(event));
    }

    kept.push_back(holding);
  }

  held.swap(kept);

  if (!options.churn) {
    return;
  }

  const uint32_t agent = random() % options.agents + 1;

  if (!agents[agent].known) {
    addAgent(agent, send);
  } else if (random() % 4 == 0) {
    removeAgent(agent, send);
  }

  const uint32_t framework = random() % options.frameworks + 1;

  if (!frameworks[framework].active || random() % 4 == 0) {
    activate(framework, !frameworks[framework].active, send);
  }
}


void SmallMaster::settle(const Send& send)
{
  for (const Holding& holding : held) {
    release(holding, -1, send);
  }

  held.clear();

  for (uint32_t handle = 1; handle < agents.size(); ++handle) {
    if (!agents[handle].known) {
      addAgent(handle, send);
    }
  }

  for (uint32_t handle = 1; handle < frameworks.size(); ++handle) {
    if (!frameworks[handle].active) {
      activate(handle, true, send);
    }
  }
}


void SmallMaster::addAgent(uint32_t handle, const Send& send)
{
  Agent& agent = agents[handle];
  const int64_t cpus = random() % 15 + 2;
  agent.known = true;
  agent.capacity = agent.free = Amounts{{cpus * 1000, cpus * 2048000}};

  wire::Event event;
  *event.mutable_add_agent() = toWire(handle);
  agent.since = send(std::move(event));
}


void SmallMaster::removeAgent(uint32_t handle, const Send& send)
{
  agents[handle].known = false;

  held.erase(
      std::remove_if(
          held.begin(),
          held.end(),
          [handle](const Holding& holding) { return holding.agent == handle; }),
      held.end());

  wire::Event event;
  event.mutable_remove_agent()->set_agent(handle);
  send(std::move(event));
}


void SmallMaster::activate(uint32_t handle, bool active, const Send& send)
{
  frameworks[handle].active = active;

  wire::Event event;
  event.mutable_activate_framework()->set_framework(handle);
  event.mutable_activate_framework()->set_active(active);
  send(std::move(event));
}


std::string SmallMaster::check() const
{
  std::vector<Amounts> sums(agents.size(), Amounts{});

  for (const Holding& holding : held) {
    for (size_t kind = 0; kind < KINDS; ++kind) {
      if (holding.amounts[kind] < 0) {
        return "a negative amount is held";
      }

      sums[holding.agent][kind] += holding.amounts[kind];
    }
  }

  for (uint32_t handle = 1; handle < agents.size(); ++handle) {
    const Agent& agent = agents[handle];

    for (size_t kind = 0; agent.known && kind < KINDS; ++kind) {
      if (agent.free[kind] < 0 ||
          sums[handle][kind] + agent.free[kind] != agent.capacity[kind]) {
        return "agent " + std::to_string(handle) + " is over-committed";
      }
    }
  }

  return std::string();
}


std::string SmallMaster::holdings() const
{
  std::string json = "[";

  for (const Holding& holding : held) {
    json += json.size() > 1 ? "," : "";
    json += "[" + std::to_string(holding.framework) + "," +
        std::to_string(frameworks[holding.framework].role) + "," +
        std::to_string(holding.agent);

    for (int64_t amount : holding.amounts) {
      json += "," + std::to_string(amount);
    }

    json += "]";
  }

  return json + "]";
}

} // namespace session {
} // namespace allocator {
