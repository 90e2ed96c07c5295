#ifndef __ALLOCATOR_SESSION_FORWARD_CLOCK_HPP__
#define __ALLOCATOR_SESSION_FORWARD_CLOCK_HPP__

#include <cstdint>

namespace allocator {
namespace session {

// A clock for the books that never runs backwards. If the machine's time is set
// back, this clock continues from the previous time. Otherwise filters would
// last longer, and the sidecar's clock, which must not run backwards either,
// would stand still until the old time is reached again. Not thread-safe.
class ForwardClock
{
public:
  // The time of the books at machine time `machineMs`.
  int64_t at(int64_t machineMs)
  {
    if (machineMs < lastMs) {
      aheadMs += lastMs - machineMs;
    }
    lastMs = machineMs;
    return machineMs + aheadMs;
  }

private:
  int64_t lastMs = INT64_MIN;
  int64_t aheadMs = 0;
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_FORWARD_CLOCK_HPP__
