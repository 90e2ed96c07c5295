#ifndef __ALLOCATOR_ADAPTER_LEDGER_HPP__
#define __ALLOCATOR_ADAPTER_LEDGER_HPP__

#include "adapter/types.hpp"

namespace allocator {
namespace adapter {

// What agents have, who holds it (offered or in use), and what is free.
//
// Held resources carry their allocation (role); totals and free ones do
// not. Nothing here asserts: what is given back is clamped to what is
// held, for the master counts some cases differently from us (inputs of
// pending operations, agents that went meanwhile).
class Ledger
{
public:
  struct Agent
  {
    Resources total;
    hashmap<FrameworkID, Resources> held;

    // Free resources; recomputed when something came back or changed, for
    // only then may an object appear that was not there before.
    const Resources& available() const;

    mutable Resources cached;
    mutable bool stale = true;

    // The total as allocated to the role that last had all of it: to
    // allocate costs a copy of every object, and idle agents go round.
    std::string wholeRole;
    Resources whole;

    // Whether it is among the changes.
    mutable bool changed = false;
  };

  void addAgent(const SlaveID& agentId, const Resources& total);
  void removeAgent(const SlaveID& agentId);
  void setTotal(const SlaveID& agentId, const Resources& total);

  // `resources` are allocated to one role or several.
  void hold(
      const FrameworkID& frameworkId,
      const SlaveID& agentId,
      const Resources& resources);

  // Allocates `given`, which is free there, to the role and holds it.
  // `all` says that nothing else is free. Gives what is held now.
  Resources offer(
      const FrameworkID& frameworkId,
      const SlaveID& agentId,
      const std::string& role,
      const Resources& given,
      bool all);

  // Gives what was really held of `resources`.
  Resources release(
      const FrameworkID& frameworkId,
      const SlaveID& agentId,
      const Resources& resources);

  void removeFramework(const FrameworkID& frameworkId);

  // Applies operations to what a framework holds and to the total, both
  // or none. Conversions that consume nothing (one more copy of a shared
  // volume) leave the total as it is.
  Try<Nothing> convertHeld(
      const FrameworkID& frameworkId,
      const SlaveID& agentId,
      const Resources& offered,
      const std::vector<ResourceConversion>& conversions);

  // Applies an operator's operations to free resources only.
  Try<Nothing> convertFree(
      const SlaveID& agentId,
      const std::vector<mesos::Offer::Operation>& operations);

  // Null where the agent is not known.
  const Agent* find(const SlaveID& agentId) const;

  const hashmap<SlaveID, Agent>& agents() const { return rows; }

  // Agents whose books are others than when this was called last, also
  // those that are gone; so that sums over all of them can be kept without
  // counting anew. None where that is not known, and all count as changed.
  Option<std::vector<SlaveID>> takeChanges() const;

private:
  void note(const SlaveID& agentId, const Agent& agent);

  hashmap<SlaveID, Agent> rows;

  // Noted only where somebody takes them.
  mutable bool noting = false;
  mutable std::vector<SlaveID> changes;
};

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_LEDGER_HPP__
