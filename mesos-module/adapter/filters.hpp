#ifndef __ALLOCATOR_ADAPTER_FILTERS_HPP__
#define __ALLOCATOR_ADAPTER_FILTERS_HPP__

#include "adapter/types.hpp"

namespace allocator {
namespace adapter {

// How long a refusal lasts, by Mesos's rules: 0 for no filter; what is
// negative or no number counts as the default, and a year is the most.
int64_t refusalMs(const mesos::Filters& filters);


// What frameworks refused. A filter bars what its resources contain, with
// all that distinguishes them, until it expires.
class Filters
{
public:
  struct Refusal
  {
    Resources refused;
    int64_t expiresMs;
  };

  // A filter outlives the next batch (MESOS-4302).
  explicit Filters(int64_t _intervalMs = 1000) : intervalMs(_intervalMs) {}

  void add(
      const FrameworkID& frameworkId,
      const std::string& role,
      const SlaveID& agentId,
      const Resources& refused,
      int64_t refuseMs,
      int64_t nowMs);

  bool covers(
      const FrameworkID& frameworkId,
      const std::string& role,
      const SlaveID& agentId,
      const Resources& offer,
      int64_t nowMs) const;

  void dropFramework(const FrameworkID& frameworkId);
  void dropRole(const FrameworkID& frameworkId, const std::string& role);
  void dropAgent(const SlaveID& agentId);

  // Forgets those that have expired.
  void expire(int64_t nowMs);

  size_t size() const;

  void each(
      const std::function<void(
          const FrameworkID&,
          const std::string&,
          const SlaveID&,
          const Refusal&)>& visit) const;

private:
  using ByAgent = hashmap<SlaveID, std::vector<Refusal>>;
  using ByRole = hashmap<std::string, ByAgent>;

  int64_t intervalMs;
  hashmap<FrameworkID, ByRole> filters;
};

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_FILTERS_HPP__
