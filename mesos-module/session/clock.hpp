#ifndef __ALLOCATOR_SESSION_CLOCK_HPP__
#define __ALLOCATOR_SESSION_CLOCK_HPP__

#include <chrono>

namespace allocator {
namespace session {

// Deadlines and delays use the machine's steady clock. Do not mix it with the
// protocol's `clock_ms`, the master's clock, which a test may pause.
using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = std::chrono::milliseconds;

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_CLOCK_HPP__
