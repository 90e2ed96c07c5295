#include "brain/brain.hpp"

#include <utility>

namespace allocator {
namespace brain {
namespace {

// `after - before`, without zeros.
Amounts difference(const Amounts& before, const Amounts& after)
{
  Amounts result = after;
  for (const auto& entry : before) {
    change(entry.first, -entry.second, &result);
  }
  return result;
}


bool areDefined(
    const ResourceClasses& classes,
    const std::vector<Conversion>& conversions)
{
  for (const Conversion& each : conversions) {
    if (!classes.defined(each.consumed) || !classes.defined(each.converted)) {
      return false;
    }
  }
  return true;
}


bool areDefined(
    const ResourceClasses& classes,
    const std::vector<RoleParts>& all)
{
  for (const RoleParts& each : all) {
    if (each.role.empty() || !classes.defined(each.parts)) {
      return false;
    }
  }
  return true;
}


const Parts& partsOf(const Allocation* allocation)
{
  static const Parts nothing;
  return allocation == nullptr ? nothing : allocation->parts;
}

} // namespace {


std::string Brain::apply(const ConvertHeld& event, uint32_t number, int64_t)
{
  const Agent* agent = state.agents.find(number);

  const uint32_t framework = state.frameworkHandles.find(event.framework);
  const uint32_t role = state.roles.find(event.role);

  std::string wrong;
  Amounts totalBefore;
  Amounts heldBefore;

  if (!state.classes.defined(event.offered) ||
      !areDefined(state.classes, event.conversions)) {
    wrong = "they name a resource class that is not defined";
  } else if (framework == Handles::NONE || role == 0) {
    wrong = "the framework does not hold the resources to convert";
  } else {
    const Framework* record = state.frameworks.find(framework);
    for (const Conversion& each : event.conversions) {
      state.classes.setReporter(
          each.converted, record == nullptr ? 0 : record->reporter);
    }
    if (following) {
      totalBefore = toAmounts(Books::total(*agent));
      heldBefore = toAmounts(partsOf(Books::find(*agent, framework, role)));
    }
    wrong = state.books.convertHeld(
        number, framework, role, event.offered, event.conversions);
  }

  if (!wrong.empty()) {
    return followMisfit(event, number, wrong);
  }

  if (following) {
    agent = state.agents.find(number);
    const Allocation* held = Books::find(*agent, framework, role);
    sendConversion(
        framework,
        role,
        number,
        difference(totalBefore, toAmounts(Books::total(*agent))),
        difference(heldBefore, toAmounts(partsOf(held))));
  }

  return std::string();
}


// Handles operations that contradict the books. The master has already applied
// them, so apply them to the books as well; otherwise resources that are
// returned later would be held forever. Begins a new session, because the
// sidecar's state is also wrong.
std::string Brain::followMisfit(
    const ConvertHeld& event,
    uint32_t agent,
    const std::string& wrong)
{
  const uint32_t framework = state.frameworkHandles.find(event.framework);
  const uint32_t role = state.roles.find(event.role);

  const bool followed = framework != Handles::NONE && role != 0 &&
      state.classes.defined(event.offered) &&
      areDefined(state.classes, event.conversions) &&
      state.books.followHeld(
          agent, framework, role, event.offered, event.conversions);

  if (followed && following) {
    restartSession();
  }

  return misfit(
      "Operations of framework " + event.framework + " on agent " +
      event.agent + " do not fit the books" +
      (followed ? ", which follow them: " : ": ") + wrong);
}


// An error goes to the operator who requested the operations; it is not a
// misfit.
std::string Brain::apply(const ConvertFree& event, uint32_t number, int64_t)
{
  const Agent* agent = state.agents.find(number);

  if (!areDefined(state.classes, {event.conversion})) {
    return misfit(
        "Operations on agent " + event.agent +
        " name a resource class that is not defined");
  }

  const Amounts before =
      following ? toAmounts(Books::total(*agent)) : Amounts();
  std::string wrong = state.books.convertFree(number, event.conversion);

  if (wrong.empty() && following) {
    // The change may be empty: a new label, for example, changes the resource
    // class but not the kind.
    sendConversion(
        0,
        0,
        number,
        difference(before, toAmounts(Books::total(*state.agents.find(number)))),
        Amounts());
  }

  return wrong;
}


std::string Brain::apply(const Transition& event, uint32_t number, int64_t)
{
  const Agent* agent = state.agents.find(number);

  if (!areDefined(state.classes, event.parts)) {
    return misfit(
        "A transition on agent " + event.agent +
        " names a resource class that is not defined");
  }

  if (!following) {
    return std::string();
  }

  for (const RoleParts& each : event.parts) {
    // The master does not name the framework. If only one is possible, name it
    // for the sidecar.
    const uint32_t role = state.roles.find(each.role);
    uint32_t framework = 0;
    size_t holders = 0;

    // An unknown role has no holders.
    if (role == 0) {
      continue;
    }

    for (const Allocation& allocation : agent->allocations) {
      if (agent->allocations.size() == 1 ||
          (allocation.role == role && contains(allocation.parts, each.parts))) {
        ++holders;
        framework = allocation.framework;
      }
    }

    coalescer.transition(
        place(holders == 1 ? framework : 0, role, number),
        toAmounts(each.parts));
  }

  sendSoon();
  return std::string();
}


std::string Brain::step(Release event, int64_t nowMs)
{
  uint32_t number;
  if (findAgent(event.agent, &number) == nullptr) {
    return unknownAgent(event.agent);
  }

  if (!areDefined(state.classes, event.parts)) {
    return misfit(
        "A release on agent " + event.agent +
        " names a resource class that is not defined");
  }

  const uint32_t framework = state.frameworkHandles.find(event.framework);
  const Framework* record = state.frameworks.find(framework);

  for (RoleParts& each : event.parts) {
    const uint32_t role = state.roles.find(each.role);

    if (framework == Handles::NONE || role == 0) {
      continue;
    }

    const Parts released =
        state.books.release(number, framework, role, each.parts);

    if (event.refuseMs > 0 && record != nullptr && record->active &&
        record->roles.count(role) > 0) {
      state.filters.add(
          number,
          framework,
          role,
          std::move(each.parts),
          event.refuseMs,
          nowMs);
    }

    if (following && !released.empty()) {
      coalescer.release(
          place(framework, role, number),
          toAmounts(released),
          event.refuseMs,
          event.allocated);
    }
  }

  sendSoon();
  return std::string();
}

} // namespace brain {
} // namespace allocator {
