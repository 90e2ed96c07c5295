#ifndef __ALLOCATOR_BRAIN_DECIDING_COMPARISON_HPP__
#define __ALLOCATOR_BRAIN_DECIDING_COMPARISON_HPP__

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace allocator {
namespace brain {

// Compares what the sidecar decides with the offers that Mesos's own
// allocator makes meanwhile: both give an agent to frameworks. Amounts and
// roles are not looked at.
//
// The two do not decide at the same moment. A decision that no offer is like
// waits for one, until it expires; then it says what was not made.
class Comparison
{
public:
  struct Stats
  {
    uint64_t offers = 0; // Of the other allocator, while a sidecar was there.

    // Decisions: the other one gave the framework something of the agent, too;
    // it gave of the agent to others only; it gave nothing of the agent.
    uint64_t same = 0;
    uint64_t other = 0;
    uint64_t none = 0;
  };

  // A cycle is asked for. Offers from now on are made of what it is about.
  void ask();

  // Something was decided of an agent for a framework. What the gates would
  // not pass is compared with offers since the cycle was asked for, and does
  // not wait for later ones.
  void
  decide(uint32_t agent, uint32_t framework, bool passes, int64_t expiresMs);

  // The other allocator offered something of the agent to the framework;
  // `asked`: while the answer to a cycle is awaited.
  void offer(uint32_t agent, uint32_t framework, bool asked);

  // Counts what has waited for long enough.
  void expire(int64_t nowMs);

  // Their numbers are to name others.
  void forgetAgent(uint32_t agent);
  void forgetFramework(uint32_t framework);

  const Stats& stats() const { return counted; }

private:
  // More do not wait; they are not counted.
  static constexpr size_t WISHES_MAX = 1 << 20;

  struct Wish
  {
    uint32_t framework;
    int64_t expiresMs;
    bool contested; // Others were offered something of the agent.
  };

  // By agent: what waits, and who was offered something since the ask.
  std::unordered_map<uint32_t, std::vector<Wish>> wishes;
  std::unordered_map<uint32_t, std::vector<uint32_t>> offered;
  size_t waiting = 0;

  Stats counted;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_DECIDING_COMPARISON_HPP__
