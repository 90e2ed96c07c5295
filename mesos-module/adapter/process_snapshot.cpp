#include "adapter/process.hpp"

#include <utility>

#include "adapter/convert.hpp"
#include "adapter/holdings.hpp"
#include "adapter/text.hpp"

using std::string;
using std::vector;

namespace allocator {
namespace adapter {

void AllocatorProcess::rebindHandles()
{
  // Kinds and roles that nobody names any more are left behind here.
  state.handles = Handles();

  for (const auto& entry : state.agents) {
    state.handles.agents.bind(entry.first);
  }

  for (const auto& entry : state.frameworks) {
    state.handles.frameworks.bind(entry.first);
  }
}


void AllocatorProcess::snapshot(client::SnapshotWriter* writer)
{
  following = true;
  untold.clear();
  unjudged.clear();
  rebindHandles();

  // Nouns are made before handles are told, for that binds them.
  vector<wire::Framework> frameworks;
  for (const auto& entry : state.frameworks) {
    frameworks.push_back(
        toFramework(entry.first, entry.second, &state.handles));
  }

  vector<wire::Agent> agents;
  for (const auto& entry : state.agents) {
    const Ledger::Agent* books = state.ledger.find(entry.first);
    agents.push_back(toAgent(
        entry.first,
        entry.second,
        books == nullptr ? Resources() : books->total,
        &state.handles));
  }

  // The columns of holdings and filters are bound by a first pass that
  // goes nowhere, since kinds come before everything else.
  client::SnapshotWriter bound;
  snapshotHoldings(&bound);
  snapshotFilters(&bound);

  for (wire::Kind& kind : state.handles.kinds.takeNew()) {
    writer->add(std::move(kind));
  }

  for (wire::Role& role : state.handles.roles.takeNew()) {
    writer->add(std::move(role));
  }

  for (const auto& entry : state.weights) {
    wire::Weight weight;
    weight.set_role(toText(entry.first));
    weight.set_weight(entry.second);
    writer->add(std::move(weight));
  }

  for (const auto& entry : state.quotas) {
    writer->add(toQuota(entry.first, entry.second));
  }

  for (wire::Framework& framework : frameworks) {
    writer->add(std::move(framework));
  }

  for (wire::Agent& agent : agents) {
    writer->add(std::move(agent));
  }

  snapshotHoldings(writer);
  snapshotFilters(writer);
  snapshotExclusions(writer);

  if (state.whitelist.isSome()) {
    wire::Whitelist whitelist;
    whitelist.set_restricted(true);
    for (const string& hostname : state.whitelist.get()) {
      whitelist.add_hostnames(toText(hostname));
    }
    writer->add(std::move(whitelist));
  }

  writer->setPaused(state.recovering);
}


void AllocatorProcess::snapshotHoldings(client::SnapshotWriter* writer)
{
  HoldingsWriter holdings(&state.handles);

  for (const auto& row : state.ledger.agents()) {
    for (const auto& held : row.second.held) {
      holdings.add(held.first, row.first, held.second);
    }
  }

  for (const auto& group : holdings.groups()) {
    writer->add(group.second);
  }
}


void AllocatorProcess::snapshotFilters(client::SnapshotWriter* writer)
{
  const int64_t now = nowMs();
  vector<wire::OfferFilters> rows;

  state.filters.each([&](
      const FrameworkID& frameworkId,
      const string& role,
      const SlaveID& agentId,
      const Filters::Refusal& refusal) {
    auto framework = state.frameworks.find(frameworkId);

    if (refusal.expiresMs < now || framework == state.frameworks.end() ||
        framework->second.roles.count(role) == 0 ||
        !state.agents.contains(agentId)) {
      return;
    }

    HoldingsWriter holdings(&state.handles);
    holdings.add(
        state.handles.frameworks.bind(frameworkId),
        state.handles.roles.bind(role),
        state.handles.agents.find(agentId),
        refusal.refused);

    wire::OfferFilters filters;
    *filters.mutable_refused() = holdings.groups().begin()->second;
    filters.add_expires_ms(refusal.expiresMs);
    rows.push_back(filters);
  });

  for (const wire::OfferFilters& filters : rows) {
    writer->add(filters);
  }
}


void AllocatorProcess::snapshotExclusions(client::SnapshotWriter* writer)
{
  wire::Exclusions exclusions;

  for (const auto& framework : state.frameworks) {
    for (const auto& role : framework.second.excluded) {
      for (const SlaveID& agentId : role.second) {
        exclusions.add_framework(
            state.handles.frameworks.find(framework.first));
        exclusions.add_role(state.handles.roles.find(role.first));
        exclusions.add_agent(state.handles.agents.find(agentId));
        exclusions.add_excluded(true);
      }
    }
  }

  if (exclusions.framework_size() > 0) {
    writer->add(exclusions);
  }
}

} // namespace adapter {
} // namespace allocator {
