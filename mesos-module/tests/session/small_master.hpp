#ifndef __ALLOCATOR_TESTS_SMALL_MASTER_HPP__
#define __ALLOCATOR_TESTS_SMALL_MASTER_HPP__

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "session/decisions.hpp"
#include "session/snapshot.hpp"

namespace allocator {
namespace session {

// A master in small: agents with cpus and mem, frameworks in one role
// each, an exact ledger, and gates that a decision has to pass. From a
// seed its frameworks accept and decline, tasks end, agents and frameworks
// come and go.
class SmallMaster
{
public:
  struct Options
  {
    uint32_t agents = 10;
    uint32_t frameworks = 4;
    uint32_t seed = 1;
    bool churn = true; // Agents and frameworks come and go.

    // Refusals that every snapshot holds: of all that an agent has, by each
    // framework in turn.
    uint32_t filters = 0;
    int64_t filtersUntilMs = int64_t(1) << 50;
  };

  // What is sent to a sidecar, and with which batch it goes (0: with none).
  using Send = std::function<uint64_t(wire::Event&&)>;

  explicit SmallMaster(const Options& options);

  void describe(SnapshotWriter* writer);

  // Makes offers of decisions, as far as the gates and the ledger allow.
  Outcomes offer(const Decisions& decisions);

  // Lets one interval pass for frameworks, tasks and agents.
  void live(const Send& send);

  // Gives back what is offered or used, and lets everything return.
  void settle(const Send& send);

  // What is wrong with the ledger; empty where nothing is.
  std::string check() const;

  // Everything that is held, as JSON.
  std::string holdings() const;

  uint64_t offers() const { return offers_; }

private:
  static constexpr size_t KINDS = 2;

  using Amounts = std::array<int64_t, KINDS>;

  struct Agent
  {
    bool known = false;
    Amounts capacity;
    Amounts free;

    // A decision that answers an earlier batch means another bearer of
    // the handle.
    uint64_t since = 0;
  };

  struct Framework
  {
    bool active = true;
    uint32_t role;
  };

  struct Holding
  {
    uint32_t framework;
    uint32_t agent;
    Amounts amounts;
    bool used;
  };

  wire::OutcomeReason gate(const Decision& decision, uint64_t sequence) const;
  void give(const Decision& decision, Outcomes* outcomes);
  void describeFilters(SnapshotWriter* writer) const;
  wire::Holdings toWire(const Holding& holding) const;
  wire::Agent toWire(uint32_t agent) const;
  wire::Framework toWireFramework(uint32_t framework) const;

  void release(const Holding& holding, int64_t refuseMs, const Send& send);
  void addAgent(uint32_t agent, const Send& send);
  void removeAgent(uint32_t agent, const Send& send);
  void activate(uint32_t framework, bool active, const Send& send);

  const Options options;
  std::mt19937 random;

  // Both by handle; the first is not used.
  std::vector<Agent> agents;
  std::vector<Framework> frameworks;
  std::vector<Holding> held;
  uint64_t offers_ = 0;
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_SMALL_MASTER_HPP__
