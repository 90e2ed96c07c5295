#ifndef __ALLOCATOR_BRAIN_BOOKS_RESOURCE_CLASSES_HPP__
#define __ALLOCATOR_BRAIN_BOOKS_RESOURCE_CLASSES_HPP__

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "allocator/v1/session.pb.h"

#include "brain/books/spans.hpp"

namespace allocator {
namespace brain {

namespace wire = ::allocator::v1;

// A *resource class* groups objects whose amounts can be added: a Mesos
// `Resource` without its value and role. The brain knows a class by its number
// and its traits; only the adapter knows the Mesos object.

enum class Type
{
  SCALAR,
  RANGES,
  SET,
};


// The properties of a resource class that decisions depend on.
struct Traits
{
  std::string name;
  Type type = Type::SCALAR;

  // Role of the last reservation, and depth of the stack; empty and 0 if
  // unreserved.
  std::string reservedRole;
  uint32_t depth = 0;

  // Principal of the last reservation, or empty. Decisions do not depend on it.
  std::string principal;

  bool revocable = false;
  bool shared = false; // Any number of holders, one copy each.
  wire::DiskForm form = wire::DISK_FORM_UNSPECIFIED;

  // Indivisible resources: size of one object in thousandths. 0: divisible.
  int64_t unit = 0;

  // Whether quotas apply to it.
  bool quotaCounts() const
  {
    return type == Type::SCALAR && depth == 0 && !revocable;
  }
};


struct Part
{
  uint32_t resourceClass;
  int64_t amount; // In thousandths; ranges and sets count elements.
  Spans spans;    // Elements; empty for scalars.

  bool operator==(const Part& that) const
  {
    return resourceClass == that.resourceClass && amount == that.amount &&
        spans == that.spans;
  }
};


// The total amount of `copies` scalar objects, in thousandths; limited so that
// sums do not overflow.
int64_t countable(int64_t amount, int64_t copies = 1);

// Sorted by resource class, each at most once, amounts above 0.
using Parts = std::vector<Part>;

// Sorts, merges, and drops empty parts.
void normalize(Parts* parts);

void add(const Part& more, Parts* to);
void add(const Parts& more, Parts* to);

// Subtracts as much of `what` as there is.
void subtract(const Parts& what, Parts* from);

bool contains(const Parts& all, const Parts& some);

// The intersection.
Parts common(const Parts& one, const Parts& other);

// Null if absent.
const Part* find(const Parts& parts, uint32_t resourceClass);


// Amounts in thousandths by number: sorted, each number once.
using Amounts = std::vector<std::pair<uint32_t, int64_t>>;

int64_t amountOf(const Amounts& amounts, uint32_t number);

// Adds `delta` to the amount of a number; removes numbers whose amount becomes
// 0.
void change(uint32_t number, int64_t delta, Amounts* amounts);


// Interned strings, numbered from 0, with reference counts. Numbers are reused,
// so that an endless series of new names does not exhaust the master's memory.
class Names
{
public:
  uint32_t use(const std::string& name);
  void disuse(uint32_t number);

  const std::string& name(uint32_t number) const { return rows[number].name; }
  size_t size() const { return rows.size(); }

private:
  struct Row
  {
    std::string name;
    size_t uses = 0;
  };

  std::vector<Row> rows;
  std::vector<uint32_t> free;
  std::unordered_map<std::string, uint32_t> numbers;
};


// The agent or framework that a resource is attributed to; 0 for none. Consists
// of a handle and a serial number, so that the next owner of the handle is a
// different reporter.
using Reporter = uint64_t;

inline Reporter toReporter(uint32_t serial, bool isFramework, uint32_t number)
{
  return (uint64_t(serial) << 33) | (uint64_t(isFramework) << 32) | number;
}

inline bool isFramework(Reporter reporter)
{
  return (reporter >> 32) % 2 == 1;
}
inline uint32_t numberOf(Reporter reporter)
{
  return uint32_t(reporter);
}


// The resource classes in use. The adapter chooses the numbers, and may reuse
// one once the brain has forgotten it.
class ResourceClasses
{
public:
  struct Row
  {
    Traits traits;
    uint32_t name = 0;        // Index in `names`.
    uint32_t reservedTop = 0; // Top-level role, by number; 0 if unreserved.
    std::string reportedRole; // Reserved role as reported to the sidecar.
    Reporter reporter = 0;    // The first reporter.
    uint32_t uses = 0;
    bool defined = false;
  };

  // Returns false, without effect, if already defined.
  bool define(
      uint32_t resourceClass,
      const Traits& traits,
      uint32_t reservedTop,
      const std::string& reportedRole);

  // Changes the path under which the reserved role is reported, which may
  // differ between sessions.
  void setReportedRole(uint32_t resourceClass, const std::string& path)
  {
    rows[resourceClass].reportedRole = path;
  }

  bool defined(uint32_t resourceClass) const
  {
    return resourceClass < rows.size() && rows[resourceClass].defined;
  }

  bool defined(const Parts& parts) const;

  // The resource class must be defined.
  const Row& row(uint32_t resourceClass) const { return rows[resourceClass]; }
  const Traits& traits(uint32_t resourceClass) const
  {
    return rows[resourceClass].traits;
  }

  uint32_t end() const { return static_cast<uint32_t>(rows.size()); }

  // Records `reporter` for those resource classes of `parts` that have none.
  void setReporter(const Parts& parts, Reporter reporter);

  void use(uint32_t resourceClass) { ++rows[resourceClass].uses; }
  void disuse(uint32_t resourceClass);

  // Forgets unused resource classes and returns their numbers.
  std::vector<uint32_t> takeUnused();

  Names names;

private:
  std::vector<Row> rows;
  std::vector<uint32_t> idle; // Candidates for takeUnused.
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_BOOKS_RESOURCE_CLASSES_HPP__
