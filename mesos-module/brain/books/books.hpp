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

// What became of amounts of resource classes: `consumed` is no more,
// `converted` is there instead.
struct Conversion
{
  Parts consumed;
  Parts converted;
};


// What agents have, who holds it (offered or in use), and what is free.
//
// For each resource class on each agent, free + held == total, exactly, as long
// as not more is held than there is; then nothing is free. Nobody but this
// class changes the resources and allocations of agents. What is given back is
// clamped to what is held, for the master counts some cases differently (inputs
// of pending operations, agents that went meanwhile).
//
// All resource classes that are named must be defined, and agents be there.
class Books
{
public:
  Books(Table<Agent>* _agents, ResourceClasses* _classes, Sums* _sums)
    : agents(_agents), classes(_classes), sums(_sums)
  {
  }

  // Gives whether that changed anything.
  bool setTotal(uint32_t agent, const Parts& total);

  // To be called before the agent's record is removed.
  void removeAgent(uint32_t agent);

  void
  hold(uint32_t agent, uint32_t framework, uint32_t role, const Parts& parts);

  // Gives what was really held of `parts`.
  Parts release(
      uint32_t agent,
      uint32_t framework,
      uint32_t role,
      const Parts& parts);

  void removeFramework(uint32_t framework);

  // Applies conversions, one after the other, to what a framework holds
  // (out of `offered`) and to the total; all of them or none. Those that
  // consume nothing (one more copy of a shared volume) leave the total as
  // it is. Gives what was wrong.
  std::string convertHeld(
      uint32_t agent,
      uint32_t framework,
      uint32_t role,
      const Parts& offered,
      const std::vector<Conversion>& conversions);

  // The same where the books do not say so, but the master does: what fits
  // `offered` is held from now on. The total follows as far as it has what is
  // consumed, so nothing comes into being. Gives whether they fit `offered`.
  bool followHeld(
      uint32_t agent,
      uint32_t framework,
      uint32_t role,
      const Parts& offered,
      const std::vector<Conversion>& conversions);

  // The same as `convertHeld` for what is free, and no copy of it is held.
  std::string convertFree(uint32_t agent, const Conversion& conversion);

  // The amount of a resource that is free; of a shared resource class, however
  // many hold it, one copy.
  int64_t free(const AgentResource& resource) const;

  // All that is free of the agent.
  Parts free(const Agent& agent) const;

  // Whether anything is.
  bool hasFree(const Agent& agent) const;

  // Null where the agent has nothing of the resource class.
  static const AgentResource* find(const Agent& agent, uint32_t resourceClass);

  // Null where the framework holds nothing there in the role.
  static const Allocation*
  find(const Agent& agent, uint32_t framework, uint32_t role);

  static Parts total(const Agent& agent);

  // Says what is wrong with the books of an agent; empty where nothing
  // is. It costs time, and is for tests.
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
