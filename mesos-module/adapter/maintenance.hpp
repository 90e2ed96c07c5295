#ifndef __ALLOCATOR_ADAPTER_MAINTENANCE_HPP__
#define __ALLOCATOR_ADAPTER_MAINTENANCE_HPP__

#include <mesos/maintenance/maintenance.hpp>

#include "adapter/state.hpp"

namespace allocator {
namespace adapter {

// Inverse offers: they ask a framework that holds something on an agent
// to leave it before the agent is maintained. No sidecar is asked; the
// rules are those of Mesos's own allocator.
class Maintenance
{
public:
  using Status = mesos::allocator::InverseOfferStatus;
  using Statuses = hashmap<SlaveID, hashmap<FrameworkID, Status>>;

  using InverseOffers =
      hashmap<FrameworkID, hashmap<SlaveID, mesos::UnavailableResources>>;

  // Begins or ends a schedule; answers and filters of before are void.
  bool empty() const { return schedules.empty(); }

  void set(
      const SlaveID& agentId,
      const Option<Unavailability>& unavailability);

  void answer(
      const SlaveID& agentId,
      const FrameworkID& frameworkId,
      const Option<Status>& status,
      const Option<mesos::Filters>& filters,
      int64_t nowMs);

  // What the master dropped without a word must be asked again.
  void forgetOutstanding(const FrameworkID& frameworkId);
  void forgetOutstanding(const SlaveID& agentId);

  void clearFilters(const FrameworkID& frameworkId);
  void removeFramework(const FrameworkID& frameworkId);
  void removeAgent(const SlaveID& agentId);

  InverseOffers generate(
      const Cluster& state,
      const std::vector<SlaveID>& candidates,
      int64_t nowMs);

  Statuses statuses() const;

private:
  struct Schedule
  {
    Unavailability unavailability;
    hashmap<FrameworkID, Status> statuses;
    hashset<FrameworkID> outstanding;
  };

  bool filtered(
      const FrameworkID& frameworkId,
      const SlaveID& agentId,
      int64_t nowMs) const;

  hashmap<SlaveID, Schedule> schedules;

  // When each filter expires.
  hashmap<FrameworkID, hashmap<SlaveID, int64_t>> filters;
};

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_MAINTENANCE_HPP__
