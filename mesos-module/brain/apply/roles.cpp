#include "brain/brain.hpp"

#include <utility>

namespace allocator {
namespace brain {
namespace {

// A session is not left more often for what strangers say, for whoever says it
// may say it always.
constexpr int64_t LEAST_MS = 60000;

// So much fewer roles that nobody names are borne where somebody waits.
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


// By frameworks and operators.
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


// By agents, and what is on them.
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


// For something that the agent says is used there. Of an agent that brings more
// roles than its share the sidecar hears less.
uint32_t Brain::useRole(uint32_t number, const std::string& path)
{
  Agent* agent = state.agents.edit(number);
  const size_t before = state.roles.count(Standing::USED);
  const size_t left = state.options.levelsOfAgentMax - agent->levels;
  const uint32_t role = state.roles.use(path, left);
  agent->levels += state.roles.count(Standing::USED) - before;

  if (state.roles.standing(role) == Standing::UNTOLD) {
    agent->untoldRole = ++agent->untold == 1 ? path : agent->untoldRole;
  }
  return role;
}


// What follows from roles that have come.
void Brain::placeRoles()
{
  for (const Roles::Adoption& adoption : state.roles.takeAdopted()) {
    state.sums.adopt(adoption);
  }
  tellMovers();
}


// Of what is held in roles that the sidecar heard of by the handles of others.
void Brain::tellMovers()
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
        tellMover(number, each);
      }
    }
  }

  state.roles.moved();
}


// No snapshot may be under way: it has records that are gone from the books.
void Brain::giveUpRoles()
{
  const std::vector<bool> sought = rolesSought();
  std::vector<bool> inUse = sought;
  markRolesInUse(&inUse);
  fallback.forgetRoles(state.roles.giveUp(std::move(inUse), sought));
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
  const size_t sought = state.roles.count(Standing::SOUGHT);
  const bool tight = sought > ROLES_MAX / 2 && nowMs - rolesTightMs >= LEAST_MS;

  if ((state.roles.count() <= most && !tight) || snapshot.underWay()) {
    return;
  }

  rolesTightMs = tight ? nowMs : rolesTightMs;
  if (!following) {
    state.roles.forgetHandles();
  }
  giveUpRoles();

  if (!crowded.empty() && state.roles.count(Standing::SOUGHT) < ROLES_MAX / 2) {
    makeRoom(nowMs);
  }

  // A session hears of a role once and for all; so the next one begins, where
  // that makes room: sooner where somebody waits for it.
  const size_t idle = state.roles.countIdle();
  const size_t waiting = crowded.empty() ? 1 : IDLE_OF_WAITING;
  if (idle * waiting > state.options.rolesSentMax) {
    leaveSession(
        std::to_string(idle) + " roles that nobody names any more", nowMs);
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
            "; a new session begins without them");
    beginAnew();
  }
}

} // namespace brain {
} // namespace allocator {
