#include "brain/columns.hpp"

#include <utility>

namespace allocator {
namespace brain {
namespace {

void kindsOf(const Amounts& amounts, std::vector<uint32_t>* kinds)
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


constexpr int Pending::ROWS_MAX;
constexpr int Pending::CELLS_MAX;


void addRow(const Place& place, const Amounts& amounts, wire::Holdings* to)
{
  if (to->kind_size() == 0) {
    for (const auto& entry : amounts) {
      to->add_kind(entry.first);
    }
  }

  to->add_framework(place.framework);
  to->add_role(place.role);
  to->add_agent(place.agent);
  for (const auto& entry : amounts) {
    to->add_amount(entry.second);
  }
}


void addAmounts(const Amounts& amounts, wire::Amounts* to)
{
  for (const auto& entry : amounts) {
    to->add_kind(entry.first);
    to->add_amount(entry.second);
  }
}


void HoldingRows::add(const Place& place, const Amounts& amounts)
{
  if (!amounts.empty()) {
    std::vector<uint32_t> columns;
    kindsOf(amounts, &columns);
    addRow(place, amounts, &rows[columns]);
  }
}


void FilterRows::add(
    const Place& place,
    const Amounts& refused,
    int64_t expiresMs)
{
  if (!refused.empty()) {
    std::vector<uint32_t> columns;
    kindsOf(refused, &columns);
    wire::OfferFilters& group = rows[columns];
    addRow(place, refused, group.mutable_refused());
    group.add_expires_ms(expiresMs);
  }
}


wire::Event* Pending::event(
    Groups* groups,
    const Amounts& amounts,
    wire::Holdings* (*holdings)(wire::Event*))
{
  kindsOf(amounts, &columns);
  std::vector<wire::Event>& events = (*groups)[columns];

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
    const Place& place,
    const Amounts& amounts,
    int64_t refuseMs,
    bool allocated)
{
  if (amounts.empty()) {
    return;
  }

  wire::Event* to = event(&releases, amounts, released);
  addRow(place, amounts, released(to));
  to->mutable_release()->add_refuse_ms(refuseMs);
  to->mutable_release()->add_allocated(allocated);
}


void Pending::transition(const Place& place, const Amounts& amounts)
{
  if (!amounts.empty()) {
    addRow(place, amounts, used(event(&transitions, amounts, used)));
  }
}


std::vector<wire::Event> Pending::take()
{
  std::vector<wire::Event> result;

  for (Groups* groups : {&transitions, &releases}) {
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

} // namespace brain {
} // namespace allocator {
