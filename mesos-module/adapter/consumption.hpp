#ifndef __ALLOCATOR_ADAPTER_CONSUMPTION_HPP__
#define __ALLOCATOR_ADAPTER_CONSUMPTION_HPP__

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <process/metrics/push_gauge.hpp>

#include "adapter/types.hpp"

#include "brain/events.hpp"
#include "brain/books/cluster.hpp"

namespace allocator {
namespace adapter {

// The parent role; if that is deeper than the tree of roles, its ancestor at
// the last level. Empty: none.
std::string parentOf(const brain::Roles& roles, const std::string& role);


// What roles consume of their quotas, in the metrics `.../consumed` of Mesos's
// own allocator: resources reserved for the role, and unreserved, non-revocable
// scalars that its tasks use (not those that are only offered). They also count
// for the role's ancestors. A role is shown while it consumes anything, even
// without a quota.
//
// Keeps the contribution of each agent, to subtract it when the agent is
// removed. Roles that only agents name are limited as in the tree of roles;
// further ones are left out.
class Consumption
{
public:
  // `reserves`: called when a role begins (true) or ceases to have reserved
  // resources.
  using Reserves = std::function<void(const std::string& role, bool any)>;

  Consumption(const brain::Cluster& books, const Reserves& reserves);
  ~Consumption();

  Consumption(const Consumption&) = delete;
  Consumption& operator=(const Consumption&) = delete;

  // Call when the agent's total may have changed.
  void updateReserved(const std::string& agent);

  // Records that tasks on the agent begin (`sign` 1) or cease (-1) to use these
  // parts.
  void use(
      const std::string& agent,
      const std::vector<brain::RoleParts>& parts,
      int64_t sign);

  void remove(const std::string& agent);

private:
  // In thousandths, by role and name.
  using Amounts = std::map<std::pair<std::string, std::string>, int64_t>;

  struct Agent
  {
    Amounts reserved;
    Amounts used;
  };

  struct Shown
  {
    int64_t amount;
    std::string parent;
    process::metrics::PushGauge gauge;
  };

  bool isInTree(const std::string& role) const;
  Amounts reservedOn(const std::string& agent, const Amounts& before) const;
  void countRow(const std::string& role, int rows);
  void consume(const Amounts::key_type& what, int64_t delta);

  const brain::Cluster& books;
  const Reserves reserves;

  std::map<std::string, Agent> agents;
  std::map<std::string, int> reservedRows; // By role, over all agents.
  std::map<Amounts::key_type, Shown> shown;
};

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_CONSUMPTION_HPP__
