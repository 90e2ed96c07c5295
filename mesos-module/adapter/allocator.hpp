#ifndef __ALLOCATOR_ADAPTER_ALLOCATOR_HPP__
#define __ALLOCATOR_ADAPTER_ALLOCATOR_HPP__

#include <memory>

#include <mesos/allocator/allocator.hpp>

#include "session/parameters.hpp"

namespace allocator {
namespace adapter {

// Makes the allocator that the master calls; it dispatches every call to an
// actor.
//
// With `deciding` it runs in shadow mode: `deciding` makes the offers and
// answers the master's calls. Both get every call, the actor first, so that the
// actor knows the facts behind each offer of `deciding` before it receives the
// offer. The actor receives an offer before the master does, and therefore
// before any call of the master about that offer.
std::unique_ptr<mesos::allocator::Allocator> makeAllocator(
    const session::Parameters& parameters,
    std::unique_ptr<mesos::allocator::Allocator>&& deciding = nullptr);

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_ALLOCATOR_HPP__
