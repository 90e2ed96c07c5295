#ifndef __ALLOCATOR_BRAIN_BOOKS_BOOKS_HPP__
#define __ALLOCATOR_BRAIN_BOOKS_BOOKS_HPP__

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "brain/books/resource_classes.hpp"
#include "brain/books/tables.hpp"
#include "brain/books/sums.hpp"

namespace allocator {
namespace brain {

// An operation's effect: `consumed` is replaced by `converted`.
struct Conversion
{
  Parts consumed;
  Parts converted;
};


// The resources of agents, which framework holds them (offered or in use), and
// which are free.
//
// Invariant: for each resource class on each agent, free + held == total,
// exactly; if more is held than exists, nothing is free. Only this class
// changes the resources and allocations of agents. A release is clamped to what
// is held, because the master counts some cases differently (inputs of pending
// operations, agents removed meanwhile).
//
// Agents must exist, and resource classes must be defined.
class Books
{
public:
  Books(Table<Agent>* _agents, ResourceClasses* _classes, Sums* _sums)
    : agents(_agents), classes(_classes), sums(_sums)
  {
  }

  // Returns whether anything changed.
  bool setTotal(uint32_t agent, const Parts& total);

  // Call before removing the agent's record.
  void removeAgent(uint32_t agent);

  void
  hold(uint32_t agent, uint32_t framework, uint32_t role, const Parts& parts);

  // Returns the part of `parts` that was held.
  Parts release(
      uint32_t agent,
      uint32_t framework,
      uint32_t role,
      const Parts& parts);

  void removeFramework(uint32_t framework);

  // Applies conversions, in order, to `offered`, which the framework must hold,
  // and to the agent's total: all of them or none. A conversion that consumes
  // nothing (another copy of a shared volume) leaves the total unchanged.
  // Returns an error, or an empty string.
  std::string convertHeld(
      uint32_t agent,
      uint32_t framework,
      uint32_t role,
      const Parts& offered,
      const std::vector<Conversion>& conversions);

  // Applies conversions that contradict the books although the master has
  // already applied them. The framework then holds the result of applying them
  // to `offered`. The total only changes as far as it contains what is
  // consumed, so no resources are created. Returns false, without effect, if
  // they do not even fit `offered`.
  bool followHeld(
      uint32_t agent,
      uint32_t framework,
      uint32_t role,
      const Parts& offered,
      const std::vector<Conversion>& conversions);

  // Like `convertHeld`, for free resources. A consumed shared resource must
  // have no holders.
  std::string convertFree(uint32_t agent, const Conversion& conversion);

  // The free amount; for a shared resource class, the whole total, regardless
  // of its holders.
  int64_t free(const AgentResource& resource) const;

  Parts free(const Agent& agent) const;

  bool hasFree(const Agent& agent) const;

  // Null if the agent has no resources of the class.
  static const AgentResource* find(const Agent& agent, uint32_t resourceClass);

  // Null if the framework holds nothing there in the role.
  static const Allocation*
  find(const Agent& agent, uint32_t framework, uint32_t role);

  static Parts total(const Agent& agent);

  // The first inconsistency of an agent's books, or empty. Expensive; for
  // tests.
  std::string check(const Agent& agent) const;

private:
  AgentResource* resource(Agent* agent, uint32_t resourceClass);
  void changeTotal(Agent* agent, uint32_t resourceClass, const Part* after);
  void changeHeld(
      Agent* agent,
      uint32_t framework,
      uint32_t role,
      const Parts& before,
      const Parts& after);
  static void takeAway(const Part& part, AgentResource* resource);
  void refresh(const Agent& agent, AgentResource* resource);
  void giveBack(const Agent& agent, const Part& part, AgentResource* resource);
  void tidy(Agent* agent);
  void refreshGpus(Agent* agent);
  Allocation* allocation(Agent* agent, uint32_t framework, uint32_t role);
  void dropAllocation(Agent* agent, uint32_t framework, uint32_t role);
  int64_t counted(uint32_t resourceClass, int64_t amount) const;

  Table<Agent>* const agents;
  ResourceClasses* const classes;
  Sums* const sums;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_BOOKS_BOOKS_HPP__
