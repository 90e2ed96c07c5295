#include "adapter/ledger.hpp"

#include <algorithm>
#include <utility>

#include "adapter/handles.hpp"

using std::vector;

namespace allocator {
namespace adapter {

namespace {

// Whether two objects are plain and the same; cheap, and not sure where it
// says no.
bool isSame(const Resource& one, const Resource& other)
{
  if (!isPlain(one) || !isPlain(other) || one.type() != other.type() ||
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


void Ledger::addAgent(const SlaveID& agentId, const Resources& total)
{
  Agent agent;
  agent.total = total;
  rows[agentId] = std::move(agent);
}


void Ledger::removeAgent(const SlaveID& agentId)
{
  rows.erase(agentId);
}


void Ledger::setTotal(const SlaveID& agentId, const Resources& total)
{
  auto row = rows.find(agentId);

  if (row != rows.end()) {
    row->second.total = total;
    row->second.stale = true;
    row->second.wholeRole.clear();
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
