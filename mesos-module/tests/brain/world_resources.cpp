#include "tests/brain/world.hpp"

#include <utility>

namespace allocator {
namespace brain {

Heap World::heap(bool small)
{
  Heap result;
  const uint32_t size = small ? 4 : 40;

  for (uint32_t resourceClass : {CPUS, MEM, CPUS_ENG, REVOCABLE}) {
    if (draw(2) == 0) {
      result.amounts[resourceClass] = 1 + draw(size * 1000);
    }
  }

  for (uint32_t resourceClass : {VOLUME, SHARED}) {
    if (draw(4) == 0) {
      result.amounts[resourceClass] = traitsOf(resourceClass).unit;
    }
  }

  for (uint32_t port = 1; port <= 12; ++port) {
    if (draw(small ? 4 : 2) == 0) {
      result.ports.insert(port);
    }
  }

  return result;
}


// Redefines resource classes that the brain has forgotten.
Parts World::parts(const Heap& heap)
{
  for (uint32_t resourceClass = 0; resourceClass < CLASSES; ++resourceClass) {
    if (!brain.cluster().classes.defined(resourceClass)) {
      brain.step(
          DefineResourceClass{resourceClass, traitsOf(resourceClass)}, nowMs);
    }
  }

  return heap.toParts();
}


void World::comeBack()
{
  const std::string id = agentId();
  auto agent = model.agents.find(id);
  Release event;
  event.agent = id;
  event.refuseMs = draw(2) == 0 ? -1 : draw(4000);
  event.allocated = draw(2) == 0;

  SlowModel::Client client{frameworkId(), role()};
  Heap given = heap(true);

  if (agent != model.agents.end() && !agent->second.held.empty()) {
    auto held = agent->second.held.begin();
    std::advance(held, draw(agent->second.held.size()));
    client = held->first;
    given = draw(2) == 0 ? held->second : given;
  }

  if (draw(3) == 0) {
    step(Transition{id, {{client.second, parts(given)}}});
  }

  event.framework = client.first;
  event.parts = {{client.second, parts(given)}};

  if (agent != model.agents.end()) {
    auto held = agent->second.held.find(client);
    if (held != agent->second.held.end()) {
      held->second.take(given);
      if (held->second.empty()) {
        agent->second.held.erase(held);
      }
    }
  }

  step(event);
}


// Makes an offer of the other allocator, mostly of free resources. Because that
// allocator's information is older, some are held, or do not suit the
// framework.
void World::offerBeside()
{
  const std::string id = agentId();
  const SlowModel::Client client{frameworkId(), role()};
  Heap given = heap(true);
  auto agent = model.agents.find(id);
  const bool known = model.frameworks.count(client.first) > 0;

  if (agent != model.agents.end() && draw(4) > 0) {
    given = agent->second.free();
  }

  OfferedBeside event;
  event.framework = client.first;
  event.rows = {{id, client.second, parts(given)}};

  if (known && agent != model.agents.end() && !given.empty()) {
    agent->second.held[client].add(given);
  }

  expect(known, step(event));
}


// Reserves cpus, unreserves them, copies a shared volume.
void World::convert()
{
  const std::string id = agentId();
  auto agent = model.agents.find(id);
  if (agent == model.agents.end() || agent->second.held.empty()) {
    return;
  }

  auto held = agent->second.held.begin();
  std::advance(held, draw(agent->second.held.size()));

  Heap consumed;
  Heap converted;
  const uint32_t from = draw(2) == 0 ? CPUS : CPUS_ENG;
  const int64_t amount = 1 + draw(3000);

  if (draw(4) == 0) {
    converted.amounts[SHARED] = traitsOf(SHARED).unit;
  } else {
    consumed.amounts[from] = amount;
    converted.amounts[from == CPUS ? CPUS_ENG : CPUS] = amount;
  }

  ConvertHeld event;
  event.agent = id;
  event.framework = held->first.first;
  event.role = held->first.second;
  event.offered = parts(held->second);
  event.conversions = {{parts(consumed), parts(converted)}};

  const bool fits = held->second.contains(consumed) &&
      (consumed.empty() || agent->second.total.contains(consumed));

  // The master has applied the conversion. If the total does not contain what
  // is consumed, the books are wrong, and the total stays as it is.
  if (held->second.contains(consumed)) {
    held->second.take(consumed);
    held->second.add(converted);
    if (!consumed.empty() && agent->second.total.contains(consumed)) {
      agent->second.total.take(consumed);
      agent->second.total.add(converted);
    }
  }

  expect(fits, step(event));
}


void World::convertFree()
{
  const std::string id = agentId();
  auto agent = model.agents.find(id);
  if (agent == model.agents.end()) {
    return;
  }

  Heap consumed;
  Heap converted;
  const int64_t amount = 1 + draw(9000);
  consumed.amounts[CPUS] = amount;
  converted.amounts[CPUS_ENG] = amount;

  const bool fits = agent->second.free().contains(consumed);
  if (fits) {
    agent->second.total.take(consumed);
    agent->second.total.add(converted);
  }

  expect(
      fits,
      step(ConvertFree{id, Conversion{parts(consumed), parts(converted)}}));
}

} // namespace brain {
} // namespace allocator {
