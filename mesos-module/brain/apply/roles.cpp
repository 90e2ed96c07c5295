#include "brain/brain.hpp"

#include <utility>

namespace allocator {
namespace brain {
namespace {

// Minimum time between replacements of the session because of roles or kinds,
// since frameworks can cause them endlessly.
constexpr int64_t LEAST_MS = 60000;

// While a framework's roles wait for room, the limit on unused roles in a
// session is divided by this.
constexpr size_t IDLE_OF_WAITING = 4;


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


// Marks roles of holdings and of filters that have not been dropped.
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


std::vector<bool> Brain::rolesSought() const
{
  std::vector<bool> marked;

  for (uint32_t number = 0; number < state.frameworks.end(); ++number) {
    const Framework* framework = state.frameworks.find(number);
    if (framework != nullptr) {
      mark(*framework, &marked);
    }
  }

  for (const auto& quota : state.quotas) {
    mark(state.roles.find(quota.first), &marked);
  }

  return marked;
}


void Brain::markRolesInUse(std::vector<bool>* marked) const
{
  for (uint32_t number = 0; number < state.agents.end(); ++number) {
    const Agent* agent = state.agents.find(number);
    if (agent != nullptr) {
      mark(*agent, state.filters, marked);
    }
  }

  for (uint32_t resourceClass = 0; resourceClass < state.classes.end();
       ++resourceClass) {
    if (state.classes.defined(resourceClass)) {
      mark(state.classes.row(resourceClass).reservedTop, marked);
    }
  }
}


// The number of a role that the agent uses. A new role beyond a limit is
// folded.
uint32_t Brain::useRole(uint32_t number, const std::string& path)
{
  Agent* agent = state.agents.edit(number);
  const size_t before = state.roles.count(Standing::USED);
  const size_t left = state.options.levelsOfAgentMax - agent->levels;
  const uint32_t role = state.roles.use(path, left);
  agent->levels += state.roles.count(Standing::USED) - before;

  if (state.roles.standing(role) == Standing::FOLDED) {
    agent->foldedRole = ++agent->folded == 1 ? path : agent->foldedRole;
  }
  return role;
}


// Updates sums and the sidecar's state after roles were added.
void Brain::placeRoles()
{
  for (const Roles::Adoption& adoption : state.roles.takeAdopted()) {
    state.sums.adopt(adoption);
  }
  sendHandleChanges();
}


// Reports holdings of roles that have just got their own handles.
void Brain::sendHandleChanges()
{
  if (!following) {
    state.roles.moved();
  }
  if (snapshot.underWay() || state.roles.movers().empty()) {
    return;
  }

  const std::set<uint32_t> movers(
      state.roles.movers().begin(), state.roles.movers().end());

  for (uint32_t number = 0; number < state.agents.end(); ++number) {
    const Agent* agent = state.agents.find(number);
    if (agent == nullptr) {
      continue;
    }
    for (const Allocation& each : agent->allocations) {
      if (movers.count(each.role) > 0) {
        reportMover(number, each);
      }
    }
  }

  state.roles.moved();
}


// Must not run while a snapshot is built: the snapshot may contain removed
// frameworks and agents, and name their roles.
void Brain::removeUnusedRoles()
{
  const std::vector<bool> sought = rolesSought();
  std::vector<bool> inUse = sought;
  markRolesInUse(&inUse);
  fallback.forgetRoles(state.roles.removeUnused(std::move(inUse), sought));
  rolesKept = state.roles.count();
}


// Retries frameworks some of whose roles were not admitted for lack of room.
void Brain::retryCrowded(int64_t nowMs)
{
  std::map<std::string, UpdateFramework> waiting;
  waiting.swap(crowded);

  for (const auto& entry : waiting) {
    step(entry.second, nowMs);
  }
}


// Removes unused roles, so that frameworks that keep subscribing to new roles
// do not use up the master's memory. Runs each interval.
void Brain::limitRoles(int64_t nowMs)
{
  const size_t most = 2 * rolesKept + state.options.rolesSpare;
  const size_t sought = state.roles.count(Standing::SOUGHT);
  const bool tight = sought > ROLES_MAX / 2 && nowMs - rolesTightMs >= LEAST_MS;

  if ((state.roles.count() <= most && !tight) || snapshot.underWay()) {
    return;
  }

  rolesTightMs = tight ? nowMs : rolesTightMs;
  if (!following) {
    state.roles.forgetHandles();
  }
  removeUnusedRoles();

  if (!crowded.empty() && state.roles.count(Standing::SOUGHT) < ROLES_MAX / 2) {
    retryCrowded(nowMs);
  }

  // A session never frees the handles of roles, so replace it if there are too
  // many unused ones; sooner if frameworks wait for room.
  const size_t idle = state.roles.countIdle();
  const size_t waiting = crowded.empty() ? 1 : IDLE_OF_WAITING;
  if (idle * waiting > state.options.rolesSentMax) {
    leaveSession(
        std::to_string(idle) + " roles that are no longer in use", nowMs);
  }
}


void Brain::limitKinds(int64_t nowMs)
{
  if (!snapshot.underWay() && state.kinds.hasManyUnused()) {
    leaveSession("many kinds of resources that are no longer in use", nowMs);
  }
}


void Brain::leaveSession(const std::string& why, int64_t nowMs)
{
  if (following && nowMs - leftMs >= LEAST_MS) {
    leftMs = nowMs;
    log(Level::INFO,
        "The sidecar keeps " + why + "; a new session begins without them");
    restartSession();
  }
}

} // namespace brain {
} // namespace allocator {
