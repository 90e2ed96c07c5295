#include "brain/brain.hpp"

#include <memory>
#include <utility>

#include "brain/user_input/text.hpp"

namespace allocator {
namespace brain {
namespace {

void addUpdate(
    const Agent& agent,
    uint32_t number,
    Cluster* cluster,
    wire::UpdateAgent* update)
{
  const wire::Agent& info = *agent.info;
  update->set_agent(number);
  update->set_replaces_info(true);
  update->set_replaces_capabilities(true);
  update->set_hostname(info.hostname());
  *update->mutable_attributes() = info.attributes();
  *update->mutable_capabilities() = info.capabilities();
  *update->mutable_set_aside() = info.set_aside();
  if (info.has_domain()) {
    *update->mutable_domain() = info.domain();
  }
  addAmounts(
      cluster->kinds.toAmounts(Books::total(agent), cluster->classes),
      update->mutable_capacity());
  sendOverflow(agent, *cluster, update->mutable_set_aside());
  fit(cluster->messageBytesMax, update);
}

// Reports that the agent uses more roles than its limit allows.
void reportFolded(const Agent& agent, Aside::Rows* rows)
{
  if (agent.folded > 0) {
    Aside aside;
    aside.add(
        "roles",
        wire::SET_ASIDE_REASON_TOO_MANY,
        "'" + toShown(agent.foldedRole, ASIDE_QUOTE_BYTES_MAX) +
            "' is in use beyond the limit on roles; " +
            std::to_string(agent.folded) + " such roles in all");
    append(aside, rows);
  }
}

} // namespace {


const Agent* Brain::findAgent(const std::string& id, uint32_t* number)
{
  *number = state.agentHandles.find(id);
  return *number == Handles::NONE ? nullptr : state.agents.find(*number);
}


void Brain::describeAgent(const wire::Agent& said, Agent* agent)
{
  Aside aside;
  wire::Agent info = takeAgent(said, &aside);
  reportFolded(*agent, info.mutable_set_aside());
  setAside(
      "agent " + agent->id,
      aside.count() + agent->folded,
      info.set_aside(),
      agent->info == nullptr ? Aside::Rows() : agent->info->set_aside());

  agent->hostname = info.hostname();
  agent->region = info.has_domain() ? info.domain().region() : std::string();
  agent->multiRole = agent->hierarchicalRole = false;

  for (int capability : info.capabilities()) {
    agent->multiRole =
        agent->multiRole || capability == wire::AGENT_CAPABILITY_MULTI_ROLE;
    agent->hierarchicalRole = agent->hierarchicalRole ||
        capability == wire::AGENT_CAPABILITY_HIERARCHICAL_ROLE;
  }

  agent->info = std::make_shared<const wire::Agent>(std::move(info));
}


// Updates the report on folded roles.
void Brain::updateFoldedReport(Agent* agent)
{
  wire::Agent info = *agent->info;
  reportFolded(*agent, info.mutable_set_aside());
  setAside("agent " + agent->id, 1, info.set_aside(), agent->info->set_aside());
  agent->info = std::make_shared<const wire::Agent>(std::move(info));
}


std::string Brain::checkUses(const std::vector<Use>& used) const
{
  for (const Use& use : used) {
    if (!state.classes.defined(use.parts)) {
      return "a holding of framework " + use.framework +
          " names a resource class that is not defined";
    }
    if (use.role.empty()) {
      return "a holding of framework " + use.framework + " has no role";
    }
  }

  return std::string();
}


std::vector<uint32_t> Brain::useRoles(
    uint32_t agent,
    const std::vector<Use>& used)
{
  std::vector<uint32_t> roles;
  roles.reserve(used.size());
  for (const Use& use : used) {
    roles.push_back(useRole(agent, use.role));
  }
  placeRoles();
  return roles;
}


// Binds a number for a framework that has not reregistered yet.
void Brain::holdUses(
    uint32_t agent,
    const std::vector<Use>& used,
    const std::vector<uint32_t>& roles)
{
  for (size_t i = 0; i < used.size(); ++i) {
    const Use& use = used[i];
    const uint32_t framework = state.frameworkHandles.bind(use.framework);
    state.books.hold(agent, framework, roles[i], use.parts);
    sendHold(framework, roles[i], agent, use.parts);
  }
}


std::string Brain::step(AddAgent event, int64_t)
{
  uint32_t number;
  if (findAgent(event.agent, &number) != nullptr) {
    return misfit("Agent " + event.agent + " was added twice");
  }

  std::string wrong = checkUses(event.used);
  if (!state.classes.defined(event.total)) {
    wrong = "its total names a resource class that is not defined";
  }
  if (!wrong.empty()) {
    return misfit("Agent " + event.agent + " is not added: " + wrong);
  }

  number = state.agentHandles.bind(event.agent);
  Agent* agent = state.agents.add(number);
  agent->id = std::move(event.agent);
  agent->reporter = toReporter(++reporters, false, number);
  state.classes.setReporter(event.total, agent->reporter);
  agent->unavailability = event.unavailability;
  const std::vector<uint32_t> roles = useRoles(number, event.used);
  agent = state.agents.edit(number);
  describeAgent(event.info, agent);
  state.books.setTotal(number, event.total);
  inverse.set(number, event.unavailability.scheduled);

  if (following) {
    wire::Event message;
    *message.mutable_add_agent() =
        toWire(*state.agents.find(number), number, &state);
    state.agentHandles.sent(number, send(std::move(message)));
  }

  holdUses(number, event.used, roles);

  if (state.recovering && state.agents.size() >= expectedAgents) {
    endRecovery();
  }

  trigger(number);
  return std::string();
}


std::string Brain::apply(const RemoveAgent&, uint32_t number, int64_t)
{
  state.filters.dropAgent(number);
  comparison.forgetAgent(number);
  state.books.removeAgent(number);
  state.kinds.forgetReporter(state.agents.find(number)->reporter);
  state.agents.remove(number);
  inverse.removeAgent(number);

  for (uint32_t each = 0; each < state.frameworks.end(); ++each) {
    const Framework* framework = state.frameworks.find(each);
    if (framework == nullptr) {
      continue;
    }

    for (const auto& role : framework->excluded) {
      if (number < role.second.size() && role.second[number]) {
        state.frameworks.edit(each)->excluded[role.first][number] = false;
        framework = state.frameworks.find(each);
      }
    }
  }

  wire::Event message;
  message.mutable_remove_agent()->set_agent(number);
  state.agentHandles.release(number, send(std::move(message)));
  return std::string();
}


std::string Brain::apply(const UpdateAgent& event, uint32_t number, int64_t)
{
  if (event.hasTotal && !state.classes.defined(event.total)) {
    return misfit(
        "Agent " + event.agent +
        " is not updated: its total names a resource class that is not defined");
  }

  if (event.hasTotal) {
    state.classes.setReporter(event.total, state.agents.find(number)->reporter);
  }

  const bool newTotal =
      event.hasTotal && state.books.setTotal(number, event.total);

  if (event.newAttributes) {
    state.filters.dropAgent(number);
  }

  if (!event.newInfo && !newTotal) {
    return std::string();
  }

  describeAgent(event.info, state.agents.edit(number));

  if (following) {
    const Agent& agent = *state.agents.find(number);
    wire::Event message;
    addUpdate(agent, number, &state, message.mutable_update_agent());
    send(std::move(message));
  }

  trigger(number);
  return std::string();
}


std::string Brain::apply(const AddProvider& event, uint32_t number, int64_t)
{
  const Agent* agent = state.agents.find(number);

  std::string wrong = checkUses(event.used);
  if (!state.classes.defined(event.total)) {
    wrong = "its total names a resource class that is not defined";
  }
  if (!wrong.empty()) {
    return misfit(
        "A provider of agent " + event.agent + " is not added: " + wrong);
  }

  const size_t folded = agent->folded;
  const std::vector<uint32_t> roles = useRoles(number, event.used);
  agent = state.agents.find(number);
  if (agent->folded > folded) {
    updateFoldedReport(state.agents.edit(number));
  }

  state.classes.setReporter(event.total, agent->reporter);
  Parts total = Books::total(*agent);
  add(event.total, &total);

  if (state.books.setTotal(number, total) && following) {
    agent = state.agents.find(number);
    wire::Event message;
    addUpdate(*agent, number, &state, message.mutable_update_agent());
    send(std::move(message));
  }

  holdUses(number, event.used, roles);
  return std::string();
}


std::string Brain::apply(const ActivateAgent& event, uint32_t number, int64_t)
{
  // Outstanding offers stay booked: the master returns them one by one.
  state.agents.edit(number)->active = event.active;
  inverse.forgetOutstandingOfAgent(number);

  wire::Event message;
  message.mutable_activate_agent()->set_agent(number);
  message.mutable_activate_agent()->set_active(event.active);
  send(std::move(message));
  return std::string();
}


std::string
Brain::apply(const SetUnavailability& event, uint32_t number, int64_t)
{
  state.agents.edit(number)->unavailability = event.unavailability;
  inverse.set(number, event.unavailability.scheduled);

  wire::Event message;
  message.mutable_unavailability()->set_agent(number);
  if (event.unavailability.scheduled) {
    *message.mutable_unavailability()->mutable_unavailability() =
        toWire(event.unavailability);
  }
  send(std::move(message));
  trigger(number);
  return std::string();
}


std::string Brain::step(const AnswerInverseOffer& event, int64_t nowMs)
{
  uint32_t agent;
  uint32_t framework;
  if (findAgent(event.agent, &agent) == nullptr ||
      findFramework(event.framework, &framework) == nullptr) {
    return "Agent " + event.agent + " or framework " + event.framework +
        " is not known";
  }

  const Maintenance::Answer answer{event.status, event.atNs};
  inverse.answer(
      agent,
      framework,
      event.hasStatus ? &answer : nullptr,
      event.refuseMs,
      nowMs);

  wire::Event message;
  wire::InverseOfferUpdate* update = message.mutable_inverse_offer();
  update->set_framework(framework);
  update->set_agent(agent);
  update->set_refuse_ms(event.refuseMs);
  update->set_status(
      event.hasStatus ? event.status
                      : wire::InverseOfferUpdate::STATUS_UNKNOWN);
  send(std::move(message));
  return std::string();
}

} // namespace brain {
} // namespace allocator {
