#ifndef __ALLOCATOR_ADAPTER_FALLBACK_HPP__
#define __ALLOCATOR_ADAPTER_FALLBACK_HPP__

#include "adapter/gates.hpp"
#include "adapter/state.hpp"

namespace allocator {
namespace adapter {

// Weighted dominant resource fairness over the same books and gates as
// for a sidecar's decisions. As Mesos's own allocator it goes over the
// agents in random order and gives each as a whole to whoever comes
// first: among the roles by dominant share over weight, then among the
// role's frameworks. Ties go to whoever was served less often, then to
// the lower path or id.
//
// What is given is booked and added to `offers`.
class Fallback
{
public:
  explicit Fallback(uint64_t seed) : random(seed) {}

  void allocate(
      Cluster* state,
      const std::vector<SlaveID>& candidates,
      QuotaBook* quotas,
      int64_t nowMs,
      hashmap<FrameworkID, Offers>* offers);

private:
  uint64_t random;
  hashmap<std::string, uint64_t> served;
};

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_FALLBACK_HPP__
