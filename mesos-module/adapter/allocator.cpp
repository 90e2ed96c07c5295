#include "adapter/allocator.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <mesos/maintenance/maintenance.hpp>

#include <process/dispatch.hpp>
#include <process/process.hpp>

#include "adapter/process.hpp"
#include "adapter/types.hpp"

using std::set;
using std::string;
using std::vector;

using mesos::allocator::Allocator;
using mesos::allocator::FrameworkOptions;

using process::Future;

namespace allocator {
namespace adapter {
namespace {

// The method of this name of the actor, and that of the deciding allocator.
#define BOTH(method) &AllocatorProcess::method, &Allocator::method


// Copies the options for the actor, without offer constraints: these cannot be
// copied, and the deciding allocator needs them.
FrameworkOptions withoutConstraints(const FrameworkOptions& options)
{
  FrameworkOptions result;
  result.suppressedRoles = options.suppressedRoles;
  return result;
}


// Each method copies its arguments and dispatches to the actor;
// `updateWhitelist` may be called from another thread.
class SidecarAllocator : public Allocator
{
private:
  template <typename Method, typename... Arguments>
  auto dispatch(Method method, Arguments&&... arguments) const
  {
    return process::dispatch(
        actor->self(), method, std::forward<Arguments>(arguments)...);
  }

  template <typename Ours, typename Others, typename... Arguments>
  void tell(Ours ours, Others others, const Arguments&... arguments)
  {
    dispatch(ours, arguments...);
    if (deciding != nullptr) {
      (deciding.get()->*others)(arguments...);
    }
  }

public:
  SidecarAllocator(
      const session::Parameters& parameters,
      std::unique_ptr<Allocator>&& _deciding)
    : actor(new AllocatorProcess(parameters)), deciding(std::move(_deciding))
  {
    process::spawn(actor.get());
  }

  ~SidecarAllocator() override
  {
    // Destroy `deciding` first, because it dispatches its offers to the actor.
    deciding.reset();
    process::terminate(actor.get());
    process::wait(actor.get());
  }

  void initialize(
      const mesos::allocator::Options& options,
      const OfferCallback& offerCallback,
      const InverseOfferCallback& inverseOfferCallback) override
  {
    const auto initialize = &AllocatorProcess::initialize_;

    if (deciding == nullptr) {
      dispatch(initialize, options, offerCallback, inverseOfferCallback);
      return;
    }

    dispatch(
        initialize,
        options,
        OfferCallback([](const FrameworkID&, const Offers&) {}),
        InverseOfferCallback([](const FrameworkID&, const InverseOffers&) {}));

    deciding->initialize(
        options,
        [=](const FrameworkID& frameworkId, const Offers& offers) {
          dispatch(&AllocatorProcess::offeredBeside, frameworkId, offers);
          offerCallback(frameworkId, offers);
        },
        inverseOfferCallback);
  }

  void recover(
      const int expectedAgentCount,
      const hashmap<string, mesos::Quota>& quotas) override
  {
    tell(BOTH(recover), expectedAgentCount, quotas);
  }

  void addFramework(
      const FrameworkID& frameworkId,
      const FrameworkInfo& info,
      const hashmap<SlaveID, Resources>& used,
      bool active,
      FrameworkOptions&& options) override
  {
    const auto add = &AllocatorProcess::addFramework;

    if (deciding == nullptr) {
      dispatch(add, frameworkId, info, active, std::move(options));
    } else {
      dispatch(add, frameworkId, info, active, withoutConstraints(options));
      deciding->addFramework(
          frameworkId, info, used, active, std::move(options));
    }
  }

  void updateFramework(
      const FrameworkID& frameworkId,
      const FrameworkInfo& info,
      FrameworkOptions&& options) override
  {
    const auto update = &AllocatorProcess::updateFramework;

    if (deciding == nullptr) {
      dispatch(update, frameworkId, info, std::move(options));
    } else {
      dispatch(update, frameworkId, info, withoutConstraints(options));
      deciding->updateFramework(frameworkId, info, std::move(options));
    }
  }

  void removeFramework(const FrameworkID& frameworkId) override
  {
    tell(BOTH(removeFramework), frameworkId);
  }

  void activateFramework(const FrameworkID& frameworkId) override
  {
    tell(BOTH(activateFramework), frameworkId);
  }

  void deactivateFramework(const FrameworkID& frameworkId) override
  {
    tell(BOTH(deactivateFramework), frameworkId);
  }

  void requestResources(
      const FrameworkID& frameworkId,
      const vector<mesos::Request>& requests) override
  {
    tell(BOTH(requestResources), frameworkId, requests);
  }

  void suppressOffers(const FrameworkID& frameworkId, const set<string>& roles)
      override
  {
    tell(BOTH(suppressOffers), frameworkId, roles);
  }

  void reviveOffers(const FrameworkID& frameworkId, const set<string>& roles)
      override
  {
    tell(BOTH(reviveOffers), frameworkId, roles);
  }

  void addSlave(
      const SlaveID& agentId,
      const SlaveInfo& info,
      const vector<SlaveInfo::Capability>& capabilities,
      const Option<Unavailability>& unavailability,
      const Resources& total,
      const hashmap<FrameworkID, Resources>& used) override
  {
    tell(
        BOTH(addSlave),
        agentId,
        info,
        capabilities,
        unavailability,
        total,
        used);
  }

  void updateSlave(
      const SlaveID& agentId,
      const SlaveInfo& info,
      const Option<Resources>& total,
      const Option<vector<SlaveInfo::Capability>>& capabilities) override
  {
    tell(BOTH(updateSlave), agentId, info, total, capabilities);
  }

  void addResourceProvider(
      const SlaveID& agentId,
      const Resources& total,
      const hashmap<FrameworkID, Resources>& used) override
  {
    tell(BOTH(addResourceProvider), agentId, total, used);
  }

  void removeSlave(const SlaveID& agentId) override
  {
    tell(BOTH(removeSlave), agentId);
  }

  void activateSlave(const SlaveID& agentId) override
  {
    tell(BOTH(activateSlave), agentId);
  }

  void deactivateSlave(const SlaveID& agentId) override
  {
    tell(BOTH(deactivateSlave), agentId);
  }

  void updateWhitelist(const Option<hashset<string>>& whitelist) override
  {
    tell(BOTH(updateWhitelist), whitelist);
  }

  void updateUnavailability(
      const SlaveID& agentId,
      const Option<Unavailability>& unavailability) override
  {
    tell(BOTH(updateUnavailability), agentId, unavailability);
  }

  void updateInverseOffer(
      const SlaveID& agentId,
      const FrameworkID& frameworkId,
      const Option<mesos::UnavailableResources>& resources,
      const Option<mesos::allocator::InverseOfferStatus>& status,
      const Option<mesos::Filters>& filters) override
  {
    tell(
        BOTH(updateInverseOffer),
        agentId,
        frameworkId,
        resources,
        status,
        filters);
  }

  Future<AllocatorProcess::Statuses> getInverseOfferStatuses() override
  {
    return deciding == nullptr
        ? dispatch(&AllocatorProcess::getInverseOfferStatuses)
        : deciding->getInverseOfferStatuses();
  }

  void updateAllocation(
      const FrameworkID& frameworkId,
      const SlaveID& agentId,
      const Resources& offered,
      const vector<ResourceConversion>& conversions) override
  {
    tell(BOTH(updateAllocation), frameworkId, agentId, offered, conversions);
  }

  // In shadow mode, the deciding allocator decides whether the operation is
  // possible. If its future is ready before the callback is attached, the actor
  // may receive offers of the operation's results before it receives the
  // operation. Until then more is held in its books than the total.
  Future<Nothing> updateAvailable(
      const SlaveID& agentId,
      const vector<mesos::Offer::Operation>& operations) override
  {
    if (deciding == nullptr) {
      return dispatch(&AllocatorProcess::updateAvailable, agentId, operations);
    }

    const Future<Nothing> result =
        deciding->updateAvailable(agentId, operations);
    const process::PID<AllocatorProcess> pid = actor->self();
    result.onReady([=](const Nothing&) {
      process::dispatch(
          pid, &AllocatorProcess::convertedBeside, agentId, operations);
    });
    return result;
  }

  void transitionOfferedToAllocated(
      const SlaveID& agentId,
      const Resources& resources) override
  {
    tell(BOTH(transitionOfferedToAllocated), agentId, resources);
  }

  void recoverResources(
      const FrameworkID& frameworkId,
      const SlaveID& agentId,
      const Resources& resources,
      const Option<mesos::Filters>& filters,
      bool isAllocated) override
  {
    tell(
        BOTH(recoverResources),
        frameworkId,
        agentId,
        resources,
        filters,
        isAllocated);
  }

  void updateQuota(const string& role, const mesos::Quota& quota) override
  {
    tell(BOTH(updateQuota), role, quota);
  }

  void updateWeights(const vector<mesos::WeightInfo>& weights) override
  {
    tell(BOTH(updateWeights), weights);
  }

  void pause() override { tell(BOTH(pause)); }

  void resume() override { tell(BOTH(resume)); }

private:
  const std::unique_ptr<AllocatorProcess> actor;
  std::unique_ptr<Allocator> deciding;
};

} // namespace {


std::unique_ptr<Allocator> makeAllocator(
    const session::Parameters& parameters,
    std::unique_ptr<Allocator>&& deciding)
{
  return std::unique_ptr<Allocator>(
      new SidecarAllocator(parameters, std::move(deciding)));
}

} // namespace adapter {
} // namespace allocator {
