#include "brain/brain.hpp"

#include <utility>

namespace allocator {
namespace brain {
namespace {

// A session is not left more often for what strangers say, for whoever says it
// may say it always.
constexpr int64_t LEAST_MS = 60000;


void mark(uint32_t role, std::vector<bool>* marked)
{
  if (role >= marked->size()) {
    marked->resize(role + 1);
  }
  (*marked)[role] = true;
}


void mark(const Framework& framework, std::vector<bool>* marked)
{
  for (uint32_t role : framework.roles) {
    mark(role, marked);
  }
  for (uint32_t role : framework.suppressed) {
    mark(role, marked);
  }
  for (const auto& entry : framework.minimum) {
    mark(entry.first, marked);
  }
  for (const auto& entry : framework.excluded) {
    mark(entry.first, marked);
  }
}


// A filter that was dropped is nobody's any more.
void mark(const Agent& agent, const Filters& filters, std::vector<bool>* marked)
{
  for (const Allocation& allocation : agent.allocations) {
    mark(allocation.role, marked);
  }
  for (const OfferFilter& filter : agent.filters) {
    if (!filters.isDropped(filter)) {
      mark(filter.role, marked);
    }
  }
}

} // namespace {


std::vector<bool> Brain::rolesInUse() const
{
  std::vector<bool> marked;

  for (uint32_t number = 0; number < state.frameworks.end(); ++number) {
    const Framework* framework = state.frameworks.find(number);
    if (framework != nullptr) {
      mark(*framework, &marked);
    }
  }

  for (uint32_t number = 0; number < state.agents.end(); ++number) {
    const Agent* agent = state.agents.find(number);
    if (agent != nullptr) {
      mark(*agent, state.filters, &marked);
    }
  }

  for (uint32_t resourceClass = 0; resourceClass < state.classes.end();
       ++resourceClass) {
    if (state.classes.defined(resourceClass)) {
      mark(state.classes.row(resourceClass).reserved, &marked);
    }
  }

  for (const auto& quota : state.quotas) {
    mark(state.roles.find(quota.first), &marked);
  }

  return marked;
}


// No snapshot may be under way: it has records that are gone from the books.
void Brain::giveUpRoles()
{
  fallback.forgetRoles(state.roles.giveUp(rolesInUse()));
  rolesKept = state.roles.count();
}


// Frameworks are asked again that found no room for a role.
void Brain::makeRoom(int64_t nowMs)
{
  std::map<std::string, UpdateFramework> waiting;
  waiting.swap(crowded);

  for (const auto& entry : waiting) {
    step(entry.second, nowMs);
  }
}


// Every interval: whoever subscribes to new roles all the time must not make
// the master grow.
void Brain::boundRoles(int64_t nowMs)
{
  const size_t most = 2 * rolesKept + state.options.rolesSpare;
  const bool tight =
      state.roles.count() > ROLES_MAX / 2 && nowMs - rolesTightMs >= LEAST_MS;

  if ((state.roles.count() <= most && !tight) || snapshot.underWay()) {
    return;
  }

  rolesTightMs = tight ? nowMs : rolesTightMs;
  if (!following) {
    state.roles.forgetHandles();
  }
  giveUpRoles();

  if (!crowded.empty() && state.roles.count() < ROLES_MAX / 2) {
    makeRoom(nowMs);
  }

  // A session hears of a role once and for all; so the next one begins.
  if (state.roles.countHandles() > state.options.rolesSentMax) {
    leaveSession(
        std::to_string(state.roles.countHandles()) + " roles by now", nowMs);
  }
}


// The same for names of resources, and for whom they are reserved.
void Brain::boundKinds(int64_t nowMs)
{
  if (!snapshot.underWay() && state.kinds.isWorn()) {
    leaveSession("many kinds of resources that nobody has any more", nowMs);
  }
}


void Brain::leaveSession(const std::string& why, int64_t nowMs)
{
  if (following && nowMs - leftMs >= LEAST_MS) {
    leftMs = nowMs;
    log(Level::INFO,
        "The sidecar has heard of " + why +
            "; a new session begins, without those that are gone");
    beginAnew();
  }
}

} // namespace brain {
} // namespace allocator {
