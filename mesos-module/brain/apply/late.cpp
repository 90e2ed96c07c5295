#include "brain/brain.hpp"

#include <algorithm>
#include <utility>

#include "brain/user_input/bounds.hpp"

namespace allocator {
namespace brain {

// Limits the work that frameworks cause in the sidecar: they may repeat calls
// as often as they like, and each call costs time per role. When the budget of
// a payer is used up, the brain sends at once only what affects correctness:
// roles that a framework leaves or suppresses. Other changes follow in the next
// interval, as the framework's state at that time.

// The rest of this interval's budget, in roles.
size_t Brain::workLeft(const std::string& payer) const
{
  const auto found = workedOut.find(payer);

  // Without a session there is no sidecar work.
  if (!following || found == workedOut.end()) {
    return WORKED_OUT_MAX;
  }
  return WORKED_OUT_MAX - std::min(found->second, WORKED_OUT_MAX);
}


// Charges the work; returns whether it is within budget.
bool Brain::chargeWork(const Framework& framework, size_t work)
{
  if (!following) {
    return true;
  }
  size_t& done = workedOut[framework.payer];
  done += work;
  return done <= WORKED_OUT_MAX;
}


namespace {

// Cost of reporting a framework: at least one role, plus its own text.
size_t workOf(const Framework& framework, size_t bytes)
{
  return std::max<size_t>(framework.roles.size(), 1) + bytes / BYTES_AS_A_ROLE;
}

} // namespace {


bool Brain::chargeWork(const Framework& framework)
{
  return chargeWork(
      framework, workOf(framework, framework.info->ByteSizeLong()));
}


bool Brain::chargeRequest(const Framework& framework)
{
  return chargeWork(
      framework, workOf(framework, framework.request->ByteSizeLong()));
}


void Brain::sendUpdate(uint32_t framework)
{
  lateUpdates.erase(framework);

  if (following) {
    wire::Event message;
    *message.mutable_update_framework() =
        toWire(*state.frameworks.find(framework), framework, &state);
    send(std::move(message));
  }
}


void Brain::sendRequest(uint32_t framework)
{
  lateRequests.erase(framework);

  if (following) {
    wire::Event message;
    wire::ResourceRequest* request = message.mutable_request();
    *request = *state.frameworks.find(framework)->request;
    request->set_framework(framework);
    fit(state.messageBytesMax, request);
    send(std::move(message));
  }
}


// Sends all requests, because a snapshot contains none.
void Brain::sendRequests()
{
  lateRequests.clear();
  for (uint32_t each = 0; each < state.frameworks.end(); ++each) {
    const Framework* framework = state.frameworks.find(each);
    if (framework != nullptr && framework->request != nullptr &&
        framework->request->ByteSizeLong() > 0) {
      lateRequests.insert(each);
    }
  }
  sendLateRequests();
}


// `suppressed`: the roles that the sidecar believes to be suppressed; ignored
// if an update is pending already.
void Brain::deferUpdate(
    uint32_t framework,
    const std::set<uint32_t>& suppressed)
{
  lateUpdates.emplace(framework, suppressed);
}


void Brain::sendSuppressed(uint32_t framework, const std::set<uint32_t>& roles)
{
  const auto late = lateUpdates.find(framework);
  wire::Event message;
  message.mutable_suppress()->set_framework(framework);

  for (uint32_t role : roles) {
    if (late == lateUpdates.end() || late->second.insert(role).second) {
      message.mutable_suppress()->add_roles(state.roles.handle(role));
    }
  }

  // An empty list would mean all roles.
  if (message.suppress().roles_size() > 0) {
    send(std::move(message));
  }
}


// Sends pending updates at the beginning of an interval, within its budget.
void Brain::sendLateUpdates(int64_t nowMs)
{
  workedOut.clear();

  std::map<uint32_t, std::set<uint32_t>> updates;
  updates.swap(lateUpdates);
  for (auto& entry : updates) {
    const Framework& framework = *state.frameworks.find(entry.first);
    if (workLeft(framework.payer) == 0) {
      lateUpdates.insert(std::move(entry));
    } else {
      chargeWork(framework);
      sendUpdate(entry.first);
    }
  }

  sendLateRequests();

  std::set<std::string> roles;
  roles.swap(lateRoles);
  for (const std::string& id : roles) {
    const auto found = crowded.find(id);
    uint32_t number;
    const Framework* framework = findFramework(id, &number);
    if (found == crowded.end() || framework == nullptr) {
      continue;
    }
    if (workLeft(framework->payer) == 0) {
      lateRoles.insert(id);
    } else {
      const UpdateFramework event = found->second;
      step(event, nowMs);
    }
  }
}


void Brain::sendLateRequests()
{
  const std::set<uint32_t> frameworks = lateRequests;
  for (uint32_t each : frameworks) {
    const Framework& framework = *state.frameworks.find(each);
    if (workLeft(framework.payer) > 0) {
      chargeRequest(framework);
      sendRequest(each);
    }
  }
}


// Updates the suppression of roles that wait for room.
void Brain::noteWaiting(
    const std::string& id,
    const std::set<std::string>& roles,
    bool suppressed)
{
  const auto found = crowded.find(id);
  if (found == crowded.end()) {
    return;
  }

  UpdateFramework& said = found->second;
  for (const std::string& role : roles.empty() ? said.roles : roles) {
    if (suppressed && said.roles.count(role) > 0) {
      said.suppressed.insert(role);
    } else {
      said.suppressed.erase(role);
    }
  }
}


void Brain::forgetLate(uint32_t framework, const std::string& id)
{
  lateUpdates.erase(framework);
  lateRequests.erase(framework);
  lateRoles.erase(id);
}

} // namespace brain {
} // namespace allocator {
