#include "session/backoff.hpp"

#include <algorithm>

namespace allocator {
namespace session {
namespace {

// One step of splitmix64 (Steele, Lea, Flood. "Fast Splittable
// Pseudorandom Number Generators." OOPSLA 2014).
uint64_t mix(uint64_t x)
{
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

} // namespace {


Duration backoffDelay(uint32_t attempt, uint64_t seed, const Backoff& backoff)
{
  const int64_t max = std::max<int64_t>(backoff.max.count(), 0);

  int64_t bound = std::min(std::max<int64_t>(backoff.initial.count(), 0), max);

  for (uint32_t i = 1; i < attempt && bound > 0 && bound < max; ++i) {
    bound = bound > max / 2 ? max : 2 * bound;
  }

  const int64_t least = bound - bound / 2;
  const uint64_t choices = static_cast<uint64_t>(bound - least) + 1;

  return Duration(
      least + static_cast<int64_t>(mix(mix(seed) ^ attempt) % choices));
}

} // namespace session {
} // namespace allocator {
