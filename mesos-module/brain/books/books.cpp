#include "brain/books/books.hpp"

#include <algorithm>
#include <utility>

namespace allocator {
namespace brain {
namespace {

bool isBefore(const Allocation& allocation, uint32_t framework, uint32_t role)
{
  return allocation.framework < framework ||
      (allocation.framework == framework && allocation.role < role);
}


template <typename Holdings>
auto place(Holdings* held, uint32_t framework, uint32_t role)
    -> decltype(held->begin())
{
  return std::lower_bound(
      held->begin(), held->end(), 0, [=](const Allocation& allocation, int) {
        return isBefore(allocation, framework, role);
      });
}


bool isOfBefore(const AgentResource& resource, uint32_t resourceClass)
{
  return resource.resourceClass < resourceClass;
}


bool isThere(
    std::vector<Allocation>::const_iterator at,
    const std::vector<Allocation>& held,
    uint32_t framework,
    uint32_t role)
{
  return at != held.end() && at->framework == framework && at->role == role;
}

} // namespace {


AgentResource* Books::resource(Agent* agent, uint32_t resourceClass)
{
  auto at = std::lower_bound(
      agent->resources.begin(),
      agent->resources.end(),
      resourceClass,
      isOfBefore);

  if (at == agent->resources.end() || at->resourceClass != resourceClass) {
    AgentResource fresh;
    fresh.resourceClass = resourceClass;
    at = agent->resources.insert(at, fresh);
    classes->use(resourceClass);
  }

  return &*at;
}


const AgentResource* Books::find(const Agent& agent, uint32_t resourceClass)
{
  auto at = std::lower_bound(
      agent.resources.begin(),
      agent.resources.end(),
      resourceClass,
      isOfBefore);
  const bool isThere =
      at != agent.resources.end() && at->resourceClass == resourceClass;
  return isThere ? &*at : nullptr;
}


// Removes a part from the free elements. Usually all its elements were free,
// and the amount can be adjusted without counting again.
void Books::takeAway(const Part& part, AgentResource* resource)
{
  const bool all = contains(resource->free, part.spans);
  resource->free = subtract(resource->free, part.spans);
  resource->freeAmount = all ? resource->freeAmount - amountOf(part.spans)
                             : amountOf(resource->free);
}


// Recomputes the free elements of ranges and sets. Joins all held spans first,
// because subtracting them holder by holder would scan the free ones each time.
void Books::refresh(const Agent& agent, AgentResource* resource)
{
  if (classes->traits(resource->resourceClass).type == Type::SCALAR) {
    return;
  }

  std::vector<Span> held;
  for (const Allocation& allocation : agent.allocations) {
    const Part* part = brain::find(allocation.parts, resource->resourceClass);
    if (part != nullptr) {
      held.insert(held.end(), part->spans.begin(), part->spans.end());
    }
  }

  resource->free = subtract(resource->all, joined(std::move(held)));
  resource->freeAmount = amountOf(resource->free);
}


// Frees elements that are no longer held. If the held amounts add up to what is
// not free, each element was held once and belongs to the total, so the other
// holders need not be checked.
void Books::giveBack(
    const Agent& agent,
    const Part& part,
    AgentResource* resource)
{
  if (part.spans.empty()) {
    return;
  }

  const int64_t heldBefore = resource->held + part.amount;
  if (heldBefore == amountOf(resource->all) - resource->freeAmount) {
    resource->free = unite(resource->free, part.spans);
    resource->freeAmount += amountOf(part.spans);
  } else {
    refresh(agent, resource);
  }
}


// Removes resources that are neither in the total nor held.
void Books::tidy(Agent* agent)
{
  agent->resources.erase(
      std::remove_if(
          agent->resources.begin(),
          agent->resources.end(),
          [this](const AgentResource& resource) {
            const bool idle = resource.total == 0 && resource.held == 0;
            if (idle) {
              classes->disuse(resource.resourceClass);
            }
            return idle;
          }),
      agent->resources.end());
}


void Books::refreshGpus(Agent* agent)
{
  agent->gpus = std::any_of(
      agent->resources.begin(),
      agent->resources.end(),
      [this](const AgentResource& resource) {
        return resource.total > 0 &&
            classes->traits(resource.resourceClass).name == "gpus";
      });
}


void Books::changeTotal(Agent* agent, uint32_t resourceClass, const Part* after)
{
  AgentResource* there = resource(agent, resourceClass);
  const int64_t amount = after == nullptr ? 0 : after->amount;

  sums->changeTotal(classes->row(resourceClass), amount - there->total);
  there->total = amount;

  const Spans all = after == nullptr ? Spans() : after->spans;
  if (there->all != all) {
    there->all = all;
    refresh(*agent, there);
  }
}


bool Books::setTotal(uint32_t number, const Parts& after)
{
  if (total(*agents->find(number)) == after) {
    return false;
  }

  Agent* agent = agents->edit(number);

  for (const Part& part : total(*agent)) {
    if (brain::find(after, part.resourceClass) == nullptr) {
      changeTotal(agent, part.resourceClass, nullptr);
    }
  }

  for (const Part& part : after) {
    changeTotal(agent, part.resourceClass, &part);
  }

  tidy(agent);
  refreshGpus(agent);
  return true;
}


void Books::removeAgent(uint32_t number)
{
  Agent* agent = agents->edit(number);

  while (!agent->allocations.empty()) {
    const Allocation last = agent->allocations.back();
    changeHeld(agent, last.framework, last.role, last.parts, Parts());
    agent->allocations.pop_back();
  }

  setTotal(number, Parts());
  tidy(agent);
}


// The amount that sums count: one copy of a shared resource class.
int64_t Books::counted(uint32_t resourceClass, int64_t amount) const
{
  const Traits& traits = classes->traits(resourceClass);
  return traits.shared ? std::min(amount, traits.unit) : amount;
}


// Changes the amounts held on the agent; the caller updates the allocation
// itself.
void Books::changeHeld(
    Agent* agent,
    uint32_t framework,
    uint32_t role,
    const Parts& before,
    const Parts& after)
{
  auto book = [&](uint32_t resourceClass, int64_t had, int64_t has) {
    resource(agent, resourceClass)->held += has - had;
    sums->changeHeld(
        framework,
        role,
        classes->row(resourceClass),
        counted(resourceClass, has) - counted(resourceClass, had));
  };

  for (const Part& part : before) {
    const Part* there = brain::find(after, part.resourceClass);
    book(part.resourceClass, part.amount, there == nullptr ? 0 : there->amount);
  }

  for (const Part& part : after) {
    if (brain::find(before, part.resourceClass) == nullptr) {
      book(part.resourceClass, 0, part.amount);
    }
  }
}


Allocation* Books::allocation(Agent* agent, uint32_t framework, uint32_t role)
{
  auto at = place(&agent->allocations, framework, role);
  if (!isThere(at, agent->allocations, framework, role)) {
    at = agent->allocations.insert(at, Allocation{framework, role, Parts()});
  }
  return &*at;
}


void Books::dropAllocation(Agent* agent, uint32_t framework, uint32_t role)
{
  auto at = place(&agent->allocations, framework, role);
  if (isThere(at, agent->allocations, framework, role)) {
    agent->allocations.erase(at);
  }
}


const Allocation*
Books::find(const Agent& agent, uint32_t framework, uint32_t role)
{
  auto at = place(&agent.allocations, framework, role);
  return isThere(at, agent.allocations, framework, role) ? &*at : nullptr;
}


void Books::hold(
    uint32_t number,
    uint32_t framework,
    uint32_t role,
    const Parts& parts)
{
  if (parts.empty()) {
    return;
  }

  Agent* agent = agents->edit(number);
  Allocation* there = allocation(agent, framework, role);

  // Common case: nothing was held.
  if (there->parts.empty()) {
    changeHeld(agent, framework, role, Parts(), parts);
    there->parts = parts;
  } else {
    const Parts before = there->parts;
    add(parts, &there->parts);
    changeHeld(agent, framework, role, before, there->parts);
  }

  for (const Part& part : parts) {
    if (!part.spans.empty()) {
      takeAway(part, resource(agent, part.resourceClass));
    }
  }
}


Parts Books::release(
    uint32_t number,
    uint32_t framework,
    uint32_t role,
    const Parts& parts)
{
  const Allocation* there = find(*agents->find(number), framework, role);
  if (there == nullptr) {
    return Parts();
  }

  const bool all = there->parts == parts;
  Parts released = all ? Parts() : common(there->parts, parts);
  if (!all && released.empty()) {
    return released;
  }

  Agent* agent = agents->edit(number);
  Allocation* mine = allocation(agent, framework, role);

  // Common case: everything held comes back.
  if (all) {
    released.swap(mine->parts);
    changeHeld(agent, framework, role, released, Parts());
  } else {
    const Parts before = mine->parts;
    subtract(released, &mine->parts);
    changeHeld(agent, framework, role, before, mine->parts);
  }

  if (mine->parts.empty()) {
    dropAllocation(agent, framework, role);
  }

  bool gone = false;
  for (const Part& part : released) {
    AgentResource* back = resource(agent, part.resourceClass);
    giveBack(*agent, part, back);
    gone = gone || back->total == 0;
  }

  if (gone) {
    tidy(agent);
  }

  return released;
}


void Books::removeFramework(uint32_t framework)
{
  for (uint32_t number = 0; number < agents->end(); ++number) {
    const Agent* agent = agents->find(number);

    while (agent != nullptr) {
      auto at = place(&agent->allocations, framework, 0);
      if (at == agent->allocations.end() || at->framework != framework) {
        break;
      }

      const uint32_t role = at->role;
      const Parts parts = at->parts;
      release(number, framework, role, parts);
      agent = agents->find(number);
    }
  }
}


int64_t Books::free(const AgentResource& resource) const
{
  const Traits& traits = classes->traits(resource.resourceClass);

  if (traits.shared) {
    return resource.total;
  }

  return traits.type == Type::SCALAR
      ? std::max<int64_t>(0, resource.total - resource.held)
      : resource.freeAmount;
}


bool Books::hasFree(const Agent& agent) const
{
  return std::any_of(
      agent.resources.begin(),
      agent.resources.end(),
      [this](const AgentResource& resource) { return free(resource) > 0; });
}


Parts Books::free(const Agent& agent) const
{
  Parts result;
  result.reserve(agent.resources.size());

  for (const AgentResource& resource : agent.resources) {
    const int64_t amount = free(resource);
    if (amount > 0) {
      result.push_back(Part{resource.resourceClass, amount, resource.free});
    }
  }

  return result;
}


Parts Books::total(const Agent& agent)
{
  Parts result;
  for (const AgentResource& resource : agent.resources) {
    if (resource.total > 0) {
      result.push_back(
          Part{resource.resourceClass, resource.total, resource.all});
    }
  }
  return result;
}

} // namespace brain {
} // namespace allocator {
