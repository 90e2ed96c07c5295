#ifndef __ALLOCATOR_ADAPTER_CHOP_HPP__
#define __ALLOCATOR_ADAPTER_CHOP_HPP__

#include "adapter/handles.hpp"
#include "adapter/types.hpp"

namespace allocator {
namespace adapter {

// Takes at most `amount` thousandths of a resource. What is no multiple
// of what can be taken is rounded down: whole elements of ranges and
// sets, whole volumes that cannot be split. None where nothing is left.
Option<Resource> take(const Resource& resource, int64_t amount);

// Takes amounts by kind out of `pool`, whose own objects are shrunk; no
// object is made of anything else. An amount is made up of as many objects
// of its kind as it takes; only one that can be divided is split. A kind
// that is not in the pool, or is not known at all, gives nothing. At most
// one copy of a shared volume is taken. What could not be taken is left in
// `wanted`.
Resources chop(const Resources& pool, const KindTable& kinds, Amounts* wanted);

// Takes unreserved, non-revocable scalars down to at most these amounts
// by name; other resources, and names that have no bound, stay whole.
Resources bound(const Resources& resources, const Quantities& most);

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_CHOP_HPP__
