#include "adapter/process.hpp"

#include <utility>

#include "adapter/convert.hpp"
#include "adapter/holdings.hpp"
#include "adapter/text.hpp"

using std::string;
using std::vector;

namespace allocator {
namespace adapter {

void AllocatorProcess::rebindHandles(size_t kindsMax)
{
  // Kinds and roles that nobody names any more are left behind here.
  state.handles = Handles();
  state.handles.kinds = KindTable(kindsMax);

  for (const auto& entry : state.agents) {
    state.handles.agents.bind(entry.first);
  }

  for (const auto& entry : state.frameworks) {
    state.handles.frameworks.bind(entry.first);
  }
}


void AllocatorProcess::welcomed(
    const wire::Welcome& welcome,
    size_t chunkBytesMax)
{
  following = true;
  pending.clear();
  unjudged.clear();
  rebindHandles(
      welcome.kinds_max() > 0 ? welcome.kinds_max() : KindTable::MOST_DEFAULT);

  session::SnapshotWriter writer(chunkBytesMax);
  layOut(&writer);
  keeper->snapshot(writer.take(true), 0, writer.error());
}


void AllocatorProcess::layOut(session::SnapshotWriter* writer)
{
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

  const HoldingsWriter holdings = collectHoldings();
  const FiltersWriter filters = collectFilters();

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

  for (const auto& group : holdings.groups()) {
    writer->add(group.second);
  }

  for (const auto& group : filters.groups()) {
    writer->add(group.second);
  }

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


HoldingsWriter AllocatorProcess::collectHoldings()
{
  HoldingsWriter holdings(&state.handles);

  for (const auto& row : state.ledger.agents()) {
    for (const auto& held : row.second.held) {
      holdings.add(held.first, row.first, held.second);
    }
  }

  return holdings;
}


FiltersWriter AllocatorProcess::collectFilters()
{
  const int64_t now = nowMs();
  FiltersWriter filters;

  // There may be a million. They are visited framework by framework and
  // role by role, so those are looked up when they change.
  const string* lastRole = nullptr;
  bool known = false;
  uint32_t framework = 0;
  uint32_t role = 0;

  state.filters.each([&](const FrameworkID& frameworkId,
                         const string& path,
                         const SlaveID& agentId,
                         const Filters::Refusal& refusal) {
    if (&path != lastRole) {
      lastRole = &path;
      auto found = state.frameworks.find(frameworkId);
      known = found != state.frameworks.end() &&
          found->second.roles.count(path) > 0;

      if (known) {
        framework = state.handles.frameworks.bind(frameworkId);
        role = state.handles.roles.bind(path);
      }
    }

    // Agents are bound; those that are gone have no filters.
    const uint32_t agent =
        known ? state.handles.agents.find(agentId) : state.handles.agents.NONE;

    if (agent != state.handles.agents.NONE && refusal.expiresMs >= now) {
      filters.add(
          framework,
          role,
          agent,
          toAmounts(refusal.refused, &state.handles.kinds),
          refusal.expiresMs);
    }
  });

  return filters;
}


void AllocatorProcess::snapshotExclusions(session::SnapshotWriter* writer)
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
