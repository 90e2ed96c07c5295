#ifndef __ALLOCATOR_ADAPTER_QUOTA_HPP__
#define __ALLOCATOR_ADAPTER_QUOTA_HPP__

#include "adapter/state.hpp"
#include "adapter/types.hpp"

namespace allocator {
namespace adapter {

// Limits and guarantees of roles over one cycle.
//
// What a role consumes is what is reserved for its subtree, offered or
// not, and what its subtree holds of unreserved, non-revocable scalars.
// Beyond its own unsatisfied guarantee a role may have only what the
// unsatisfied guarantees of all roles leave over.
class QuotaBook
{
public:
  // Counts; does nothing where no role has a quota.
  explicit QuotaBook(const Cluster& state);

  // Takes `offer` (unallocated) down to what the role may have. Which
  // bound took something away is noted, where it did.
  Resources bounded(
      const std::string& role,
      const Resources& offer,
      bool* byLimit,
      bool* byHeadroom) const;

  void charge(const std::string& role, const Resources& offer);

private:
  struct Role
  {
    Quantities guarantee;
    Quantities limit;
    Quantities consumed;
  };

  void count(const Cluster& state);

  std::map<std::string, Role> roles;
  Quantities free;     // Unreserved, non-revocable and held by nobody.
  Quantities required; // Of it, what guarantees still need.
};


// The top-level role of a path.
std::string topLevel(const std::string& role);

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_QUOTA_HPP__
