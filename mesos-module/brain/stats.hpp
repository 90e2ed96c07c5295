#ifndef __ALLOCATOR_BRAIN_STATS_HPP__
#define __ALLOCATOR_BRAIN_STATS_HPP__

#include <cstddef>
#include <cstdint>
#include <vector>

#include "brain/deciding/comparison.hpp"

#include "session/stats.hpp"

namespace allocator {
namespace brain {

// Counters and gauges of the brain.
struct Stats
{
  uint64_t cycles = 0;
  uint64_t fallbackCycles = 0;
  uint64_t fallbackOffers = 0;

  // When the module last began to decide by itself (0: never), and when a
  // sidecar took over again (0: it has not).
  int64_t fallbackSinceMs = 0;
  int64_t fallbackUntilMs = 0;

  // Consecutive barren intervals, and how often the module decided a cycle
  // because of them.
  uint64_t barrenIntervals = 0;
  uint64_t barrenTurns = 0;

  uint64_t misfits = 0;  // Facts that contradicted the books.
  uint64_t setAside = 0; // Ignored input of frameworks and agents.
  uint64_t breakerTrips = 0;
  bool breakerOpen = false;
  bool following = false; // The sidecar has a snapshot or is getting one.
  bool connected = false; // The sidecar decides.
  size_t agents = 0;
  size_t frameworks = 0;
  size_t filters = 0;
  size_t kinds = 0;

  bool shadow = false; // Shadow mode, and its comparison.
  Comparison::Stats compared;
};


// The members that are published as metrics or sent to the sidecar.
const std::vector<session::Stat<Stats>>& published();

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_STATS_HPP__
