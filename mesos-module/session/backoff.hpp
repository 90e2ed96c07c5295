#ifndef __ALLOCATOR_SESSION_BACKOFF_HPP__
#define __ALLOCATOR_SESSION_BACKOFF_HPP__

#include <cstdint>

#include "session/clock.hpp"

namespace allocator {
namespace session {

struct Backoff
{
  Duration initial;
  Duration max;
};


// The delay before reconnection attempt `attempt` (from 1).
//
// The bound doubles from `initial` with each attempt, up to `max`. The delay
// lies between half the bound and the bound. It depends only on the arguments,
// so tests can predict it; different seeds prevent masters from reconnecting to
// a restarted sidecar at the same moment.
Duration backoffDelay(uint32_t attempt, uint64_t seed, const Backoff& backoff);

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_BACKOFF_HPP__
