#include "adapter/consumption.hpp"

#include <algorithm>

#include <process/metrics/metrics.hpp>

#include "brain/user_input/bounds.hpp"

using std::string;
using std::vector;

using process::metrics::PushGauge;

namespace allocator {
namespace adapter {

string parentOf(const brain::Roles& roles, const string& role)
{
  const uint32_t number = roles.find(role);
  if (number != 0) {
    const uint32_t parent = roles.parent(number);
    return parent == 0 ? string() : roles.path(parent);
  }

  size_t end = 0;
  size_t next = role.find('/');
  for (size_t level = 1; level < brain::ROLE_DEPTH_MAX && next != string::npos;
       ++level) {
    end = next;
    next = role.find('/', end + 1);
  }
  return role.substr(0, end);
}


Consumption::Consumption(
    const brain::Cluster& _books,
    const Reserves& _reserves)
  : books(_books), reserves(_reserves)
{
}


Consumption::~Consumption()
{
  for (const auto& each : shown) {
    process::metrics::remove(each.second.gauge);
  }
}


void Consumption::updateReserved(const string& agent)
{
  if (books.agentHandles.find(agent) == brain::Handles::NONE) {
    return;
  }

  Amounts& before = agents[agent].reserved;
  const Amounts now = reservedOn(agent, before);

  for (const auto& each : before) {
    if (now.count(each.first) == 0) {
      consume(each.first, -each.second);
      countRow(each.first.first, -1);
    }
  }

  for (const auto& each : now) {
    const auto found = before.find(each.first);
    const bool isNew = found == before.end();
    consume(each.first, each.second - (isNew ? 0 : found->second));
    countRow(each.first.first, isNew ? 1 : 0);
  }

  before = now;
}


// Books a use or release. A release is clamped to what is in use, because the
// records of master and allocator may differ about pending operations.
void Consumption::use(
    const string& agent,
    const vector<brain::RoleParts>& parts,
    int64_t sign)
{
  const auto record = agents.find(agent);
  if (record == agents.end()) {
    return;
  }

  Amounts& used = record->second.used;

  for (const brain::RoleParts& role : parts) {
    for (const brain::Part& part : role.parts) {
      const brain::Traits& traits = books.classes.traits(part.resourceClass);
      const Amounts::key_type key(role.role, traits.name);
      const auto found = used.find(key);

      if (!traits.quotaCounts() ||
          (found == used.end() && (sign < 0 || !isInTree(role.role)))) {
        continue;
      }

      int64_t& amount = used[key];
      const int64_t delta = std::max(sign * part.amount, -amount);
      amount += delta;
      consume(key, delta);
      if (amount == 0) {
        used.erase(key);
      }
    }
  }
}


void Consumption::remove(const string& agent)
{
  const auto found = agents.find(agent);
  if (found == agents.end()) {
    return;
  }

  for (const auto& each : found->second.reserved) {
    consume(each.first, -each.second);
    countRow(each.first.first, -1);
  }

  for (const auto& each : found->second.used) {
    consume(each.first, -each.second);
  }

  agents.erase(found);
}


bool Consumption::isInTree(const string& role) const
{
  const uint32_t number = books.roles.find(role);
  return number != 0 && books.roles.standing(number) != brain::Standing::FOLDED;
}


Consumption::Amounts Consumption::reservedOn(
    const string& agent,
    const Amounts& before) const
{
  const brain::Agent& record =
      *books.agents.find(books.agentHandles.find(agent));

  Amounts result;
  size_t more = 0; // Rows of roles that only agents name.
  for (const brain::AgentResource& each : record.resources) {
    const brain::Traits& traits = books.classes.traits(each.resourceClass);
    const Amounts::key_type key(traits.reservedRole, traits.name);

    if (traits.type != brain::Type::SCALAR || traits.depth == 0 ||
        each.total == 0) {
      continue;
    }

    if (result.count(key) == 0 && !isInTree(key.first)) {
      const bool fits = more < brain::LEVELS_OF_AGENT_MAX &&
          key.first.size() <= brain::ROLE_BYTES_MAX &&
          (before.count(key) > 0 || shown.size() < brain::USED_ROLES_MAX);
      if (!fits) {
        continue;
      }
      ++more;
    }
    result[key] += each.total;
  }
  return result;
}


void Consumption::countRow(const string& role, int rows)
{
  int& count = reservedRows[role];
  const bool before = count > 0;
  count += rows;
  const bool now = count > 0;

  if (!now) {
    reservedRows.erase(role);
  }
  if (before != now) {
    reserves(role, now);
  }
}


// Adds `delta` for the role and its ancestors. A role keeps the parent that it
// had when it was first shown, so that what was added to the parent is also
// subtracted from it.
void Consumption::consume(const Amounts::key_type& what, int64_t delta)
{
  if (delta == 0) {
    return;
  }

  auto found = shown.find(what);
  if (found == shown.end()) {
    const PushGauge gauge(
        "allocator/mesos/quota/roles/" + what.first + "/resources/" +
        what.second + "/consumed");
    found =
        shown.emplace(what, Shown{0, parentOf(books.roles, what.first), gauge})
            .first;
    process::metrics::add(gauge);
  }

  const string parent = found->second.parent;
  found->second.amount += delta;
  found->second.gauge = found->second.amount / 1000.0;

  if (found->second.amount == 0) {
    process::metrics::remove(found->second.gauge);
    shown.erase(found);
  }

  // The root, which has no name, is shown as well.
  if (!what.first.empty()) {
    consume({parent, what.second}, delta);
  }
}

} // namespace adapter {
} // namespace allocator {
