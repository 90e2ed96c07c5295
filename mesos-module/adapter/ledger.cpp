#include "adapter/ledger.hpp"

#include <algorithm>
#include <utility>

#include "adapter/handles.hpp"

using std::vector;

namespace allocator {
namespace adapter {

namespace {

// Whether nothing distinguishes objects of this name but their value.
bool isBare(const Resource& resource)
{
  return resource.reservations_size() == 0 && !resource.has_disk() &&
      !resource.has_revocable() && !resource.has_shared() &&
      !resource.has_provider_id();
}


// Whether two objects are bare and the same; cheap, and not sure where it
// says no.
bool isSame(const Resource& one, const Resource& other)
{
  if (!isBare(one) || !isBare(other) || one.type() != other.type() ||
      one.name() != other.name() ||
      one.allocation_info().role() != other.allocation_info().role()) {
    return false;
  }

  if (one.type() == mesos::Value::SCALAR) {
    return thousandths(one.scalar()) == thousandths(other.scalar());
  }

  if (one.type() != mesos::Value::RANGES ||
      one.ranges().range_size() != other.ranges().range_size()) {
    return false;
  }

  for (int i = 0; i < one.ranges().range_size(); ++i) {
    const mesos::Value::Range& range = one.ranges().range(i);
    if (range.begin() != other.ranges().range(i).begin() ||
        range.end() != other.ranges().range(i).end()) {
      return false;
    }
  }

  return true;
}


bool isSame(const Resources& one, const Resources& other)
{
  return one.size() == other.size() &&
      std::equal(
             one.begin(),
             one.end(),
             other.begin(),
             [](const Resource& mine, const Resource& yours) {
               return isSame(mine, yours);
             });
}

} // namespace {


const Resources& Ledger::Agent::available() const
{
  if (stale) {
    // A shared volume stays free for others however many hold it.
    Resources free = total.nonShared();

    for (const auto& entry : held) {
      Resources taken = entry.second.nonShared();
      taken.unallocate();
      free -= taken;
    }

    cached = free + total.shared();
    stale = false;
  }

  return cached;
}


void Ledger::note(const SlaveID& agentId, const Agent& agent)
{
  if (noting && !agent.changed) {
    agent.changed = true;
    changes.push_back(agentId);

    // Nobody takes them any more, but agents come and go.
    if (changes.size() > 2 * rows.size() + 1024) {
      noting = false;
      changes.clear();
    }
  }
}


Option<vector<SlaveID>> Ledger::takeChanges() const
{
  const bool known = noting;
  noting = true;

  if (!known) {
    for (const auto& row : rows) {
      row.second.changed = false;
    }
    return None();
  }

  for (const SlaveID& agentId : changes) {
    auto row = rows.find(agentId);
    if (row != rows.end()) {
      row->second.changed = false;
    }
  }

  vector<SlaveID> result;
  result.swap(changes);
  return result;
}


void Ledger::addAgent(const SlaveID& agentId, const Resources& total)
{
  Agent& agent = rows[agentId];
  agent = Agent();
  agent.total = total;
  note(agentId, agent);
}


void Ledger::removeAgent(const SlaveID& agentId)
{
  auto row = rows.find(agentId);

  if (row != rows.end()) {
    note(agentId, row->second);
    rows.erase(row);
  }
}


void Ledger::setTotal(const SlaveID& agentId, const Resources& total)
{
  auto row = rows.find(agentId);

  if (row != rows.end()) {
    row->second.total = total;
    row->second.stale = true;
    row->second.wholeRole.clear();
    note(agentId, row->second);
  }
}


void Ledger::hold(
    const FrameworkID& frameworkId,
    const SlaveID& agentId,
    const Resources& resources)
{
  auto row = rows.find(agentId);

  if (row == rows.end() || resources.empty()) {
    return;
  }

  Agent& agent = row->second;
  note(agentId, agent);
  agent.held[frameworkId] += resources;

  if (!agent.stale) {
    Resources taken = resources.nonShared();
    taken.unallocate();
    agent.cached -= taken;
  }
}


Resources Ledger::offer(
    const FrameworkID& frameworkId,
    const SlaveID& agentId,
    const std::string& role,
    const Resources& given,
    bool all)
{
  auto row = rows.find(agentId);

  if (row == rows.end()) {
    return Resources();
  }

  Agent& agent = row->second;
  note(agentId, agent);

  if (!all || !agent.held.empty()) {
    Resources allocated = given;
    allocated.allocate(role);
    agent.held[frameworkId] += allocated;

    if (all) {
      agent.cached = Resources();
    } else if (!agent.stale) {
      agent.cached -= given.nonShared();
    }

    return allocated;
  }

  if (agent.wholeRole != role) {
    agent.whole = agent.total;
    agent.whole.allocate(role);
    agent.wholeRole = role;
  }

  agent.held[frameworkId] = agent.whole;
  agent.cached = Resources();
  return agent.whole;
}


Resources Ledger::release(
    const FrameworkID& frameworkId,
    const SlaveID& agentId,
    const Resources& resources)
{
  auto row = rows.find(agentId);

  if (row == rows.end()) {
    return Resources();
  }

  Agent& agent = row->second;
  auto held = agent.held.find(frameworkId);

  if (held == agent.held.end()) {
    return Resources();
  }

  note(agentId, agent);

  // Mostly all of it comes back.
  Resources left;
  if (!isSame(held->second, resources)) {
    left = held->second - resources;
  }

  if (!left.empty()) {
    const Resources released = held->second - left;
    held->second = left;
    agent.stale = true;
    return released;
  }

  const Resources released = std::move(held->second);
  agent.held.erase(held);
  agent.stale = !agent.held.empty();
  if (!agent.stale) {
    agent.cached = agent.total;
  }

  return released;
}


void Ledger::removeFramework(const FrameworkID& frameworkId)
{
  for (auto& row : rows) {
    if (row.second.held.erase(frameworkId) > 0) {
      row.second.stale = true;
      note(row.first, row.second);
    }
  }
}


Try<Nothing> Ledger::convertHeld(
    const FrameworkID& frameworkId,
    const SlaveID& agentId,
    const Resources& offered,
    const vector<ResourceConversion>& conversions)
{
  auto row = rows.find(agentId);

  if (row == rows.end()) {
    return Error("the agent is not known");
  }

  Agent& agent = row->second;
  auto held = agent.held.find(frameworkId);

  if (held == agent.held.end() || !held->second.contains(offered)) {
    return Error("the framework does not hold what is converted");
  }

  Try<Resources> converted = offered.apply(conversions);
  if (converted.isError()) {
    return Error("held resources: " + converted.error());
  }

  vector<ResourceConversion> ofTotal;
  for (const ResourceConversion& conversion : conversions) {
    if (!conversion.consumed.empty()) {
      Resources before = conversion.consumed;
      Resources after = conversion.converted;
      before.unallocate();
      after.unallocate();
      ofTotal.emplace_back(before, after);
    }
  }

  Try<Resources> total = agent.total.apply(ofTotal);
  if (total.isError()) {
    return Error("total: " + total.error());
  }

  note(agentId, agent);
  agent.total = total.get();
  agent.wholeRole.clear();
  held->second -= offered;
  held->second += converted.get();

  if (held->second.empty()) {
    agent.held.erase(held);
  }

  agent.stale = true;
  return Nothing();
}


Try<Nothing> Ledger::convertFree(
    const SlaveID& agentId,
    const vector<mesos::Offer::Operation>& operations)
{
  auto row = rows.find(agentId);

  if (row == rows.end()) {
    return Error("the agent is not known");
  }

  Agent& agent = row->second;

  // Held copies of a shared volume are no hindrance to other operations,
  // but the volume must not be destroyed under them.
  Resources free = agent.available();
  for (const auto& entry : agent.held) {
    Resources shared = entry.second.shared();
    shared.unallocate();
    free -= shared;
  }

  Try<Resources> after = free.apply(operations);
  if (after.isError()) {
    return Error(after.error());
  }

  Try<Resources> total = agent.total.apply(operations);
  if (total.isError()) {
    return Error(total.error());
  }

  note(agentId, agent);
  agent.total = total.get();
  agent.wholeRole.clear();
  agent.stale = true;
  return Nothing();
}


const Ledger::Agent* Ledger::find(const SlaveID& agentId) const
{
  auto row = rows.find(agentId);
  return row == rows.end() ? nullptr : &row->second;
}

} // namespace adapter {
} // namespace allocator {
