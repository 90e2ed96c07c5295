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

// Inverse offers ask a framework that holds resources on an agent to leave it
// before maintenance. They follow the rules of Mesos's own allocator, without
// the sidecar. If an operator sets `inverseWithinMs`, an agent whose
// maintenance begins later gets inverse offers only for frameworks that the
// sidecar reclaims from. Agents and frameworks are numbers.
class Maintenance
{
public:
  // A framework's answer, and when it was given.
  struct Answer
  {
    wire::InverseOfferUpdate::Status status;
    int64_t atNs;
  };

  using Answers = std::map<uint32_t, Answer>; // By framework.

  // Begins or ends a schedule; discards earlier answers and filters.
  void set(uint32_t agent, bool scheduled);

  // Records a framework's answer; null if it has no status.
  void answer(
      uint32_t agent,
      uint32_t framework,
      const Answer* answer,
      int64_t refuseMs,
      int64_t nowMs);

  // Call when the master has dropped inverse offers without an answer, so that
  // they are made again.
  void forgetOutstandingOfFramework(uint32_t framework);
  void forgetOutstandingOfAgent(uint32_t agent);

  void clearFilters(uint32_t framework);
  void removeFramework(uint32_t framework);
  void removeAgent(uint32_t agent) { set(agent, false); }

  // The inverse offers to make now, for the given agents or all.
  std::vector<InverseOffer> generate(
      const Cluster& cluster,
      bool all,
      const std::vector<uint32_t>& agents,
      int64_t nowMs);

  // The inverse offers to make now among those the sidecar wants.
  std::vector<InverseOffer> reclaim(
      const Cluster& cluster,
      const std::vector<InverseOffer>& wanted,
      int64_t nowMs);

  // By agent, for each agent with a schedule.
  std::map<uint32_t, Answers> answers() const;

private:
  struct Schedule
  {
    Answers answers;
    std::set<uint32_t> outstanding;
  };

  // Whether to ask the framework now; if so, marks it as asked.
  bool ask(
      const Cluster& cluster,
      uint32_t framework,
      uint32_t agent,
      Schedule* schedule,
      int64_t nowMs);

  std::map<uint32_t, Schedule> schedules;

  // Expiry by framework and agent.
  std::map<std::pair<uint32_t, uint32_t>, int64_t> filters;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_DECIDING_MAINTENANCE_HPP__
