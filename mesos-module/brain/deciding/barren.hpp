#ifndef __ALLOCATOR_BRAIN_DECIDING_BARREN_HPP__
#define __ALLOCATOR_BRAIN_DECIDING_BARREN_HPP__

#include <cstddef>
#include <cstdint>

#include "brain/books/cluster.hpp"
#include "brain/deciding/gates.hpp"

namespace allocator {
namespace brain {

// Whether a sidecar that answers leaves lie what somebody would take.
//
// An interval is barren where answers came, nothing of them was offered, none
// of them said that the sidecar means to, and the gates would let something
// that is free pass to somebody. Offers of an answer with bad rows count for
// nothing: one tiny grant is no excuse for nonsense.
//
// Only where nothing was offered somebody is looked for, by as much work as is
// due at a time; so it may take several intervals until it is known. Those
// count neither as barren nor as fruitful.
class Barren
{
public:
  // A whole answer has come, to a cycle over all agents or some of them.
  void answered(bool all, bool gave, bool holdsBack);

  // An interval is over.
  void endInterval(const Cluster& cluster, int64_t nowMs);

  // What was said is of an earlier session.
  void forgetSession();

  // How many in a row were barren, and who would have taken what is free.
  uint64_t intervals() const { return intervals_; }
  const Pair& willing() const { return pair; }

private:
  enum class Found
  {
    SOMEBODY,
    NOBODY,
    UNKNOWN, // So far.
  };

  Found look(const Cluster& cluster, int64_t nowMs);
  Found lookAtAgent(const Cluster& cluster, int64_t nowMs, size_t* work);
  void nextAgent();

  bool isAnswered = false;
  bool isFruitful = false;
  uint64_t intervals_ = 0;

  // Where to look next: who is there was found, or comes first of those that
  // were not looked at; whether the agent was from its beginning. And how many
  // agents in a row have nobody.
  Pair pair;
  bool isWhole = true;
  uint64_t agentsWithout = 0;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_DECIDING_BARREN_HPP__
