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

// A *resource class* is what is alike in objects of a resource that add up: all
// of a Mesos `Resource` but its value and its role. To the brain it is an
// opaque number, and the traits below; only the adapter knows the object.

enum class Type
{
  SCALAR,
  RANGES,
  SET,
};


// What decisions depend on.
struct Traits
{
  std::string name;
  Type type = Type::SCALAR;

  // The last role of its stack of reservations, and how many there are;
  // empty and 0 for what is not reserved.
  std::string reservedRole;
  uint32_t depth = 0;

  // Who made the last reservation; empty where nobody says so. No decision
  // depends on it.
  std::string principal;

  bool revocable = false;
  bool shared = false; // Many may hold it at a time; a copy each.
  wire::DiskForm form = wire::DISK_FORM_UNSPECIFIED;

  // What cannot be divided is counted in whole objects of this amount, in
  // thousandths; 0 where it can be divided.
  int64_t unit = 0;

  // What limits and guarantees of roles are about.
  bool quotaCounts() const
  {
    return type == Type::SCALAR && depth == 0 && !revocable;
  }
};


// An amount of a resource class.
struct Part
{
  uint32_t resourceClass;
  int64_t amount; // In thousandths; of ranges and sets the numbers count.
  Spans spans;    // Which numbers; empty for scalars.

  bool operator==(const Part& that) const
  {
    return resourceClass == that.resourceClass && amount == that.amount &&
        spans == that.spans;
  }
};


// What counts of a scalar of which there are so many objects, in thousandths.
int64_t countable(int64_t amount, int64_t copies = 1);

// Sorted by resource class, each once, every amount above 0.
using Parts = std::vector<Part>;

// Sorts and adds up; parts without an amount are dropped.
void normalize(Parts* parts);

void add(const Part& more, Parts* to);
void add(const Parts& more, Parts* to);

// Takes away what is there of `what`.
void subtract(const Parts& what, Parts* from);

bool contains(const Parts& all, const Parts& some);

// What both have.
Parts common(const Parts& one, const Parts& other);

// Null where there is nothing of the resource class.
const Part* find(const Parts& parts, uint32_t resourceClass);


// Amounts by some number, in thousandths: sorted, each number once.
using Amounts = std::vector<std::pair<uint32_t, int64_t>>;

int64_t amountOf(const Amounts& amounts, uint32_t number);

// Numbers of which nothing is left are dropped.
void change(uint32_t number, int64_t delta, Amounts* amounts);


// Texts with numbers, from 0. Whoever makes up names all the time must not make
// the master grow, so a number may name another text once nobody uses it.
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


// An agent or a framework that says which resources there are; 0 is nobody of
// them. It has the number of its bearer, and is none that comes after it.
using Teller = uint64_t;

inline Teller toTeller(uint32_t serial, bool isFramework, uint32_t number)
{
  return (uint64_t(serial) << 33) | (uint64_t(isFramework) << 32) | number;
}

inline bool isFramework(Teller teller)
{
  return (teller >> 32) % 2 == 1;
}
inline uint32_t numberOf(Teller teller)
{
  return uint32_t(teller);
}


// The resource classes that the books name. The adapter chooses the numbers,
// and may choose one again once the brain has forgotten it.
class ResourceClasses
{
public:
  struct Row
  {
    Traits traits;
    uint32_t name = 0;        // Of the resource, in `names`.
    uint32_t reservedTop = 0; // The top-level role, by number; 0 for none.
    std::string reservedTold; // The role as a sidecar is told it.
    Teller teller = 0;        // Who told of it first.
    uint32_t uses = 0;
    bool defined = false;
  };

  // Gives false, and changes nothing, where the number is defined.
  bool define(
      uint32_t resourceClass,
      const Traits& traits,
      uint32_t reservedTop,
      const std::string& reservedTold);

  // With a new session roles may be told otherwise.
  void tellReserved(uint32_t resourceClass, const std::string& told)
  {
    rows[resourceClass].reservedTold = told;
  }

  bool defined(uint32_t resourceClass) const
  {
    return resourceClass < rows.size() && rows[resourceClass].defined;
  }

  bool defined(const Parts& parts) const;

  // Of a resource class that is defined.
  const Row& row(uint32_t resourceClass) const { return rows[resourceClass]; }
  const Traits& traits(uint32_t resourceClass) const
  {
    return rows[resourceClass].traits;
  }

  // One more than the largest number.
  uint32_t end() const { return static_cast<uint32_t>(rows.size()); }

  // Who was the first to tell of them is noted.
  void tell(const Parts& parts, Teller teller);

  void use(uint32_t resourceClass) { ++rows[resourceClass].uses; }
  void disuse(uint32_t resourceClass);

  // Resource classes that nobody uses any more; their numbers are free now.
  std::vector<uint32_t> takeUnused();

  Names names;

private:
  std::vector<Row> rows;
  std::vector<uint32_t> idle; // Defined or disused since the last call.
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_BOOKS_RESOURCE_CLASSES_HPP__
