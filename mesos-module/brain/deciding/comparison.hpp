#ifndef __ALLOCATOR_BRAIN_DECIDING_COMPARISON_HPP__
#define __ALLOCATOR_BRAIN_DECIDING_COMPARISON_HPP__

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace allocator {
namespace brain {

// Compares the sidecar's decisions with the offers of Mesos's own allocator:
// which frameworks get resources of which agent. Ignores amounts and roles.
//
// The sidecar and the other allocator do not decide at the same moment. A
// decision without a matching offer waits for one until the decision expires.
class Comparison
{
public:
  struct Stats
  {
    uint64_t offers = 0; // By the other allocator, while connected.

    // Decisions, by whether the other allocator offered resources of the agent
    // to the same framework, only to others, or to none.
    uint64_t same = 0;
    uint64_t other = 0;
    uint64_t none = 0;
  };

  // Call when a cycle is requested; later offers belong to it.
  void ask();

  // Call when the sidecar decides to offer an agent to a framework. A decision
  // that would not pass the gates is compared only with offers since `ask`.
  void
  decide(uint32_t agent, uint32_t framework, bool passes, int64_t expiresMs);

  // Call when the other allocator makes an offer. `asked`: while an answer to a
  // cycle is outstanding.
  void offer(uint32_t agent, uint32_t framework, bool asked);

  // Counts decisions that have waited long enough.
  void expire(int64_t nowMs);

  // Call before the number is reused.
  void forgetAgent(uint32_t agent);
  void forgetFramework(uint32_t framework);

  const Stats& stats() const { return counted; }

private:
  // Maximum number of waiting decisions; further ones are neither kept nor
  // counted.
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
