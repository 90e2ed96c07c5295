#ifndef __ALLOCATOR_ADAPTER_OBJECTS_HPP__
#define __ALLOCATOR_ADAPTER_OBJECTS_HPP__

#include <functional>

#include "adapter/types.hpp"

#include "brain/events.hpp"
#include "brain/books/resource_classes.hpp"

namespace allocator {
namespace adapter {

// Converts to thousandths. Values outside the protocol's range of amounts
// become its nearest bound, 0 or `AMOUNT_MAX`.
int64_t thousandths(const mesos::Value::Scalar& scalar);

// Amount in thousandths; for ranges and sets, the number of elements.
int64_t amountOf(const Resource& resource);

brain::Traits traitsOf(const Resource& resource);


// Maps Mesos's resources to the brain's resource classes and back. A resource
// class is an object without its value, or with its value if indivisible;
// Mesos's own comparison decides whether two objects are of the same class.
//
// The objects it returns are copies of objects that the master has named, with
// other values.
class Objects
{
public:
  using Define =
      std::function<void(uint32_t resourceClass, const brain::Traits& traits)>;

  // Calls `define` for each new resource class.
  explicit Objects(const Define& define);

  brain::Parts toParts(const Resources& resources);

  // Groups parts by the role of their allocation. A master always sets it;
  // otherwise the role of the reservation counts, or the default role.
  std::vector<brain::RoleParts> toRoleParts(const Resources& resources);

  // Returns resources without an allocation. Leaves out unknown resource
  // classes.
  Resources toResources(const brain::Parts& parts) const;

  // Forgets resource classes, whose numbers may be reused from now on.
  void forget(const std::vector<uint32_t>& classes);

  // Changes whenever `forget` releases numbers, so that caches can detect
  // reused ones.
  uint64_t generation() const { return generation_; }

private:
  struct Row
  {
    bool used = false;
    Resource object; // If divisible, its value is meaningless.
    brain::Traits traits;
    uint64_t key = 0;
    std::vector<std::string> items; // Items of a set, by number.
    hashmap<std::string, uint64_t> numbers;
    size_t itemBytes = 0;
  };

  uint32_t bind(const Resource& resource);
  uint32_t append(const Resource& resource, uint64_t key);
  bool isSame(const Row& row, const Resource& resource) const;
  void add(const Resource& resource, int64_t copies, brain::Parts* parts);
  brain::Spans spansOf(Row* row, const Resource& resource);
  bool number(Row* row, const std::string& item, uint64_t* result);
  void addTo(const brain::Part& part, Resources* resources) const;

  const Define define;
  const uint64_t seed;
  std::vector<Row> rows;
  std::vector<uint32_t> free;
  uint64_t generation_ = 0;
  size_t itemBytes = 0; // Of all rows.

  // `bare`: objects without distinguishing fields (most of them), by type and
  // name. `special`: the others, by hash.
  hashmap<std::string, uint32_t> bare[3];
  hashmap<uint64_t, std::vector<uint32_t>> special;
};

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_OBJECTS_HPP__
