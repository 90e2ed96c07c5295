#include "brain/brain.hpp"

#include <algorithm>
#include <utility>

#include "brain/words/bounds.hpp"

namespace allocator {
namespace brain {

// What frameworks say costs a sidecar time for each of their roles, and they
// may say it as often as they like. Of what is too much for an interval only
// that is told at once without which it would decide in vain: roles that are
// left, or suppressed. It hears of the others as they are in the next interval.

// Roles that may still be worked out in this interval.
size_t Brain::workLeft(const std::string& payer) const
{
  const auto found = workedOut.find(payer);

  // Without a session nobody works anything out.
  if (!following || found == workedOut.end()) {
    return WORKED_OUT_MAX;
  }
  return WORKED_OUT_MAX - std::min(found->second, WORKED_OUT_MAX);
}


// Counts so much work.
bool Brain::mayTell(const Framework& framework, size_t work)
{
  if (!following) {
    return true;
  }
  size_t& done = workedOut[framework.payer];
  done += work;
  return done <= WORKED_OUT_MAX;
}


namespace {

// What it costs to be told of a framework: of none of its roles as of one, and
// to read what it says of itself.
size_t workOf(const Framework& framework, size_t bytes)
{
  return std::max<size_t>(framework.roles.size(), 1) + bytes / BYTES_AS_A_ROLE;
}

} // namespace {


bool Brain::mayTell(const Framework& framework)
{
  return mayTell(framework, workOf(framework, framework.info->ByteSizeLong()));
}


bool Brain::mayTell(const Framework& framework, const wire::Event& message)
{
  return mayTell(framework, workOf(framework, message.ByteSizeLong()));
}


void Brain::tellUpdate(uint32_t framework)
{
  lateUpdates.erase(framework);

  if (following) {
    wire::Event message;
    *message.mutable_update_framework() =
        toWire(*state.frameworks.find(framework), framework, &state);
    send(std::move(message));
  }
}


// `suppressed` is what the sidecar has heard of, unless it is late already.
void Brain::tellLater(uint32_t framework, const std::set<uint32_t>& suppressed)
{
  lateUpdates.emplace(framework, suppressed);
}


void Brain::tellSuppressed(uint32_t framework, const std::set<uint32_t>& roles)
{
  const auto late = lateUpdates.find(framework);
  wire::Event message;
  message.mutable_suppress()->set_framework(framework);

  for (uint32_t role : roles) {
    if (late == lateUpdates.end() || late->second.insert(role).second) {
      message.mutable_suppress()->add_roles(state.roles.handle(role));
    }
  }

  // Without a role it would mean all of them.
  if (message.suppress().roles_size() > 0) {
    send(std::move(message));
  }
}


// In a new interval, as far as its share allows.
void Brain::tellWhatIsLate(int64_t nowMs)
{
  workedOut.clear();

  std::map<uint32_t, std::set<uint32_t>> updates;
  updates.swap(lateUpdates);
  for (auto& entry : updates) {
    const Framework& framework = *state.frameworks.find(entry.first);
    if (workLeft(framework.payer) == 0) {
      lateUpdates.insert(std::move(entry));
    } else {
      mayTell(framework);
      tellUpdate(entry.first);
    }
  }

  std::map<uint32_t, wire::Event> requests;
  requests.swap(lateRequests);
  for (auto& entry : requests) {
    const Framework& framework = *state.frameworks.find(entry.first);
    if (workLeft(framework.payer) == 0) {
      lateRequests[entry.first].Swap(&entry.second);
    } else {
      mayTell(framework, entry.second);
      send(std::move(entry.second));
    }
  }

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


// Of roles that wait for room a framework may be said to want no offers, too.
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
