#include "brain/messages/event_coalescer.hpp"

#include <utility>

namespace allocator {
namespace brain {
namespace {

wire::Holdings* released(wire::Event* event)
{
  return event->mutable_release()->mutable_released();
}


wire::Holdings* used(wire::Event* event)
{
  return event->mutable_transition();
}

wire::Holdings* held(wire::Event* event)
{
  return event->mutable_hold();
}

} // namespace {


constexpr int EventCoalescer::ROWS_MAX;
constexpr int EventCoalescer::CELLS_MAX;


void addAmounts(const Amounts& amounts, wire::Amounts* to)
{
  for (const auto& entry : amounts) {
    to->add_kind(entry.first);
    to->add_amount(entry.second);
  }
}


wire::Event* EventCoalescer::event(
    Groups* groups,
    const Amounts& amounts,
    wire::Holdings* (*holdings)(wire::Event*))
{
  columns.clear();
  for (const auto& entry : amounts) {
    columns.push_back(entry.first);
  }
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


void EventCoalescer::release(
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


void EventCoalescer::transition(const Place& place, const Amounts& amounts)
{
  if (!amounts.empty()) {
    addRow(place, amounts, used(event(&transitions, amounts, used)));
  }
}


void EventCoalescer::hold(const Place& place, const Amounts& amounts)
{
  if (!amounts.empty()) {
    addRow(place, amounts, held(event(&holds, amounts, held)));
  }
}


std::vector<wire::Event> EventCoalescer::take()
{
  std::vector<wire::Event> result;

  for (Groups* groups : {&transitions, &releases, &holds}) {
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


void EventCoalescer::clear()
{
  releases.clear();
  transitions.clear();
  holds.clear();
  rows = 0;
}

} // namespace brain {
} // namespace allocator {
