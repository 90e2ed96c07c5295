#include "adapter/quota_usage.hpp"

#include "adapter/handles.hpp"

using std::string;
using std::vector;

namespace allocator {
namespace adapter {
namespace {

// Names and roles of which nothing is left are dropped.
void add(const Quantities& more, int64_t sign, Quantities* to)
{
  for (const auto& quantity : more) {
    int64_t& sum = (*to)[quantity.first];
    sum += sign * quantity.second;

    if (sum == 0) {
      to->erase(quantity.first);
    }
  }
}


void add(
    const std::map<string, Quantities>& more,
    int64_t sign,
    std::map<string, Quantities>* to)
{
  for (const auto& role : more) {
    Quantities& sum = (*to)[role.first];
    add(role.second, sign, &sum);

    if (sum.empty()) {
      to->erase(role.first);
    }
  }
}


void add(const QuotaUsage::Sums& more, int64_t sign, QuotaUsage::Sums* to)
{
  add(more.free, sign, &to->free);
  add(more.consumed, sign, &to->consumed);
  add(more.total, sign, &to->total);
  add(more.heldByRole, sign, &to->heldByRole);
}

} // namespace {


bool countsAgainstQuota(const Resource& resource)
{
  return resource.type() == mesos::Value::SCALAR &&
      resource.reservations_size() == 0 && !resource.has_revocable();
}


string topLevel(const string& role)
{
  return role.substr(0, role.find('/'));
}


QuotaUsage::Sums countUsage(const Ledger::Agent& agent)
{
  QuotaUsage::Sums sums;

  for (const Resource& resource : agent.total) {
    if (resource.type() != mesos::Value::SCALAR) {
      continue;
    }

    const int64_t amount = amountOf(resource);
    sums.total[resource.name()] += amount;

    if (countsAgainstQuota(resource)) {
      sums.free[resource.name()] += amount;
    } else if (resource.reservations_size() > 0) {
      const string role = topLevel(Resources::reservationRole(resource));
      sums.consumed[role][resource.name()] += amount;
    }
  }

  for (const auto& held : agent.held) {
    for (const Resource& resource : held.second) {
      if (resource.type() != mesos::Value::SCALAR) {
        continue;
      }

      const int64_t amount = amountOf(resource);
      const string& holder = resource.allocation_info().role();
      sums.heldByRole[holder][resource.name()] += amount;

      if (countsAgainstQuota(resource)) {
        const string role = topLevel(holder);
        sums.free[resource.name()] -= amount;
        sums.consumed[role][resource.name()] += amount;
      }
    }
  }

  return sums;
}


const QuotaUsage::Sums& QuotaUsage::of(const Ledger& ledger)
{
  const Option<vector<SlaveID>> changes = ledger.takeChanges();

  if (changes.isSome()) {
    for (const SlaveID& agentId : changes.get()) {
      recount(ledger, agentId);
    }
    return sums;
  }

  sums = Sums();
  agents.clear();
  for (const auto& row : ledger.agents()) {
    recount(ledger, row.first);
  }

  return sums;
}


void QuotaUsage::recount(const Ledger& ledger, const SlaveID& agentId)
{
  auto before = agents.find(agentId);
  if (before != agents.end()) {
    add(before->second, -1, &sums);
    agents.erase(before);
  }

  const Ledger::Agent* books = ledger.find(agentId);
  if (books != nullptr) {
    ++counted_;
    const Sums now = countUsage(*books);
    add(now, 1, &sums);
    agents[agentId] = now;
  }
}

} // namespace adapter {
} // namespace allocator {
