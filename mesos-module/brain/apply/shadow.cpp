#include "brain/brain.hpp"

#include <utility>

namespace allocator {
namespace brain {
namespace {

// Whether this refusal may be due to offers made since the sidecar decided.
bool isForWantOfAmounts(wire::OutcomeReason reason)
{
  switch (reason) {
    case wire::OUTCOME_REASON_NOTHING_AVAILABLE:
    case wire::OUTCOME_REASON_BELOW_MINIMUM:
    case wire::OUTCOME_REASON_FILTERED:
    case wire::OUTCOME_REASON_LIMIT:
    case wire::OUTCOME_REASON_HEADROOM: return true;
    default: return false;
  }
}


// Removes elements that the allocation already holds.
Parts withoutHeld(const Parts& parts, const Allocation* allocation)
{
  Parts result;

  for (Part part : parts) {
    const Part* held = allocation == nullptr || part.spans.empty()
        ? nullptr
        : find(allocation->parts, part.resourceClass);

    if (held != nullptr) {
      part.spans = subtract(part.spans, held->spans);
      part.amount = amountOf(part.spans);
    }
    if (part.amount > 0) {
      result.push_back(part);
    }
  }

  return result;
}

} // namespace {


// How long a decision waits for a matching offer: an interval of the other
// allocator, plus a margin for its allocation run.
int64_t Brain::comparedForMs() const
{
  return state.options.intervalMs + state.options.intervalMs / 4;
}


// Requests a cycle at the first offer of an allocation run, before reporting
// that offer, so that the sidecar decides on the same state as the other
// allocator. The run's other offers arrive immediately after the first.
void Brain::askBeforeOffers(int64_t nowMs, int64_t silentMs)
{
  const int64_t lastMs = intervalEndMs - state.options.intervalMs;

  if (!cycleAsked && !state.offersPaused() &&
      nowMs - lastMs >= state.options.intervalMs / 4) {
    endInterval(nowMs, silentMs);
  }
}


std::string Brain::step(const OfferedBeside& event, int64_t nowMs)
{
  if (!state.options.shadow) {
    return misfit("Another allocator offers, but shadow mode is off");
  }

  for (const OfferedBeside::Row& row : event.rows) {
    if (row.role.empty() || !state.classes.defined(row.parts)) {
      return misfit(
          "An offer to framework " + event.framework + " on agent " +
          row.agent +
          " has no role or names a resource class that is not defined");
    }
  }

  askBeforeOffers(nowMs, event.silentMs);

  // If the framework or the agent was removed before the offer arrived here,
  // nothing is booked.
  uint32_t framework;
  if (findFramework(event.framework, &framework) == nullptr) {
    return "Framework " + event.framework + " is not known";
  }

  for (const OfferedBeside::Row& row : event.rows) {
    uint32_t number;
    const Agent* agent = findAgent(row.agent, &number);
    if (agent != nullptr) {
      bookBeside(framework, number, *agent, row);
    }
  }

  return std::string();
}


// Books the offer even if it does not fit, because the master has it and will
// return it. If more than the total is held, nothing is free.
void Brain::bookBeside(
    uint32_t framework,
    uint32_t number,
    const Agent& agent,
    const OfferedBeside::Row& row)
{
  if (!contains(state.books.free(agent), row.parts)) {
    misfit(
        "Mesos's own allocator offers resources that are not free on agent " +
            row.agent + "; booked nevertheless",
        Level::WARNING);
  }

  const uint32_t role = useRole(number, row.role);
  placeRoles();
  const Parts more =
      withoutHeld(row.parts, Books::find(agent, framework, role));
  state.books.hold(number, framework, role, more);
  sendHold(framework, role, number, more);

  if (connected) {
    comparison.offer(number, framework, cycleAsked);
  }
}


// Compares a decision, which is never carried out in shadow.
void Brain::compare(const Pair& pair, int64_t nowMs, Admission* admission)
{
  const bool passes = admission->reason == wire::OUTCOME_REASON_OFFERED ||
      admission->reason == wire::OUTCOME_REASON_PARTIAL;

  if (passes || isForWantOfAmounts(admission->reason)) {
    comparison.decide(
        pair.agent, pair.framework, passes, nowMs + comparedForMs());
  }

  if (passes) {
    *admission = refuse(wire::OUTCOME_REASON_SHADOW);
  }
}

} // namespace brain {
} // namespace allocator {
