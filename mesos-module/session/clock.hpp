#ifndef __ALLOCATOR_SESSION_CLOCK_HPP__
#define __ALLOCATOR_SESSION_CLOCK_HPP__

#include <chrono>

namespace allocator {
namespace session {

// Deadlines and delays are measured on the machine's steady clock. What
// the sidecar is told is the master's clock (`clock_ms`), which a test
// may pause; the two never meet.
using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = std::chrono::milliseconds;

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_CLOCK_HPP__
