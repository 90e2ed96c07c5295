#ifndef __ALLOCATOR_ADAPTER_FILTERS_HPP__
#define __ALLOCATOR_ADAPTER_FILTERS_HPP__

#include <memory>
#include <queue>

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

  // Its parts refer to each other.
  Filters(Filters&&) = default;
  Filters& operator=(Filters&&) = default;

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

  // Forgets those that have expired; others are not looked at.
  void expire(int64_t nowMs);

  size_t size() const { return count; }

  // Those of frameworks in the role.
  size_t countOf(const std::string& role) const;

  void each(const std::function<void(
                const FrameworkID&,
                const std::string&,
                const SlaveID&,
                const Refusal&)>& visit) const;

private:
  struct List;

  using ByAgent = hashmap<SlaveID, std::shared_ptr<List>>;
  using ByRole = hashmap<std::string, ByAgent>;

  // The refusals of a framework in a role on an agent.
  struct List
  {
    std::vector<Refusal> refusals;

    // Where the list stands; both live as long as it is there.
    ByAgent* agents;
    const SlaveID* agentId;
  };

  struct Expiry
  {
    int64_t ms;
    std::weak_ptr<List> list; // Gone where it was dropped.

    bool operator>(const Expiry& that) const { return ms > that.ms; }
  };

  using Expiries =
      std::priority_queue<Expiry, std::vector<Expiry>, std::greater<Expiry>>;

  template <typename Predicate>
  void remove(List* list, const Predicate& predicate);

  void drop(const ByAgent& agents);
  void rebuildExpiries();

  int64_t intervalMs;
  hashmap<FrameworkID, ByRole> filters;
  size_t count = 0;

  // When lists have something that expires, the first on top. Refusals
  // that went before leave their entries here.
  Expiries expiries;
};

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_FILTERS_HPP__
