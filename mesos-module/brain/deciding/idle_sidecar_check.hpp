#ifndef __ALLOCATOR_BRAIN_DECIDING_IDLE_SIDECAR_CHECK_HPP__
#define __ALLOCATOR_BRAIN_DECIDING_IDLE_SIDECAR_CHECK_HPP__

#include <cstddef>
#include <cstdint>

#include "brain/books/cluster.hpp"
#include "brain/deciding/gates.hpp"

namespace allocator {
namespace brain {

// Detects a sidecar that answers but does not offer resources that a framework
// could use.
//
// An interval is barren if the sidecar answered, none of its decisions became
// an offer, no answer had `holds_back` set, and the gates allow an offer of
// free resources to some framework. Offers from an answer with bad rows do not
// count, so one tiny grant does not excuse an otherwise invalid answer.
//
// The search for such a framework runs only if nothing was offered, and its
// work per interval is bounded, so it may span several intervals. While it has
// not ended, an interval counts neither as barren nor as fruitful.
class IdleSidecarCheck
{
public:
  // Call for each complete answer. `all`: it answers a cycle over all agents.
  void answered(bool all, bool gave, bool holdsBack);

  void endInterval(const Cluster& cluster, int64_t nowMs);

  // Discards answers of the ended session.
  void forgetSession();

  // Consecutive barren intervals; the pair found that could be offered free
  // resources.
  uint64_t intervals() const { return intervals_; }
  const Pair& willing() const { return pair; }

private:
  enum class Found
  {
    SOMEBODY,
    NOBODY,
    UNKNOWN, // The search is not finished.
  };

  Found look(const Cluster& cluster, int64_t nowMs);
  Found lookAtAgent(const Cluster& cluster, int64_t nowMs, size_t* work);
  void nextAgent();

  bool isAnswered = false;
  bool isFruitful = false;
  uint64_t intervals_ = 0;

  // Where the next search begins: the pair found last, or the first one not
  // checked yet. `isWhole`: the agent has been checked from its first pair on.
  // `agentsWithout`: how many agents in a row had no pair that could be offered
  // resources.
  Pair pair;
  bool isWhole = true;
  uint64_t agentsWithout = 0;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_DECIDING_IDLE_SIDECAR_CHECK_HPP__
