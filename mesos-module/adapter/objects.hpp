#ifndef __ALLOCATOR_ADAPTER_OBJECTS_HPP__
#define __ALLOCATOR_ADAPTER_OBJECTS_HPP__

#include <functional>

#include "adapter/types.hpp"

#include "brain/events.hpp"
#include "brain/books/resource_classes.hpp"

namespace allocator {
namespace adapter {

// From 0 to the largest amount of the protocol, whatever the value is.
int64_t thousandths(const mesos::Value::Scalar& scalar);

// A resource in thousandths; elements of ranges and sets are counted.
int64_t amountOf(const Resource& resource);

// What the brain knows of a resource.
brain::Traits traitsOf(const Resource& resource);


// Maps the resources of Mesos to the brain's resource classes and back. A
// resource class is an object without its value, or with it where it cannot be
// divided; whether two objects are of one resource class is for Mesos to say.
//
// What the brain names becomes objects that the master has named before,
// with other values. They are never made of anything else.
class Objects
{
public:
  using Define =
      std::function<void(uint32_t resourceClass, const brain::Traits& traits)>;

  // `define` is called for what is new.
  explicit Objects(const Define& define);

  brain::Parts toParts(const Resources& resources);

  // By the role that they are allocated to. A master always names it; what
  // names none is taken all the same, so it counts for whom it is reserved, or
  // for the default role.
  std::vector<brain::RoleParts> toRoleParts(const Resources& resources);

  // Allocated to nobody. Resource classes that are not known are left out.
  Resources toResources(const brain::Parts& parts) const;

  // Their numbers may name others now.
  void forget(const std::vector<uint32_t>& classes);

  // Changes whenever a number may name another.
  uint64_t generation() const { return generation_; }

private:
  struct Row
  {
    bool used = false;
    Resource object; // Its value is of no meaning where it can be divided.
    brain::Traits traits;
    uint64_t key = 0;
    std::vector<std::string> items; // Of a set, by number.
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

  // By name for each type of value, for most objects are bare; the others
  // by all that tells them apart, as a number that is hardly ever that of two.
  hashmap<std::string, uint32_t> bare[3];
  hashmap<uint64_t, std::vector<uint32_t>> special;
};

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_OBJECTS_HPP__
