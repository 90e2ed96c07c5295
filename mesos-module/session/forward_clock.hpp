#ifndef __ALLOCATOR_SESSION_FORWARD_CLOCK_HPP__
#define __ALLOCATOR_SESSION_FORWARD_CLOCK_HPP__

#include <cstdint>

namespace allocator {
namespace session {

// The master's clock as the books have it: it never runs backwards. Where
// somebody sets the machine's time back, it goes on from where it was: else
// filters would last longer, and the sidecar's clock, which must not run
// backwards either, would stand still for as long. Not for several threads.
class ForwardClock
{
public:
  // The time of the books when the machine's clock says `machineMs`.
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
