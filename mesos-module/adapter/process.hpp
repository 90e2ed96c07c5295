#ifndef __ALLOCATOR_ADAPTER_PROCESS_HPP__
#define __ALLOCATOR_ADAPTER_PROCESS_HPP__

#include <deque>
#include <memory>

#include <process/future.hpp>
#include <process/pid.hpp>
#include <process/process.hpp>

#include "adapter/fallback.hpp"
#include "adapter/holdings.hpp"
#include "adapter/maintenance.hpp"
#include "adapter/parameters.hpp"
#include "adapter/state.hpp"

#include "session/keeper.hpp"

namespace allocator {
namespace adapter {

class BuiltinMetrics;
class Metrics;

using OfferCallback = lambda::function<void(
    const FrameworkID&,
    const hashmap<std::string, hashmap<SlaveID, Resources>>&)>;

using InverseOfferCallback = lambda::function<void(
    const FrameworkID&,
    const hashmap<SlaveID, mesos::UnavailableResources>&)>;


// The actor behind the allocator. The master's calls, the sidecar's
// decisions and the clock come to it one at a time; nothing waits.
//
// Each fact is first booked here and then sent to the sidecar, so that the
// books never depend on it. A decision is only a wish: the gates say what
// becomes of it.
class AllocatorProcess : public process::Process<AllocatorProcess>,
                         private session::Keeper::Owner
{
public:
  explicit AllocatorProcess(const Parameters& parameters);
  ~AllocatorProcess() override;

  void initialize_(
      const mesos::allocator::Options& options,
      const OfferCallback& offerCallback,
      const InverseOfferCallback& inverseOfferCallback);

  void recover(
      int expectedAgentCount,
      const hashmap<std::string, mesos::Quota>& quotas);

  // process_frameworks.cpp.

  void addFramework(
      const FrameworkID& frameworkId,
      const FrameworkInfo& info,
      bool active,
      mesos::allocator::FrameworkOptions&& options);

  void removeFramework(const FrameworkID& frameworkId);
  void activateFramework(const FrameworkID& frameworkId);
  void deactivateFramework(const FrameworkID& frameworkId);

  void updateFramework(
      const FrameworkID& frameworkId,
      const FrameworkInfo& info,
      mesos::allocator::FrameworkOptions&& options);

  void requestResources(
      const FrameworkID& frameworkId,
      const std::vector<mesos::Request>& requests);

  void suppressOffers(
      const FrameworkID& frameworkId,
      const std::set<std::string>& roles);

  void reviveOffers(
      const FrameworkID& frameworkId,
      const std::set<std::string>& roles);

  void updateQuota(const std::string& role, const mesos::Quota& quota);
  void updateWeights(const std::vector<mesos::WeightInfo>& weights);

  // process_agents.cpp.

  void addSlave(
      const SlaveID& agentId,
      const SlaveInfo& info,
      const std::vector<SlaveInfo::Capability>& capabilities,
      const Option<Unavailability>& unavailability,
      const Resources& total,
      const hashmap<FrameworkID, Resources>& used);

  void removeSlave(const SlaveID& agentId);

  void updateSlave(
      const SlaveID& agentId,
      const SlaveInfo& info,
      const Option<Resources>& total,
      const Option<std::vector<SlaveInfo::Capability>>& capabilities);

  void addResourceProvider(
      const SlaveID& agentId,
      const Resources& total,
      const hashmap<FrameworkID, Resources>& used);

  void activateSlave(const SlaveID& agentId);
  void deactivateSlave(const SlaveID& agentId);
  void updateWhitelist(const Option<hashset<std::string>>& whitelist);

  void updateUnavailability(
      const SlaveID& agentId,
      const Option<Unavailability>& unavailability);

  void updateInverseOffer(
      const SlaveID& agentId,
      const FrameworkID& frameworkId,
      const Option<mesos::allocator::InverseOfferStatus>& status,
      const Option<mesos::Filters>& filters);

  process::Future<Maintenance::Statuses> getInverseOfferStatuses();

  // process_resources.cpp.

  void updateAllocation(
      const FrameworkID& frameworkId,
      const SlaveID& agentId,
      const Resources& offered,
      const std::vector<ResourceConversion>& conversions);

  process::Future<Nothing> updateAvailable(
      const SlaveID& agentId,
      const std::vector<mesos::Offer::Operation>& operations);

  void transitionOfferedToAllocated(
      const SlaveID& agentId,
      const Resources& resources);

  void recoverResources(
      const FrameworkID& frameworkId,
      const SlaveID& agentId,
      const Resources& resources,
      const Option<mesos::Filters>& filters,
      bool isAllocated);

  void pause();
  void resume();

protected:
  void finalize() override;

private:
  friend class Metrics;

  // process.cpp: cycles.

  void batch();
  void triggerAll();
  void trigger(const SlaveID& agentId);
  void runTriggered();
  void allocate(const std::vector<SlaveID>& candidates, bool all);
  void allocateHere(const std::vector<SlaveID>& candidates);
  void makeOffers(const hashmap<FrameworkID, Offers>& offers);
  bool served() const;
  void watch();
  void noticeSilence();
  void endRecovery();
  std::vector<SlaveID> allAgents() const;
  int64_t nowMs() const;
  int64_t allocationMs() const;

  // builtin_readings.cpp.
  void startBuiltinMetrics();

  // process_session.cpp: the sidecar.

  void welcomed(const wire::Welcome& welcome, size_t chunkBytesMax) override;
  void layOut(session::SnapshotWriter* writer);
  void connected(const wire::Welcome& welcome) override;
  void decided(const session::Decisions& decisions) override;
  void ended(const session::Keeper::End& end) override;

  void startSession();
  Verdict decide(
      const session::Decision& decision,
      uint64_t sequence,
      const QuotaBook& quotas,
      int64_t clockMs,
      Pair* pair) const;
  bool isBad(
      const session::Decision& decision,
      uint64_t sequence,
      wire::OutcomeReason reason) const;
  std::vector<int64_t> amountsOf(
      const Resources& given,
      const session::Decision& decision);
  void countBad(size_t bad);
  void closeBreaker();

  // process_snapshot.cpp.

  void rebindHandles(size_t kindsMax);
  HoldingsWriter collectHoldings();
  FiltersWriter collectFilters();
  void snapshotExclusions(session::SnapshotWriter* writer);

  // Sends an event, with the handles that are new. Gives the number of
  // the batch, or 0 where nobody listens.
  uint64_t send(wire::Event&& event);

  // Sends new kinds and roles.
  void define();

  // Sends what waits in `pending`: soon, or now.
  void sendSoon();
  void sendPendingNow();
  void sendPending();

  void sendHold(
      const FrameworkID& frameworkId,
      const SlaveID& agentId,
      const Resources& resources);

  void sendPause();

  // Evaluates offer constraints anew, for a framework on all agents or for
  // all frameworks on an agent, and sends what changed.
  void updateExclusions(const FrameworkID& frameworkId);
  void updateExclusions(const SlaveID& agentId);
  void evaluate(
      const FrameworkID& frameworkId,
      Framework* framework,
      const SlaveID& agentId,
      const Agent& agent,
      wire::Exclusions* changes);

  const Parameters parameters;

  Cluster state;
  Fallback fallback;
  Maintenance maintenance;

  OfferCallback offerCallback;
  InverseOfferCallback inverseOfferCallback;

  std::unique_ptr<session::Keeper> keeper;
  bool following = false; // A session has a snapshot, or is getting one.
  uint64_t failures = 0;  // Attempts since there was a session.

  Pending pending;
  bool sendingSoon = false;

  // Decisions that came while the master's calls had the books.
  std::deque<session::Decisions> unjudged;

  // When the next batch is due; and the time that the one under way
  // counts as run at.
  int64_t batchDueMs = 0;
  Option<int64_t> batchMs;

  hashset<SlaveID> candidates;
  bool candidatesAll = false;
  bool triggered = false;
  bool watching = false; // Whether a timer looks for the sidecar's silence.

  size_t expectedAgents = 0;

  // Bad decisions of the current window of the circuit breaker.
  size_t badDecisions = 0;
  int64_t badSinceMs = 0;
  bool breakerOpen = false;

  uint64_t breakerTrips = 0;
  uint64_t fallbackCycles = 0;
  uint64_t cycles = 0;
  uint64_t misfits = 0; // Operations that did not fit the books.

  std::unique_ptr<Metrics> metrics;
  std::unique_ptr<BuiltinMetrics> builtin;
};

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_PROCESS_HPP__
