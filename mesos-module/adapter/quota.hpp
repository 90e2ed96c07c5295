#ifndef __ALLOCATOR_ADAPTER_QUOTA_HPP__
#define __ALLOCATOR_ADAPTER_QUOTA_HPP__

#include "adapter/state.hpp"
#include "adapter/types.hpp"

namespace allocator {
namespace adapter {

// Limits and guarantees of roles over one cycle.
//
// Beyond its own unsatisfied guarantee a role may have only what the
// unsatisfied guarantees of all roles leave over.
class QuotaBook
{
public:
  // Begins with what is used now; does nothing where no role has a quota.
  explicit QuotaBook(const Cluster& state);

  // Takes `offer` (unallocated) down to what the role may have, all of its
  // objects of a name together. Which bound is below that is noted.
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

  std::map<std::string, Role> roles;
  Quantities free;     // Unreserved, non-revocable and held by nobody.
  Quantities required; // Of it, what guarantees still need.
};

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_QUOTA_HPP__
