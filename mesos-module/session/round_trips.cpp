#include "session/round_trips.hpp"

#include <algorithm>
#include <cmath>

namespace allocator {
namespace session {

RoundTrips::RoundTrips(size_t _window) : window(std::max<size_t>(1, _window))
{
  times.reserve(window);
}


void RoundTrips::add(Time time)
{
  isOrdered = false;

  if (times.size() < window) {
    times.push_back(time);
    return;
  }

  times[next] = time;
  next = (next + 1) % window;
}


RoundTrips::Time RoundTrips::percentile(double share) const
{
  if (times.empty()) {
    return Time(0);
  }

  // The nearest-rank percentile.
  const double wanted = std::ceil(share * static_cast<double>(times.size()));
  const size_t rank =
      std::min(times.size(), static_cast<size_t>(std::max(1.0, wanted)));

  if (!isOrdered) {
    ordered = times;
    std::sort(ordered.begin(), ordered.end());
    isOrdered = true;
  }

  return ordered[rank - 1];
}

} // namespace session {
} // namespace allocator {
