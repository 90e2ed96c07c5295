#ifndef __ALLOCATOR_BRAIN_DECIDING_MAINTENANCE_HPP__
#define __ALLOCATOR_BRAIN_DECIDING_MAINTENANCE_HPP__

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "brain/books/cluster.hpp"
#include "brain/ready.hpp"

namespace allocator {
namespace brain {

// Inverse offers: they ask a framework that holds something on an agent
// to leave it before the agent is maintained. No sidecar is asked; the
// rules are those of Mesos's own allocator. But where an operator sets a
// time (`inverseWithinMs`), an agent whose maintenance begins later is left
// only by whom a sidecar wants to leave it. Agents and frameworks go by
// their numbers.
class Maintenance
{
public:
  // What a framework answered, and when.
  struct Answer
  {
    wire::InverseOfferUpdate::Status status;
    int64_t atNs;
  };

  using Answers = std::map<uint32_t, Answer>; // By framework.

  // Begins or ends a schedule; answers and filters of before are void.
  void set(uint32_t agent, bool scheduled);

  // Null where the answer has no status.
  void answer(
      uint32_t agent,
      uint32_t framework,
      const Answer* answer,
      int64_t refuseMs,
      int64_t nowMs);

  // What the master dropped without a word must be asked again.
  void forgetOutstandingOfFramework(uint32_t framework);
  void forgetOutstandingOfAgent(uint32_t agent);

  void clearFilters(uint32_t framework);
  void removeFramework(uint32_t framework);
  void removeAgent(uint32_t agent) { set(agent, false); }

  // Who is to be asked now, on these agents or on all.
  std::vector<InverseOffer> generate(
      const Cluster& cluster,
      bool all,
      const std::vector<uint32_t>& agents,
      int64_t nowMs);

  // Of those that a sidecar wants to leave agents, who is to be asked now.
  std::vector<InverseOffer> reclaim(
      const Cluster& cluster,
      const std::vector<InverseOffer>& wanted,
      int64_t nowMs);

  // By agent, for every agent with a schedule.
  std::map<uint32_t, Answers> answers() const;

private:
  struct Schedule
  {
    Answers answers;
    std::set<uint32_t> outstanding;
  };

  // Whether a framework is to be asked now; then it is.
  bool ask(
      const Cluster& cluster,
      uint32_t framework,
      uint32_t agent,
      Schedule* schedule,
      int64_t nowMs);

  std::map<uint32_t, Schedule> schedules;

  // When each filter expires, by framework and agent.
  std::map<std::pair<uint32_t, uint32_t>, int64_t> filters;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_DECIDING_MAINTENANCE_HPP__
