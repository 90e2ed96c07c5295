#ifndef __ALLOCATOR_BRAIN_BOOKS_SUMS_HPP__
#define __ALLOCATOR_BRAIN_BOOKS_SUMS_HPP__

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "brain/books/names.hpp"
#include "brain/books/resource_classes.hpp"
#include "brain/books/tables.hpp"

namespace allocator {
namespace brain {

// Sums over all agents by resource name: holdings of roles and frameworks,
// consumption of quotas, and unmet guarantees. Updated with each change of the
// books.
//
// A top-level role consumes the resources reserved for its subtree (offered or
// not) and the unreserved, non-revocable scalars that its subtree holds.
class Sums
{
public:
  explicit Sums(const Roles* _roles) : roles(_roles) {}

  void changeTotal(const ResourceClasses::Row& resourceClass, int64_t delta);

  void changeHeld(
      uint32_t framework,
      uint32_t role,
      const ResourceClasses::Row& resourceClass,
      int64_t delta);

  // Updates the sums after a role was inserted between another role and its
  // parent.
  void adopt(const Roles::Adoption& adoption);

  // An empty quota removes it.
  void setQuota(uint32_t role, const Amounts& guarantee, const Amounts& limit);

  bool hasQuotas() const { return !quotas.empty(); }

  // How much more of an unreserved, non-revocable scalar the role may get.
  // `limitLeft`: within the limit of its top-level role. `headroomLeft`:
  // without using what the unmet guarantees of other top-level roles need.
  // INT64_MAX: unbounded.
  int64_t limitLeft(uint32_t role, uint32_t name) const;
  int64_t headroomLeft(uint32_t role, uint32_t name) const;

  // The unmet part of the guarantee of the role's top-level role.
  int64_t missing(uint32_t role, uint32_t name) const;

  // Whether the guarantee is unmet for any name.
  bool isMissing(uint32_t role) const;

  // Scalars of the cluster; scalars held by a role and its descendants.
  const Amounts& total() const { return total_; }
  const Amounts& ofRole(uint32_t role) const;

  // Held in the role itself, by all frameworks in all roles, and by one
  // framework in one role.
  const Amounts& atRole(uint32_t role) const;
  const Amounts& held() const { return held_; }
  const Amounts& ofClient(uint32_t framework, uint32_t role) const;

  // Consumed by a top-level role.
  const Amounts& consumed(uint32_t top) const;

private:
  struct Quota
  {
    Amounts guarantee;
    Amounts limit;
  };

  struct Client
  {
    uint32_t role;
    Amounts held;
  };

  void
  changeClient(uint32_t framework, uint32_t role, uint32_t name, int64_t delta);
  void consume(uint32_t top, uint32_t name, int64_t delta);
  void need(const Amounts& guarantee, uint32_t top, int64_t sign);

  const Roles* const roles;

  Amounts total_;
  Amounts held_;
  Amounts free_;    // Only resources that quotas count.
  Amounts required; // Unmet by all guarantees.
  std::vector<Amounts> byRole;
  std::vector<Amounts> byRoleItself;
  std::vector<Amounts> byTop;
  std::vector<std::vector<Client>> byClient; // By framework, sorted by role.
  std::unordered_map<uint32_t, Quota> quotas;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_BOOKS_SUMS_HPP__
