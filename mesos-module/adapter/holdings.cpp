#include "adapter/holdings.hpp"

#include <algorithm>
#include <utility>

using std::map;
using std::string;
using std::vector;

namespace allocator {
namespace adapter {
namespace {

void addRow(
    uint32_t framework,
    uint32_t role,
    uint32_t agent,
    const Amounts& amounts,
    wire::Holdings* holdings)
{
  if (holdings->kind_size() == 0) {
    for (const auto& entry : amounts) {
      holdings->add_kind(entry.first);
    }
  }

  holdings->add_framework(framework);
  holdings->add_role(role);
  holdings->add_agent(agent);
  for (const auto& entry : amounts) {
    holdings->add_amount(entry.second);
  }
}


void kindsOf(const Amounts& amounts, vector<uint32_t>* kinds)
{
  kinds->clear();
  for (const auto& entry : amounts) {
    kinds->push_back(entry.first);
  }
}


wire::Holdings* released(wire::Event* event)
{
  return event->mutable_release()->mutable_released();
}


wire::Holdings* used(wire::Event* event)
{
  return event->mutable_transition();
}

} // namespace {


Amounts toAmounts(const Resources& resources, KindTable* kinds)
{
  Amounts result;
  result.reserve(resources.size());

  for (const Resource& resource : resources) {
    const int64_t copies = resource.has_shared()
        ? static_cast<int64_t>(resources.count(resource))
        : 1;
    const uint32_t kind = kinds->intern(resource);
    if (kind != KindTable::NONE) {
      result.emplace_back(kind, amountOf(resource) * copies);
    }
  }

  std::sort(result.begin(), result.end());

  size_t last = 0;
  for (size_t i = 1; i < result.size(); ++i) {
    if (result[i].first == result[last].first) {
      result[last].second += result[i].second;
    } else {
      result[++last] = result[i];
    }
  }

  result.resize(std::min(result.size(), last + 1));
  return result;
}


wire::Amounts toSparse(const Resources& resources, KindTable* kinds)
{
  wire::Amounts result;
  for (const auto& entry : toAmounts(resources, kinds)) {
    result.add_kind(entry.first);
    result.add_amount(entry.second);
  }
  return result;
}


map<string, Resources> byRole(const Resources& resources)
{
  map<string, Resources> result;
  const string* first = nullptr;
  bool mixed = false;

  for (const Resource& resource : resources) {
    if (!resource.has_allocation_info()) {
      mixed = true;
    } else if (first == nullptr) {
      first = &resource.allocation_info().role();
    } else {
      mixed = mixed || resource.allocation_info().role() != *first;
    }
  }

  if (!mixed && first != nullptr) {
    result.emplace(*first, resources);
    return result;
  }

  for (const Resource& resource : resources) {
    if (resource.has_allocation_info()) {
      const string& role = resource.allocation_info().role();
      if (result.count(role) == 0) {
        result[role] = resources.filter([&](const Resource& each) {
          return each.allocation_info().role() == role;
        });
      }
    }
  }

  return result;
}


void HoldingsWriter::add(
    const FrameworkID& frameworkId,
    const SlaveID& agentId,
    const Resources& resources)
{
  for (const auto& entry : byRole(resources)) {
    const Amounts amounts = toAmounts(entry.second, &handles->kinds);

    if (amounts.empty()) {
      continue;
    }

    vector<uint32_t> columns;
    kindsOf(amounts, &columns);
    addRow(
        handles->frameworks.bind(frameworkId),
        handles->roles.bind(entry.first),
        handles->agents.find(agentId),
        amounts,
        &rows[columns]);
  }
}


void FiltersWriter::add(
    uint32_t framework,
    uint32_t role,
    uint32_t agent,
    const Amounts& refused,
    int64_t expiresMs)
{
  if (!refused.empty()) {
    kindsOf(refused, &columns);
    wire::OfferFilters& group = rows[columns];
    addRow(framework, role, agent, refused, group.mutable_refused());
    group.add_expires_ms(expiresMs);
  }
}


wire::Event* Pending::place(
    map<vector<uint32_t>, vector<wire::Event>>* groups,
    const Amounts& amounts,
    wire::Holdings* (*holdings)(wire::Event*))
{
  kindsOf(amounts, &columns);
  vector<wire::Event>& events = (*groups)[columns];

  const auto isFull = [&](const wire::Holdings& last) {
    const size_t cells = last.amount_size() + columns.size();
    return last.framework_size() >= ROWS_MAX || cells > CELLS_MAX;
  };

  if (events.empty() || isFull(*holdings(&events.back()))) {
    events.emplace_back();
  }

  ++rows;
  return &events.back();
}


void Pending::release(
    uint32_t framework,
    uint32_t role,
    uint32_t agent,
    const Amounts& amounts,
    int64_t refuseMs,
    bool allocated)
{
  if (amounts.empty()) {
    return;
  }

  wire::Event* event = place(&releases, amounts, released);
  addRow(framework, role, agent, amounts, released(event));
  event->mutable_release()->add_refuse_ms(refuseMs);
  event->mutable_release()->add_allocated(allocated);
}


void Pending::transition(
    uint32_t framework,
    uint32_t role,
    uint32_t agent,
    const Amounts& amounts)
{
  if (amounts.empty()) {
    return;
  }

  wire::Event* event = place(&transitions, amounts, used);
  addRow(framework, role, agent, amounts, used(event));
}


vector<wire::Event> Pending::take()
{
  vector<wire::Event> result;

  for (auto* groups : {&transitions, &releases}) {
    for (auto& group : *groups) {
      for (wire::Event& event : group.second) {
        result.emplace_back();
        result.back().Swap(&event);
      }
    }
  }

  clear();
  return result;
}


void Pending::clear()
{
  releases.clear();
  transitions.clear();
  rows = 0;
}

} // namespace adapter {
} // namespace allocator {
