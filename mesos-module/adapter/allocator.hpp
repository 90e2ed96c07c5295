#ifndef __ALLOCATOR_ADAPTER_ALLOCATOR_HPP__
#define __ALLOCATOR_ADAPTER_ALLOCATOR_HPP__

#include <memory>

#include <mesos/allocator/allocator.hpp>

#include "session/parameters.hpp"

namespace allocator {
namespace adapter {

// What the master calls: it has an actor do what it is told.
//
// Where `deciding` is given, that allocator decides and answers, and the
// actor is in its shadow. Both hear every call, the actor first; so whatever
// the other one offers, the actor has heard before of what that was decided
// on. Each offer is told to the actor before the master has it; so whatever
// the master says of the offer, the actor hears later.
std::unique_ptr<mesos::allocator::Allocator> makeAllocator(
    const session::Parameters& parameters,
    std::unique_ptr<mesos::allocator::Allocator>&& deciding = nullptr);

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_ALLOCATOR_HPP__
