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

// A small master: agents with cpus and mem, frameworks in one role each, an
// exact ledger, and gates for decisions. Frameworks accept and decline, tasks
// end, and agents and frameworks come and go, at random from a seed.
class SmallMaster
{
public:
  struct Options
  {
    uint32_t agents = 10;
    uint32_t frameworks = 4;
    uint32_t seed = 1;
    bool churn = true; // Agents and frameworks come and go.

    // The number of filters in every snapshot. Each is for a whole agent; the
    // frameworks take turns.
    uint32_t filters = 0;
    int64_t filtersUntilMs = int64_t(1) << 50;
  };

  // Sends an event; returns the number of its batch, 0 for none.
  using Send = std::function<uint64_t(wire::Event&&)>;

  explicit SmallMaster(const Options& options);

  void describe(SnapshotWriter* writer);

  // Offers what the decisions give, if they pass the gates and fit the ledger.
  Outcomes offer(const Decisions& decisions);

  // Simulates one interval of frameworks, tasks and agents.
  void live(const Send& send);

  // Rescinds all offers and ends all tasks, so that nothing is held any more.
  void settle(const Send& send);

  // Returns an inconsistency of the ledger, or an empty string.
  std::string check() const;

  // All holdings as JSON.
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

    // The batch that reported this owner of the handle. A decision that answers
    // an earlier batch refers to another owner.
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

  // By handle; element 0 is unused.
  std::vector<Agent> agents;
  std::vector<Framework> frameworks;
  std::vector<Holding> held;
  uint64_t offers_ = 0;
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_SMALL_MASTER_HPP__
