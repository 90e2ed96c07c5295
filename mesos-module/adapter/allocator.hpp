#ifndef __ALLOCATOR_ADAPTER_ALLOCATOR_HPP__
#define __ALLOCATOR_ADAPTER_ALLOCATOR_HPP__

#include <memory>

#include <mesos/allocator/allocator.hpp>

#include "session/parameters.hpp"

namespace allocator {
namespace adapter {

// The allocator that the master calls; it dispatches every call to an actor.
//
// With `deciding`, that allocator decides and answers, and the actor runs in
// its shadow. Both get every call, the actor first, so that the actor knows the
// facts behind each offer before it receives the offer. The actor receives an
// offer before the master does, and therefore before any call of the master
// about it.
std::unique_ptr<mesos::allocator::Allocator> makeAllocator(
    const session::Parameters& parameters,
    std::unique_ptr<mesos::allocator::Allocator>&& deciding = nullptr);

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_ALLOCATOR_HPP__
