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


// How long to wait before attempt number `attempt` (from 1) to reconnect.
//
// The bound doubles from `initial` with each attempt until `max`; the
// delay lies between half of it and the whole. It depends on nothing but
// the arguments, so a test can name it, and masters that differ in their
// seeds do not call a restarted sidecar in step.
Duration backoffDelay(uint32_t attempt, uint64_t seed, const Backoff& backoff);

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_BACKOFF_HPP__
