#include "brain/books/sums.hpp"

#include <algorithm>

namespace allocator {
namespace brain {
namespace {

const Amounts NOTHING;

// Empty rows kept per framework, which may hold resources in many roles, one
// after the other.
constexpr size_t EMPTY_ROWS = 4;


const Amounts& get(const std::vector<Amounts>& sums, uint32_t role)
{
  return role < sums.size() ? sums[role] : NOTHING;
}


Amounts& place(uint32_t role, std::vector<Amounts>* sums)
{
  if (role >= sums->size()) {
    sums->resize(role + 1);
  }
  return (*sums)[role];
}

} // namespace {


void Sums::changeTotal(const ResourceClasses::Row& resourceClass, int64_t delta)
{
  if (resourceClass.traits.type != Type::SCALAR || delta == 0) {
    return;
  }

  change(resourceClass.name, delta, &total_);

  if (resourceClass.traits.quotaCounts()) {
    change(resourceClass.name, delta, &free_);
  } else if (resourceClass.reservedTop != 0) {
    consume(resourceClass.reservedTop, resourceClass.name, delta);
  }
}


void Sums::changeHeld(
    uint32_t framework,
    uint32_t role,
    const ResourceClasses::Row& resourceClass,
    int64_t delta)
{
  if (resourceClass.traits.type != Type::SCALAR || delta == 0) {
    return;
  }

  changeClient(framework, role, resourceClass.name, delta);
  change(resourceClass.name, delta, &held_);
  change(resourceClass.name, delta, &place(role, &byRoleItself));

  for (uint32_t each = role; each != 0; each = roles->parent(each)) {
    change(resourceClass.name, delta, &place(each, &byRole));
  }

  if (resourceClass.traits.quotaCounts()) {
    change(resourceClass.name, -delta, &free_);
    consume(roles->top(role), resourceClass.name, delta);
  }
}


void Sums::adopt(const Roles::Adoption& adoption)
{
  const Amounts held = ofRole(adoption.below);
  for (const auto& entry : held) {
    change(entry.first, entry.second, &place(adoption.above, &byRole));
  }
}


// Keeps some empty rows for reuse.
void Sums::changeClient(
    uint32_t framework,
    uint32_t role,
    uint32_t name,
    int64_t delta)
{
  if (framework >= byClient.size()) {
    byClient.resize(framework + 1);
  }

  std::vector<Client>& rows = byClient[framework];
  auto row = std::lower_bound(
      rows.begin(), rows.end(), role, [](const Client& each, uint32_t wanted) {
        return each.role < wanted;
      });
  if (row == rows.end() || row->role != role) {
    row = rows.insert(row, Client{role, Amounts()});
  }

  change(name, delta, &row->held);
  if (row->held.empty() && rows.size() > EMPTY_ROWS) {
    rows.erase(row);
  }
}


void Sums::consume(uint32_t top, uint32_t name, int64_t delta)
{
  Amounts& consumed = place(top, &byTop);
  const int64_t missedBefore = missing(top, name);
  change(name, delta, &consumed);
  change(name, missing(top, name) - missedBefore, &required);
}


void Sums::need(const Amounts& guarantee, uint32_t top, int64_t sign)
{
  for (const auto& entry : guarantee) {
    change(entry.first, sign * missing(top, entry.first), &required);
  }
}


void Sums::setQuota(
    uint32_t role,
    const Amounts& guarantee,
    const Amounts& limit)
{
  auto found = quotas.find(role);
  if (found != quotas.end()) {
    need(found->second.guarantee, role, -1);
    quotas.erase(found);
  }

  if (!guarantee.empty() || !limit.empty()) {
    quotas[role] = Quota{guarantee, limit};
    need(guarantee, role, 1);
  }
}


int64_t Sums::missing(uint32_t role, uint32_t name) const
{
  const uint32_t top = roles->top(role);
  auto found = quotas.find(top);
  if (found == quotas.end()) {
    return 0;
  }

  return std::max<int64_t>(
      0,
      amountOf(found->second.guarantee, name) - amountOf(consumed(top), name));
}


bool Sums::isMissing(uint32_t role) const
{
  auto found = quotas.find(roles->top(role));
  return found != quotas.end() &&
      std::any_of(
             found->second.guarantee.begin(),
             found->second.guarantee.end(),
             [&](const Amounts::value_type& entry) {
               return missing(role, entry.first) > 0;
             });
}


int64_t Sums::limitLeft(uint32_t role, uint32_t name) const
{
  const uint32_t top = roles->top(role);
  auto found = quotas.find(top);

  if (found != quotas.end()) {
    for (const auto& entry : found->second.limit) {
      if (entry.first == name) {
        return std::max<int64_t>(
            0, entry.second - amountOf(consumed(top), name));
      }
    }
  }

  return INT64_MAX;
}


int64_t Sums::headroomLeft(uint32_t role, uint32_t name) const
{
  // Headroom protects the unmet guarantees of others, so there is no bound if
  // the role's own is the only one.
  const int64_t needed = amountOf(required, name);
  const int64_t own = missing(role, name);
  if (needed <= own) {
    return INT64_MAX;
  }

  const int64_t surplus = amountOf(free_, name) - needed;
  return own + std::max<int64_t>(0, surplus);
}


const Amounts& Sums::ofRole(uint32_t role) const
{
  return get(byRole, role);
}


const Amounts& Sums::atRole(uint32_t role) const
{
  return get(byRoleItself, role);
}


const Amounts& Sums::ofClient(uint32_t framework, uint32_t role) const
{
  if (framework < byClient.size()) {
    for (const Client& each : byClient[framework]) {
      if (each.role == role) {
        return each.held;
      }
    }
  }
  return NOTHING;
}


const Amounts& Sums::consumed(uint32_t top) const
{
  return get(byTop, top);
}

} // namespace brain {
} // namespace allocator {
