#include "brain/brain.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "brain/user_input/text.hpp"

namespace allocator {
namespace brain {
namespace {

// Sorted by the number of the name; keeps amounts of 0.
Amounts byName(const Quantities& quantities, Names* names)
{
  Amounts result;
  for (const auto& entry : quantities) {
    result.emplace_back(names->use(entry.first), entry.second);
  }
  std::sort(result.begin(), result.end());
  return result;
}

} // namespace {


std::string Brain::step(const SetQuota& event, int64_t)
{
  if (event.guarantees.empty() && event.limits.empty()) {
    state.quotas.erase(event.role);
  } else {
    state.quotas[event.role] = Cluster::Quota{event.guarantees, event.limits};
  }

  const uint32_t role = state.roles.number(event.role);
  placeRoles();
  state.sums.setQuota(
      role,
      byName(event.guarantees, &state.classes.names),
      byName(event.limits, &state.classes.names));

  wire::Event message;
  *message.mutable_quota() =
      toWire(event.role, Cluster::Quota{event.guarantees, event.limits});
  send(std::move(message));
  return std::string();
}


std::string Brain::step(const SetWeights& event, int64_t)
{
  wire::Event message;

  for (const auto& entry : event.weights) {
    state.weights[entry.first] = entry.second;
    wire::Weight* weight = message.mutable_weights()->add_weights();
    weight->set_role(toText(entry.first));
    weight->set_weight(entry.second);
  }

  if (!event.weights.empty()) {
    send(std::move(message));
  }

  return std::string();
}


std::string Brain::step(const SetWhitelist& event, int64_t)
{
  state.restricted = event.restricted;
  state.whitelist = event.hostnames;

  wire::Event message;
  *message.mutable_whitelist() = toWire(state);
  send(std::move(message));
  return std::string();
}


std::string Brain::step(const Exclude& event, int64_t)
{
  wire::Event message;

  for (const Exclude::Row& row : event.rows) {
    uint32_t agent;
    uint32_t framework;
    const uint32_t role = state.roles.find(row.role);

    if (role == 0 || findAgent(row.agent, &agent) == nullptr ||
        findFramework(row.framework, &framework) == nullptr) {
      continue;
    }

    exclude(framework, role, agent, row.excluded, &message);
  }

  if (message.exclusions().framework_size() > 0) {
    send(std::move(message));
  }

  return std::string();
}


// Books and reports a change of whether a framework's constraints exclude an
// agent.
void Brain::exclude(
    uint32_t framework,
    uint32_t role,
    uint32_t agent,
    bool excluded,
    wire::Event* message)
{
  Framework* record = state.frameworks.edit(framework);
  if (record->roles.count(role) == 0) {
    return;
  }

  std::vector<bool>& agents = record->excluded[role];
  if (agent >= agents.size()) {
    agents.resize(agent + 1, false);
  }

  if (agents[agent] == excluded) {
    return;
  }

  agents[agent] = excluded;
  wire::Exclusions* change = message->mutable_exclusions();
  change->add_framework(framework);
  change->add_role(state.roles.handle(role));
  change->add_agent(agent);
  change->add_excluded(excluded);

  // Keep messages smaller than the sidecar's limit.
  if (change->framework_size() >= EventCoalescer::ROWS_MAX) {
    send(std::move(*message));
    *message = wire::Event();
  }
}


std::string
Brain::apply(const IgnoreConstraints& event, uint32_t framework, int64_t)
{
  if (event.roles.empty()) {
    return std::string();
  }

  wire::Event message;
  const auto before = state.frameworks.find(framework)->excluded;
  for (const std::string& each : event.roles) {
    const uint32_t role = state.roles.find(each);
    auto excluded = before.find(role);
    for (uint32_t agent = 0;
         excluded != before.end() && agent < excluded->second.size();
         ++agent) {
      exclude(framework, role, agent, false, &message);
    }
  }

  if (message.exclusions().framework_size() > 0) {
    send(std::move(message));
  }

  Aside aside;
  aside.add(
      "offer_constraints",
      wire::SET_ASIDE_REASON_TOO_MANY,
      "not evaluated for " + std::to_string(event.roles.size()) +
          " of its roles");

  // Report the ignored constraints like other ignored input; the sidecar
  // already knows `rows`.
  Framework* edited = state.frameworks.edit(framework);
  wire::Framework info = *edited->info;
  const Aside::Rows rows = info.set_aside();
  if (size_t(info.set_aside_size()) < ASIDE_ROWS_MAX) {
    info.mutable_set_aside()->MergeFrom(aside.rows());
  }
  setAside("framework " + event.framework, 1, info.set_aside(), rows);
  edited->info = std::make_shared<const wire::Framework>(info);

  if (following) {
    wire::Event update;
    *update.mutable_update_framework() = toWire(*edited, framework, &state);
    send(std::move(update));
  }

  return std::string();
}

} // namespace brain {
} // namespace allocator {
