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

// Sums over all agents, by the name of the resource: what roles and their
// frameworks hold, what roles consume of their quotas, what guarantees
// still need. They follow each change of the books.
//
// A top-level role consumes what is reserved for its subtree, offered or
// not, and what its subtree holds of unreserved, non-revocable scalars.
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

  // A role came between another one and its parent.
  void adopt(const Roles::Adoption& adoption);

  // An empty quota is none.
  void setQuota(uint32_t role, const Amounts& guarantee, const Amounts& limit);

  bool hasQuotas() const { return !quotas.empty(); }

  // What the role may still have of an unreserved, non-revocable scalar:
  // by its limit, and by the guarantees of others; INT64_MAX where nothing
  // bounds it. Quotas are of top-level roles.
  int64_t limitLeft(uint32_t role, uint32_t name) const;
  int64_t headroomLeft(uint32_t role, uint32_t name) const;

  // What the guarantee of the role's top-level role still needs.
  int64_t missing(uint32_t role, uint32_t name) const;

  // Whether it needs anything at all.
  bool isMissing(uint32_t role) const;

  // Scalars of the cluster, and what a role with all below it, or a
  // framework in a role, holds of them.
  const Amounts& total() const { return total_; }
  const Amounts& ofRole(uint32_t role) const;

  // What is held in the role itself, and in all roles.
  const Amounts& atRole(uint32_t role) const;
  const Amounts& held() const { return held_; }
  const Amounts& ofClient(uint32_t framework, uint32_t role) const;

  // What a top-level role consumes.
  const Amounts& consumed(uint32_t top) const;

private:
  struct Quota
  {
    Amounts guarantee;
    Amounts limit;
  };

  // What a framework holds in a role.
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
  Amounts free_;    // Of what quotas count.
  Amounts required; // By all guarantees together.
  std::vector<Amounts> byRole;
  std::vector<Amounts> byRoleItself;
  std::vector<Amounts> byTop;
  std::vector<std::vector<Client>> byClient; // By framework; by role there.
  std::unordered_map<uint32_t, Quota> quotas;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_BOOKS_SUMS_HPP__
