#ifndef __ALLOCATOR_BRAIN_STATS_HPP__
#define __ALLOCATOR_BRAIN_STATS_HPP__

#include <cstddef>
#include <cstdint>
#include <vector>

#include "brain/deciding/comparison.hpp"

#include "session/stats.hpp"

namespace allocator {
namespace brain {

// What the brain counts, and how it stands.
struct Stats
{
  uint64_t cycles = 0;
  uint64_t fallbackCycles = 0;
  uint64_t fallbackOffers = 0;

  // When it began to decide by itself the last time, and when a sidecar did
  // again; 0: it never did, it still does.
  int64_t fallbackSinceMs = 0;
  int64_t fallbackUntilMs = 0;

  // How many intervals in a row a sidecar that answers left lie what somebody
  // would take, and how often the module took a turn therefore.
  uint64_t barrenIntervals = 0;
  uint64_t barrenTurns = 0;

  uint64_t misfits = 0;  // Facts that did not fit the books.
  uint64_t setAside = 0; // Words of frameworks and agents that were not taken.
  uint64_t breakerTrips = 0;
  bool breakerOpen = false;
  bool following = false; // A sidecar has a snapshot, or is getting one.
  bool connected = false; // It decides.
  size_t agents = 0;
  size_t frameworks = 0;
  size_t filters = 0;
  size_t kinds = 0;

  bool shadow = false; // Another allocator decides; what came of comparing.
  Comparison::Stats compared;
};


// All of it that is published.
const std::vector<session::Stat<Stats>>& published();

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_STATS_HPP__
