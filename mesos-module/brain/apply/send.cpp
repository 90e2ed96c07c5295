#include "brain/brain.hpp"

#include <algorithm>
#include <utility>

namespace allocator {
namespace brain {

void Brain::emit(Message&& message)
{
  effects.messages.push_back(std::move(message));
}


void Brain::emit(Message::Kind kind)
{
  Message message;
  message.kind = kind;
  emit(std::move(message));
}


// Sends an event, or queues it behind a snapshot under construction.
void Brain::emitEvent(wire::Event&& event)
{
  ++revisions;

  if (snapshot.underWay()) {
    backlog.emplace_back();
    backlog.back().Swap(&event);
    return;
  }

  Message message;
  message.kind = Message::Kind::EVENT;
  message.event.Swap(&event);
  message.revision = revisions;
  emit(std::move(message));
}


uint64_t Brain::send(wire::Event&& event)
{
  if (!following) {
    return 0;
  }

  sendCoalesced();
  define();
  sendOverflow();
  emitEvent(std::move(event));
  return revisions;
}


// Sends new kinds and roles. A snapshot under construction includes them.
void Brain::define()
{
  for (const std::string& name : state.kinds.takeCrowded()) {
    log(Level::WARNING,
        "Too many kinds of '" + name +
            "' (by name, reserved role, form of disk, ...) for the sidecar, or"
            " for one agent or framework; the rest is reported as one amount,"
            " which is only offered as a whole");
  }

  if (snapshot.underWay()) {
    return;
  }

  // Keep messages smaller than the sidecar's limit.
  constexpr size_t BYTES = 64 << 10;
  wire::Event event;
  size_t bytes = 0;

  auto room = [&](size_t more) {
    if (bytes > 0 && bytes + more > BYTES) {
      emitEvent(std::move(event));
      event = wire::Event();
      bytes = 0;
    }
    bytes += more;
  };

  for (wire::Kind& kind : state.kinds.takeNew()) {
    room(kind.ByteSizeLong());
    event.mutable_define()->add_kinds()->Swap(&kind);
  }

  for (wire::Role& role : state.roles.takeNew()) {
    room(role.ByteSizeLong());
    event.mutable_define()->add_roles()->Swap(&role);
  }

  if (bytes > 0) {
    emitEvent(std::move(event));
  }
}


// Reports agents and frameworks that have their first resource in an overflow
// kind.
void Brain::sendOverflow()
{
  if (following && !snapshot.underWay()) {
    for (Reporter reporter : state.kinds.takeNewlyOver()) {
      sendOverflow(reporter);
    }
  }
}


void Brain::sendOverflow(Reporter reporter)
{
  const uint32_t number = numberOf(reporter);
  const Framework* framework = state.frameworks.find(number);
  const Agent* agent = state.agents.find(number);
  Aside::Rows rows;

  if (!isFramework(reporter)) {
    if (agent != nullptr && agent->reporter == reporter) {
      brain::sendOverflow(*agent, state, &rows);
      setAside("agent " + agent->id, 1, rows, Aside::Rows());
    }
  } else if (framework != nullptr && framework->reporter == reporter) {
    brain::sendOverflow(*framework, state, &rows);
    setAside("framework " + framework->id, 1, rows, Aside::Rows());
    wire::Event event;
    *event.mutable_update_framework() = toWire(*framework, number, &state);
    emitEvent(std::move(event));
  }
}


Place Brain::place(uint32_t framework, uint32_t role, uint32_t agent)
{
  return Place{framework, state.roles.holdHandle(role), agent};
}


Amounts Brain::toAmounts(const Parts& parts)
{
  return state.kinds.toAmounts(parts, state.classes);
}


void Brain::sendSoon()
{
  if (coalescer.size() >= static_cast<size_t>(EventCoalescer::ROWS_MAX)) {
    sendCoalesced();
  } else if (coalescer.size() > 0) {
    // Wait for calls of the master that are already queued.
    sendingSoon = true;
  }
}


void Brain::sendCoalesced()
{
  sendingSoon = false;

  if (!following || coalescer.size() == 0) {
    return;
  }

  define();
  for (wire::Event& event : coalescer.take()) {
    emitEvent(std::move(event));
  }
}


void Brain::sendHold(
    uint32_t framework,
    uint32_t role,
    uint32_t agent,
    const Parts& parts)
{
  if (!following) {
    return;
  }

  const Amounts amounts = toAmounts(parts);
  if (!amounts.empty()) {
    wire::Event event;
    addRow(place(framework, role, agent), amounts, event.mutable_hold());
    send(std::move(event));
  }
}


// Reports the offers in `effects` from `first` on as holdings, in few events,
// because one for each would cost the sidecar ten times as much.
void Brain::reportOffers(size_t first)
{
  if (!following) {
    return;
  }

  // Send waiting rows first: they belong to earlier calls.
  sendCoalesced();
  for (size_t i = first; i < effects.offers.size(); ++i) {
    const Offer& offer = effects.offers[i];
    coalescer.hold(
        place(offer.framework, offer.role, offer.agent),
        toAmounts(offer.parts));
  }
  sendCoalesced();
}


// Reports holdings under the role's own handle, then releases them under the
// shared handle. The reverse order would free the resources for a moment.
void Brain::reportMover(uint32_t agent, const Allocation& held)
{
  const Amounts amounts = toAmounts(held.parts);
  if (amounts.empty()) {
    return;
  }

  const Place before = place(held.framework, held.role, agent);
  const uint32_t own = state.roles.handle(held.role);

  wire::Event more;
  addRow(Place{held.framework, own, agent}, amounts, more.mutable_hold());
  send(std::move(more));

  wire::Event fewer;
  wire::Release* release = fewer.mutable_release();
  addRow(before, amounts, release->mutable_released());
  release->add_refuse_ms(-1);
  release->add_allocated(false);
  send(std::move(fewer));
}


void Brain::sendPause()
{
  wire::Event event;
  event.mutable_pause()->set_paused(state.recovering);
  send(std::move(event));
}


// Sends the next part of the snapshot; after the last one, the backlog.
void Brain::sendSnapshot(int64_t nowMs)
{
  Message message;
  message.kind = Message::Kind::SNAPSHOT;
  message.revision = snapshot.revision();
  message.chunks = snapshot.slice(&state, nowMs);
  emit(std::move(message));

  if (snapshot.underWay()) {
    return;
  }

  define();
  std::vector<wire::Event> events;
  events.swap(backlog);
  revisions -= events.size();
  for (wire::Event& event : events) {
    emitEvent(std::move(event));
  }
  sendOverflow();
  sendHandleChanges();
}


namespace {

// A row of the absolute values of the amounts with this sign.
wire::Holdings row(const Place& place, const Amounts& amounts, int64_t sign)
{
  Amounts some;
  for (const auto& entry : amounts) {
    if (entry.second * sign > 0) {
      some.emplace_back(entry.first, entry.second * sign);
    }
  }

  wire::Holdings result;
  if (!some.empty()) {
    addRow(place, some, &result);
  }
  return result;
}

} // namespace {


// `ofTotal` and `ofHeld` are changes by kind.
void Brain::sendConversion(
    uint32_t framework,
    uint32_t role,
    uint32_t agent,
    const Amounts& ofTotal,
    const Amounts& ofHeld)
{
  if (!following) {
    return;
  }

  const Place where = place(framework, role, agent);

  if (!ofTotal.empty()) {
    wire::Event event;
    wire::UpdateAllocation* update = event.mutable_update_allocation();
    update->set_framework(where.framework);
    update->set_role(where.role);
    update->set_agent(where.agent);

    for (const auto& entry : ofTotal) {
      addAmounts(
          {{entry.first, std::abs(entry.second)}},
          entry.second < 0 ? update->mutable_consumed()
                           : update->mutable_converted());
    }
    send(std::move(event));
  }

  if (framework == 0) {
    return;
  }

  // Copies of a shared volume change only what is held.
  Amounts copies = ofHeld;
  for (const auto& entry : ofTotal) {
    change(entry.first, -entry.second, &copies);
  }

  wire::Event more;
  *more.mutable_hold() = row(where, copies, 1);
  if (more.hold().framework_size() > 0) {
    send(std::move(more));
  }

  wire::Event fewer;
  *fewer.mutable_release()->mutable_released() = row(where, copies, -1);
  if (fewer.release().released().framework_size() > 0) {
    fewer.mutable_release()->add_refuse_ms(-1);
    fewer.mutable_release()->add_allocated(false);
    send(std::move(fewer));
  }
}

} // namespace brain {
} // namespace allocator {
