#ifndef __ALLOCATOR_SESSION_ROUND_TRIPS_HPP__
#define __ALLOCATOR_SESSION_ROUND_TRIPS_HPP__

#include <chrono>
#include <cstddef>
#include <vector>

namespace allocator {
namespace session {

// Percentiles of the most recent round trips.
class RoundTrips
{
public:
  using Time = std::chrono::microseconds;

  explicit RoundTrips(size_t window = 1024);

  void add(Time time);

  // The smallest time that the fraction `share` (0 to 1) of the round trips
  // does not exceed; 0 if there are none.
  Time percentile(double share) const;

private:
  const size_t window;

  std::vector<Time> times;
  size_t next = 0;

  // Sorted cache, since a scrape reads several percentiles.
  mutable std::vector<Time> ordered;
  mutable bool isOrdered = true;
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_ROUND_TRIPS_HPP__
