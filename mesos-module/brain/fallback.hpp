#ifndef __ALLOCATOR_BRAIN_FALLBACK_HPP__
#define __ALLOCATOR_BRAIN_FALLBACK_HPP__

#include <cstddef>
#include <cstdint>
#include <random>
#include <unordered_map>
#include <vector>

#include "brain/cluster.hpp"
#include "brain/gates.hpp"
#include "brain/ready.hpp"

namespace allocator {
namespace brain {

// Weighted dominant resource fairness over the same books and gates as
// for a sidecar's decisions. As Mesos's own allocator it goes over the
// agents in random order, twice: first for roles whose guarantees are not
// reached, then for all; and gives each agent as a whole to whoever comes
// first: among the roles by dominant share over weight, then among the
// role's frameworks. Ties go to whoever was served less often, then to the
// lower path or id.
class Fallback
{
public:
  void seed(uint64_t value) { random.seed(value); }

  // Begins a cycle, over some agents or all of them. One that is under way
  // begins anew, over the agents of both.
  void begin(
      const Cluster& cluster,
      bool all,
      const std::vector<uint32_t>& some,
      int64_t clockMs);

  bool underWay() const { return running; }
  void stop() { running = false; }

  // Serves so many agents as are due at a time. What is given is booked,
  // and added to `offers`.
  void slice(Cluster* cluster, std::vector<Offer>* offers);

  // Its number is to name another.
  void forget(uint32_t framework);
  void forgetRoles(const std::vector<uint32_t>& roles);

private:
  std::mt19937_64 random;
  bool running = false;
  bool guarantees = false; // Which of the two rounds it is.
  int64_t asOfMs = 0;
  std::vector<uint32_t> agents;
  size_t next = 0;

  // How often roles and frameworks in them were served, by both numbers.
  std::unordered_map<uint64_t, uint64_t> served;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_FALLBACK_HPP__
