#ifndef __ALLOCATOR_BRAIN_DECIDING_COMPARISON_HPP__
#define __ALLOCATOR_BRAIN_DECIDING_COMPARISON_HPP__

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace allocator {
namespace brain {

// Compares the sidecar's decisions with the offers of Mesos's own allocator:
// which frameworks get something of which agent. Ignores amounts and roles.
//
// The two do not decide at the same moment. A decision without a matching offer
// waits for one until it expires.
class Comparison
{
public:
  struct Stats
  {
    uint64_t offers = 0; // By the other allocator, while connected.

    // Decisions by the frameworks to which the other allocator offered
    // resources of the agent: also the same one, only others, or none.
    uint64_t same = 0;
    uint64_t other = 0;
    uint64_t none = 0;
  };

  // A cycle is asked for; offers from now on belong to it.
  void ask();

  // The sidecar decided on an agent for a framework. A decision that would not
  // pass the gates is compared only with offers since `ask`.
  void
  decide(uint32_t agent, uint32_t framework, bool passes, int64_t expiresMs);

  // The other allocator made an offer. `asked`: while an answer to a cycle is
  // outstanding.
  void offer(uint32_t agent, uint32_t framework, bool asked);

  // Counts decisions that have waited long enough.
  void expire(int64_t nowMs);

  // The number is about to be reused.
  void forgetAgent(uint32_t agent);
  void forgetFramework(uint32_t framework);

  const Stats& stats() const { return counted; }

private:
  // Beyond this, decisions are neither kept nor counted.
  static constexpr size_t WISHES_MAX = 1 << 20;

  struct Wish
  {
    uint32_t framework;
    int64_t expiresMs;
    bool contested; // The agent was offered to another framework.
  };

  // By agent: waiting decisions, and frameworks offered something since `ask`.
  std::unordered_map<uint32_t, std::vector<Wish>> wishes;
  std::unordered_map<uint32_t, std::vector<uint32_t>> offered;
  size_t waiting = 0;

  Stats counted;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_DECIDING_COMPARISON_HPP__
