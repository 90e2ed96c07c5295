#include "brain/brain.hpp"

#include <algorithm>
#include <utility>

#include "brain/text.hpp"

namespace allocator {
namespace brain {
namespace {

// Sorted by the number of the name; amounts of 0 count.
Amounts byName(const Quantities& quantities, Names* names)
{
  Amounts result;
  for (const auto& entry : quantities) {
    result.emplace_back(names->number(entry.first), entry.second);
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

  state.sums.setQuota(
      state.roles.number(event.role),
      byName(event.guarantees, &state.pieces.names),
      byName(event.limits, &state.pieces.names));

  wire::Event message;
  *message.mutable_quota() =
      brain::toWire(event.role, Cluster::Quota{event.guarantees, event.limits});
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
  *message.mutable_whitelist() = brain::toWire(state);
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

    Framework* record = state.frameworks.edit(framework);
    std::vector<bool>& excluded = record->excluded[role];
    if (agent >= excluded.size()) {
      excluded.resize(agent + 1, false);
    }

    if (excluded[agent] == row.excluded) {
      continue;
    }

    excluded[agent] = row.excluded;
    wire::Exclusions* change = message.mutable_exclusions();
    change->add_framework(framework);
    change->add_role(state.roles.handle(role));
    change->add_agent(agent);
    change->add_excluded(row.excluded);

    // A message must not become too large for the sidecar.
    if (change->framework_size() >= Pending::ROWS_MAX) {
      send(std::move(message));
      message = wire::Event();
    }
  }

  if (message.exclusions().framework_size() > 0) {
    send(std::move(message));
  }

  return std::string();
}

} // namespace brain {
} // namespace allocator {
