#ifndef __ALLOCATOR_ADAPTER_QUOTA_USAGE_HPP__
#define __ALLOCATOR_ADAPTER_QUOTA_USAGE_HPP__

#include "adapter/ledger.hpp"
#include "adapter/types.hpp"

namespace allocator {
namespace adapter {

// What counts against quotas: unreserved, non-revocable scalars.
bool countsAgainstQuota(const Resource& resource);

// The top-level role of a path.
std::string topLevel(const std::string& role);


// What each top-level role consumes, and what is free, of the resources
// that count against quotas.
//
// A role consumes what is reserved for its subtree, offered or not, and
// what its subtree holds of unreserved, non-revocable scalars. Only agents
// whose books have changed are counted anew.
class QuotaUsage
{
public:
  struct Sums
  {
    // Unreserved, non-revocable and held by nobody.
    Quantities free;
    std::map<std::string, Quantities> consumed;

    // Scalars of any kind: what there is, and what frameworks hold in each
    // role, those below it apart.
    Quantities total;
    std::map<std::string, Quantities> heldByRole;
  };

  const Sums& of(const Ledger& ledger);

  // Agents that were counted since the beginning.
  uint64_t counted() const { return counted_; }

private:
  void recount(const Ledger& ledger, const SlaveID& agentId);

  Sums sums;
  hashmap<SlaveID, Sums> agents;
  uint64_t counted_ = 0;
};


// Counts a single agent.
QuotaUsage::Sums countUsage(const Ledger::Agent& agent);

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_QUOTA_USAGE_HPP__
