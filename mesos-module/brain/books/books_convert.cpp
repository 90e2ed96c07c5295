#include "brain/books/books.hpp"

namespace allocator {
namespace brain {
namespace {

// Applies conversions in order; returns an error or an empty string.
std::string convert(
    const std::vector<Conversion>& conversions,
    bool ofTotal,
    const char* whose,
    Parts* parts)
{
  for (const Conversion& conversion : conversions) {
    if (ofTotal && conversion.consumed.empty()) {
      continue;
    }

    if (!contains(*parts, conversion.consumed)) {
      return std::string(whose) + " do not contain the consumed ones";
    }

    subtract(conversion.consumed, parts);
    add(conversion.converted, parts);
  }

  return std::string();
}

} // namespace {


std::string Books::convertHeld(
    uint32_t number,
    uint32_t framework,
    uint32_t role,
    const Parts& offered,
    const std::vector<Conversion>& conversions)
{
  const Agent& now = *agents->find(number);
  const Allocation* there = find(now, framework, role);

  if (there == nullptr || !contains(there->parts, offered)) {
    return "the framework does not hold the resources to convert";
  }

  Parts mine = offered;
  Parts all = total(now);
  std::string wrong =
      convert(conversions, false, "the offered resources", &mine);
  if (wrong.empty()) {
    wrong = convert(conversions, true, "the agent's resources", &all);
  }

  if (wrong.empty()) {
    Parts held = there->parts;
    subtract(offered, &held);
    add(mine, &held);

    // Hold before changing the total, so that new resource classes are in use.
    release(number, framework, role, there->parts);
    hold(number, framework, role, held);
    setTotal(number, all);
  }

  return wrong;
}


bool Books::followHeld(
    uint32_t number,
    uint32_t framework,
    uint32_t role,
    const Parts& offered,
    const std::vector<Conversion>& conversions)
{
  Parts mine = offered;
  if (!convert(conversions, false, "the offered resources", &mine).empty()) {
    return false;
  }

  const Agent& now = *agents->find(number);
  const Allocation* there = find(now, framework, role);
  const Parts before = there == nullptr ? Parts() : there->parts;
  Parts held = before;
  subtract(offered, &held);
  add(mine, &held);

  Parts all = total(now);
  for (const Conversion& each : conversions) {
    if (!each.consumed.empty() && contains(all, each.consumed)) {
      subtract(each.consumed, &all);
      add(each.converted, &all);
    }
  }

  release(number, framework, role, before);
  hold(number, framework, role, held);
  setTotal(number, all);
  return true;
}


std::string Books::convertFree(uint32_t number, const Conversion& conversion)
{
  const Agent& agent = *agents->find(number);

  for (const Part& part : conversion.consumed) {
    const AgentResource* there = find(agent, part.resourceClass);
    const bool shared = classes->traits(part.resourceClass).shared;

    const bool fits = there != nullptr && free(*there) >= part.amount &&
        contains(there->free, part.spans) && !(shared && there->held > 0);

    if (!fits) {
      return "some of the consumed resources are not free";
    }
  }

  Parts all = total(agent);
  subtract(conversion.consumed, &all);
  add(conversion.converted, &all);
  setTotal(number, all);
  return std::string();
}


std::string Books::check(const Agent& agent) const
{
  for (const AgentResource& resource : agent.resources) {
    int64_t held = 0;
    Spans free = resource.all;

    for (const Allocation& allocation : agent.allocations) {
      const Part* part = brain::find(allocation.parts, resource.resourceClass);
      held += part == nullptr ? 0 : part->amount;
      free = part == nullptr ? free : subtract(free, part->spans);
    }

    const std::string where =
        agent.id + ", " + classes->traits(resource.resourceClass).name + ": ";

    if (held != resource.held) {
      return where + "held is " + std::to_string(resource.held) + ", not " +
          std::to_string(held);
    }

    if (free != resource.free) {
      return where + "the free elements are not those that are not held";
    }

    if (resource.freeAmount != amountOf(free)) {
      return where + "the free amount is not that of the free elements";
    }

    if (resource.total < 0 || (resource.total == 0 && resource.held == 0)) {
      return where + "a resource is neither in the total nor held";
    }
  }

  return std::string();
}

} // namespace brain {
} // namespace allocator {
