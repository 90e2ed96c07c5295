#ifndef __ALLOCATOR_ADAPTER_PROCESS_HPP__
#define __ALLOCATOR_ADAPTER_PROCESS_HPP__

#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <mesos/maintenance/maintenance.hpp>
#include <mesos/quota/quota.hpp>

#include <process/future.hpp>
#include <process/http.hpp>
#include <process/pid.hpp>
#include <process/process.hpp>

#include "adapter/gauges.hpp"
#include "adapter/objects.hpp"
#include "adapter/types.hpp"

#include "brain/brain.hpp"

#include "session/forward_clock.hpp"
#include "session/keeper.hpp"
#include "session/parameters.hpp"

namespace allocator {
namespace adapter {

class BuiltinMetrics;
class Metrics;

using OfferCallback = lambda::function<void(const FrameworkID&, const Offers&)>;

using InverseOffers = hashmap<SlaveID, mesos::UnavailableResources>;

using InverseOfferCallback =
    lambda::function<void(const FrameworkID&, const InverseOffers&)>;


// The actor behind the allocator. It converts the master's calls, the sidecar's
// decisions and timers to events for the brain, one at a time and without
// blocking, and carries out the effects.
class AllocatorProcess : public process::Process<AllocatorProcess>,
                         private session::Keeper::Owner
{
public:
  using Status = mesos::allocator::InverseOfferStatus;
  using Statuses = hashmap<SlaveID, hashmap<FrameworkID, Status>>;

  explicit AllocatorProcess(const session::Parameters& parameters);
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

  // process_agents.cpp: agents and their resources.

  void addSlave(
      const SlaveID& agentId,
      SlaveInfo info,
      std::vector<SlaveInfo::Capability> capabilities,
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
      const Option<mesos::UnavailableResources>&,
      const Option<mesos::allocator::InverseOfferStatus>& status,
      const Option<mesos::Filters>& filters);

  process::Future<Statuses> getInverseOfferStatuses();

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

  // Pairs of role and agent for which offer constraints were evaluated.
  size_t evaluatedPairs() const { return evaluated; }

  // process_shadow.cpp: offers and operations of the deciding allocator.
  void offeredBeside(const FrameworkID& frameworkId, const Offers& offers);
  void convertedBeside(
      const SlaveID& agentId,
      const std::vector<mesos::Offer::Operation>& operations);

protected:
  void initialize() override;
  void finalize() override;

private:
  friend class Metrics;

  // Properties of an agent or framework that the brain does not keep.
  struct Agent
  {
    SlaveInfo info;
    std::vector<SlaveInfo::Capability> capabilities;
    Option<Unavailability> unavailability;

    // Whether this agent waits for the evaluation of offer constraints. Those
    // of frameworks in `excluding` are evaluated, in order from `nextFramework`
    // on (none: from the first).
    bool waits = false;
    Option<FrameworkID> nextFramework;
  };

  // A cached conversion of an offer's parts to objects, which is the most
  // expensive step of an offer. The cache helps because an idle agent is
  // offered as a whole repeatedly, and many agents are alike.
  struct Offered
  {
    brain::Parts parts;
    std::string role;
    uint64_t generation = 0;
    Resources resources;
  };

  struct Framework
  {
    std::set<std::string> roles;
    mesos::allocator::OfferConstraintsFilter constraints;
    std::string metrics; // Prefix of its metrics.

    // Whether its constraints wait for evaluation on the agents from handle
    // `nextAgent` on.
    bool waits = false;
    uint32_t nextAgent = 0;
  };

  // Runs the handler of a call or answer, and catches any exception. Returns an
  // error, or an empty string.
  std::string guard(const std::function<std::string()>& function);
  void doWithoutSidecar(const std::string& why);

  template <typename Event>
  std::string step(Event&& event)
  {
    const std::string wrong = brain.step(std::forward<Event>(event), nowMs());
    carryOut();
    return wrong;
  }

  // process_effects.cpp: carries out the brain's effects.
  void carryOut();
  void carryOut(brain::Message&& message);
  void takeEffects(brain::Ready* ready);
  void makeOffers();
  void makeOffersTogether();
  std::vector<brain::Offer> takeOtherCopies();
  void makeInverseOffers();
  void giveBack();
  void giveBackOffer();
  const Resources& toOffer(const brain::Offer& offer);
  void startSession();
  void wakeAt(int64_t ms);
  void wakeSoon();
  void wakeByAlarm();
  void wake();

  // Callbacks of the session, and helpers.
  void welcomed(const wire::Welcome& welcome, size_t chunkBytesMax) override;
  void connected(const wire::Welcome& welcome) override;
  void decided(session::Decisions&& decisions) override;
  void ended(const session::Keeper::End& end) override;

  void subscribe(
      const FrameworkID& frameworkId,
      const FrameworkInfo& info,
      mesos::allocator::FrameworkOptions&& settings);
  std::set<std::string> rolesOf(const FrameworkID& frameworkId) const;
  void showSuppressed(
      const FrameworkID& frameworkId,
      const std::set<std::string>& roles);
  std::map<std::string, bool> suppressedOf(
      const FrameworkID& frameworkId,
      const std::set<std::string>& roles) const;

  // process_constraints.cpp: evaluates offer constraints of one framework on
  // all agents, or of all frameworks in `excluding` on one agent. Most
  // frameworks never exclude an agent; their exclusions are only detected when
  // an agent is about to be offered.
  //
  // Evaluations are queued and each interval has a budget, because frameworks
  // and agents can cause them endlessly. Usually all of them run at once.
  void updateExclusions(const FrameworkID& frameworkId);
  void updateExclusions(const SlaveID& agentId);
  void evaluateSome();
  void evaluateFramework();
  void evaluateAgent();
  size_t evaluate(
      const FrameworkID& frameworkId,
      const SlaveID& agentId,
      brain::Exclude* event);
  void tell(const brain::Exclude& event, size_t pairs);
  void ignoreConstraints(const FrameworkID& frameworkId);
  bool isExcluded(const brain::Offer& offer);
  brain::Exclude holdBackExcluded();
  void reportHeldBack(const brain::Exclude& held);

  Statuses inverseOfferStatuses() const;

  // The number must be bound.
  SlaveID agentIdOf(uint32_t number) const;
  FrameworkID frameworkIdOf(uint32_t number) const;

  process::http::Response showBooks(
      const process::http::Request& request) const;

  std::vector<brain::Use> toUses(const hashmap<FrameworkID, Resources>& used);
  void showConsumed(
      const SlaveID& agentId,
      const std::vector<brain::RoleParts>& inUse = {});
  int64_t nowMs();
  int64_t sessionClockMs();

  const session::Parameters parameters;
  mesos::allocator::Options options;

  session::ForwardClock masterClock;
  brain::Brain brain;
  Objects objects;
  hashmap<SlaveID, Agent> agents;
  std::unordered_map<uint64_t, Offered> offered; // By hash.
  hashmap<FrameworkID, Framework> frameworks;
  std::set<FrameworkID> excluding; // Frameworks that ever excluded an agent.
  std::deque<FrameworkID> frameworksToEvaluate;
  std::deque<SlaveID> agentsToEvaluate;
  bool evaluating = false;
  size_t evaluated = 0; // Pairs evaluated so far.
  size_t pairsLeft = 0; // Budget until `pairsUntilMs`.
  int64_t pairsUntilMs = 0;

  OfferCallback offerCallback;
  InverseOfferCallback inverseOfferCallback;

  std::unique_ptr<session::Keeper> keeper;
  std::string notStarted; // Why a session could not be started.

  // Effects taken from the brain and not carried out yet: offers that are
  // booked but not made, and forgotten resource classes.
  std::vector<brain::Offer> unmade;
  std::vector<brain::InverseOffer> unmadeInverse;
  std::vector<uint32_t> toForget;

  Option<int64_t> cycleMs; // Clock of the cycle being requested.

  bool wakingSoon = false;
  int64_t alarmMs = INT64_MAX; // Earliest timer set.

  Gauges gauges;
  std::unique_ptr<Metrics> metrics;
  std::unique_ptr<BuiltinMetrics> builtin;
};

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_PROCESS_HPP__
