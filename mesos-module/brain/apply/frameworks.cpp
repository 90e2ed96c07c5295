#include "brain/brain.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "brain/user_input/bounds.hpp"
#include "brain/user_input/text.hpp"
#include "brain/user_input/user_input.hpp"

namespace allocator {
namespace brain {

const Framework* Brain::findFramework(const std::string& id, uint32_t* number)
{
  *number = state.frameworkHandles.find(id);
  return *number == Handles::NONE ? nullptr : state.frameworks.find(*number);
}


// Subtracts the framework's footprint from its payer's, and removes a payer
// without footprint.
void Brain::refundPayer(const Framework& framework)
{
  auto found = payers.find(framework.payer);

  if (found != payers.end()) {
    found->second.levels -= framework.footprint.levels;
    found->second.pairs -= framework.footprint.pairs;
    if (found->second.pairs == 0) {
      payers.erase(found);
    }
  }
}


void Brain::describeFramework(const AddFramework& event, Framework* framework)
{
  Aside aside;
  refundPayer(*framework);
  const std::string payer = payerOf(event.info);
  Footprint* paid = &payers[payer];

  // Admit new roles only if all of them can be reported immediately, because
  // the sidecar must know each role in the books.
  const size_t most = std::min(event.roles.size(), ROLES_OF_FRAMEWORK_MAX);
  const FrameworkInput input = takeFramework(
      event,
      state.roles,
      *paid,
      Newcomers{framework->roles, workLeft(payer) >= most},
      &aside);
  paid->levels += input.footprint.levels;
  paid->pairs += input.footprint.pairs;
  setAside(
      "framework " + event.framework,
      aside.count(),
      input.info.set_aside(),
      framework->info == nullptr ? Aside::Rows()
                                 : framework->info->set_aside());

  if (input.late) {
    lateRoles.insert(event.framework);
  }

  if (input.crowded) {
    static_cast<AddFramework&>(crowded[event.framework]) = event;
  } else {
    crowded.erase(event.framework);
  }

  framework->id = event.framework;
  framework->payer = payer;
  framework->footprint = input.footprint;
  framework->info = std::make_shared<const wire::Framework>(input.info);

  auto can = [&](wire::FrameworkCapability wanted) {
    for (int capability : input.info.capabilities()) {
      if (capability == wanted) {
        return true;
      }
    }
    return false;
  };

  framework->multiRole = can(wire::FRAMEWORK_CAPABILITY_MULTI_ROLE);
  framework->gpus = can(wire::FRAMEWORK_CAPABILITY_GPU_RESOURCES);
  framework->shared = can(wire::FRAMEWORK_CAPABILITY_SHARED_RESOURCES);
  framework->revocable = can(wire::FRAMEWORK_CAPABILITY_REVOCABLE_RESOURCES);
  framework->refinement =
      can(wire::FRAMEWORK_CAPABILITY_RESERVATION_REFINEMENT);
  framework->regionAware = can(wire::FRAMEWORK_CAPABILITY_REGION_AWARE);

  framework->roles.clear();
  for (const auto& role : input.roles) {
    framework->roles.insert(state.roles.number(role.first, role.second));
  }
  placeRoles();

  framework->suppressed.clear();
  for (const std::string& role : input.suppressed) {
    framework->suppressed.insert(state.roles.find(role));
  }

  framework->minimum.clear();
  for (const auto& entry : input.minimum) {
    framework->minimum[state.roles.find(entry.first)] = entry.second;
  }
}


// Counts ignored input, and logs rows that were not reported before. Limits log
// lines, because frameworks and agents may repeat input endlessly.
void Brain::setAside(
    const std::string& whose,
    size_t count,
    const Aside::Rows& rows,
    const Aside::Rows& before)
{
  const std::string text = describe(rows);

  if (count == 0 || text == describe(before)) {
    return;
  }

  counted.setAside += count;

  if (++asideLines <= ASIDE_LINES_MAX) {
    log(Level::WARNING,
        "Input of " + toShown(whose, TEXT_BYTES_MAX) + ": " +
            std::to_string(count) + " value(s) set aside: " + text);
  } else if (asideLines == ASIDE_LINES_MAX + 1) {
    log(Level::WARNING,
        "More values are set aside; they are not logged until the next"
        " interval");
  }
}


std::string Brain::step(const AddFramework& event, int64_t)
{
  uint32_t number;
  if (findFramework(event.framework, &number) != nullptr) {
    return misfit("Framework " + event.framework + " was added twice");
  }

  // The framework's holdings are reported with the agents.
  number = state.frameworkHandles.bind(event.framework);
  Framework* framework = state.frameworks.add(number);
  framework->reporter = toReporter(++reporters, true, number);
  describeFramework(event, framework);
  framework->active = event.active;

  if (following) {
    wire::Event message;
    *message.mutable_add_framework() =
        toWire(*state.frameworks.find(number), number, &state);
    if (!chargeWork(*framework)) {
      // The sidecar must know the framework now; its labels may follow later.
      message.mutable_add_framework()->clear_labels();
      deferUpdate(number, framework->suppressed);
    }
    state.frameworkHandles.sent(number, send(std::move(message)));
  }

  if (event.active) {
    triggerAll();
  }

  return std::string();
}


std::string Brain::apply(const RemoveFramework& event, uint32_t number, int64_t)
{
  // Also frees resources of offers that are still on their way to the master.
  state.books.removeFramework(number);
  inverse.removeFramework(number);
  fallback.forget(number);
  comparison.forgetFramework(number);
  crowded.erase(event.framework);
  forgetLate(number, event.framework);

  state.filters.dropFramework(number);

  state.kinds.forgetReporter(state.frameworks.find(number)->reporter);
  refundPayer(*state.frameworks.find(number));
  state.frameworks.remove(number);

  wire::Event message;
  message.mutable_remove_framework()->set_framework(number);
  state.frameworkHandles.release(number, send(std::move(message)));
  return std::string();
}


std::string
Brain::apply(const ActivateFramework& event, uint32_t number, int64_t)
{
  const Framework* framework = state.frameworks.find(number);

  // Offers stay booked until the master returns them; only filters are removed
  // here.
  if (!event.active) {
    for (uint32_t role : framework->roles) {
      state.filters.drop(number, role);
    }
    inverse.clearFilters(number);
  }

  state.frameworks.edit(number)->active = event.active;
  inverse.forgetOutstandingOfFramework(number);

  wire::Event message;
  message.mutable_activate_framework()->set_framework(number);
  message.mutable_activate_framework()->set_active(event.active);
  send(std::move(message));

  if (event.active) {
    triggerAll();
  }

  return std::string();
}


std::string Brain::apply(const UpdateFramework& event, uint32_t number, int64_t)
{
  Framework* framework = state.frameworks.edit(number);
  const std::set<uint32_t> oldRoles = framework->roles;
  const std::set<uint32_t> oldSuppressed = framework->suppressed;
  describeFramework(event, framework);

  for (uint32_t role : oldRoles) {
    if (framework->roles.count(role) == 0) {
      state.filters.drop(number, role);
      framework->excluded.erase(role);
    }
  }

  for (uint32_t role : oldSuppressed) {
    if (framework->suppressed.count(role) == 0) {
      state.filters.drop(number, role);
      inverse.clearFilters(number);
    }
  }

  if (chargeWork(*framework)) {
    sendUpdate(number);
  } else {
    std::set<uint32_t> silent = framework->suppressed;
    std::set_difference(
        oldRoles.begin(),
        oldRoles.end(),
        framework->roles.begin(),
        framework->roles.end(),
        std::inserter(silent, silent.end()));
    deferUpdate(number, oldSuppressed);
    sendSuppressed(number, silent);
  }

  return std::string();
}


std::string Brain::apply(const Request& event, uint32_t number, int64_t)
{
  Aside aside;
  const auto request = std::make_shared<const wire::ResourceRequest>(
      takeRequest(event.request, &aside));
  setAside(
      "framework " + event.framework + " requests",
      aside.count(),
      aside.rows(),
      Aside::Rows());

  state.frameworks.edit(number)->request = request;
  if (chargeRequest(*state.frameworks.find(number))) {
    sendRequest(number);
  } else {
    lateRequests.insert(number);
  }
  return std::string();
}


namespace {

// The framework's roles that a call names, or all if it names none. Takes time
// proportional to the roles named.
std::set<uint32_t> rolesOf(
    const Cluster& state,
    const Framework& framework,
    const std::set<std::string>& paths)
{
  if (paths.empty()) {
    return framework.roles;
  }

  std::set<uint32_t> result;
  for (const std::string& path : paths) {
    const uint32_t role = state.roles.find(path);
    if (framework.roles.count(role) > 0) {
      result.insert(role);
    }
  }
  return result;
}

} // namespace {


std::string Brain::apply(const Suppress& event, uint32_t number, int64_t)
{
  Framework* framework = state.frameworks.edit(number);
  const std::set<uint32_t> before = framework->suppressed;
  const std::set<uint32_t> roles = rolesOf(state, *framework, event.roles);
  framework->suppressed.insert(roles.begin(), roles.end());
  noteWaiting(event.framework, event.roles, true);

  // Roles already suppressed are not reported again.
  if (!chargeWork(*framework, roles.size() / SUPPRESSED_AS_ONE)) {
    deferUpdate(number, before);
  }
  sendSuppressed(number, roles);
  return std::string();
}


std::string Brain::apply(const Revive& event, uint32_t number, int64_t)
{
  Framework* framework = state.frameworks.edit(number);
  const std::set<uint32_t> before = framework->suppressed;
  const std::set<uint32_t> roles = rolesOf(state, *framework, event.roles);
  inverse.clearFilters(number);
  noteWaiting(event.framework, event.roles, false);
  wire::Event message;
  message.mutable_revive()->set_framework(number);

  for (uint32_t role : roles) {
    framework->suppressed.erase(role);
    state.filters.drop(number, role);
    message.mutable_revive()->add_roles(state.roles.handle(role));
  }

  if (!chargeWork(*framework, roles.size() / SUPPRESSED_AS_ONE) ||
      lateUpdates.count(number) > 0) {
    deferUpdate(number, before);
  } else if (!roles.empty()) {
    send(std::move(message));
  }

  triggerAll();
  return std::string();
}

} // namespace brain {
} // namespace allocator {
