#include "adapter/shadow.hpp"

#include <utility>

using std::set;
using std::string;
using std::vector;

using process::Future;

namespace allocator {
namespace adapter {

using OfferCallback = lambda::function<void(const FrameworkID&, const Offers&)>;

using InverseOffers = hashmap<SlaveID, mesos::UnavailableResources>;

using InverseOfferCallback =
    lambda::function<void(const FrameworkID&, const InverseOffers&)>;

using Statuses = hashmap<
    SlaveID,
    hashmap<FrameworkID, mesos::allocator::InverseOfferStatus>>;


namespace {

// Offer constraints can be had by one allocator only, and nobody can read
// them; the one that decides has them.
mesos::allocator::FrameworkOptions withoutConstraints(
    const mesos::allocator::FrameworkOptions& options)
{
  mesos::allocator::FrameworkOptions result;
  result.suppressedRoles = options.suppressedRoles;
  return result;
}

} // namespace {


ShadowAllocator::ShadowAllocator(
    std::unique_ptr<mesos::allocator::Allocator>&& _deciding,
    const Parameters& parameters)
  : ours(parameters), deciding(std::move(_deciding))
{
}


void ShadowAllocator::initialize(
    const mesos::allocator::Options& options,
    const OfferCallback& offerCallback,
    const InverseOfferCallback& inverseOfferCallback)
{
  ours.initialize(
      options,
      [](const FrameworkID&, const Offers&) {},
      [](const FrameworkID&, const InverseOffers&) {});

  SidecarAllocator* other = &ours;
  deciding->initialize(
      options,
      [=](const FrameworkID& frameworkId, const Offers& offers) {
        other->offeredBeside(frameworkId, offers);
        offerCallback(frameworkId, offers);
      },
      inverseOfferCallback);
}


void ShadowAllocator::addFramework(
    const FrameworkID& frameworkId,
    const FrameworkInfo& frameworkInfo,
    const hashmap<SlaveID, Resources>& used,
    bool active,
    mesos::allocator::FrameworkOptions&& options)
{
  ours.addFramework(
      frameworkId, frameworkInfo, used, active, withoutConstraints(options));
  deciding->addFramework(
      frameworkId, frameworkInfo, used, active, std::move(options));
}


void ShadowAllocator::updateFramework(
    const FrameworkID& frameworkId,
    const FrameworkInfo& frameworkInfo,
    mesos::allocator::FrameworkOptions&& options)
{
  ours.updateFramework(frameworkId, frameworkInfo, withoutConstraints(options));
  deciding->updateFramework(frameworkId, frameworkInfo, std::move(options));
}


// Whether an operator may is for the one that decides to say. Where that is
// said before anybody waits for it, offers of the result may be told to ours
// first: more is held than there is, until this is told, too.
Future<Nothing> ShadowAllocator::updateAvailable(
    const SlaveID& slaveId,
    const vector<mesos::Offer::Operation>& operations)
{
  SidecarAllocator* other = &ours;
  const Future<Nothing> result = deciding->updateAvailable(slaveId, operations);
  result.onReady(
      [=](const Nothing&) { other->convertedBeside(slaveId, operations); });
  return result;
}


void ShadowAllocator::updateInverseOffer(
    const SlaveID& slaveId,
    const FrameworkID& frameworkId,
    const Option<mesos::UnavailableResources>& unavailableResources,
    const Option<mesos::allocator::InverseOfferStatus>& status,
    const Option<mesos::Filters>& filters)
{
  ours.updateInverseOffer(
      slaveId, frameworkId, unavailableResources, status, filters);
  deciding->updateInverseOffer(
      slaveId, frameworkId, unavailableResources, status, filters);
}


Future<Statuses> ShadowAllocator::getInverseOfferStatuses()
{
  return deciding->getInverseOfferStatuses();
}


void ShadowAllocator::recover(
    const int expectedAgentCount,
    const hashmap<string, mesos::Quota>& quotas)
{
  ours.recover(expectedAgentCount, quotas);
  deciding->recover(expectedAgentCount, quotas);
}


void ShadowAllocator::removeFramework(const FrameworkID& frameworkId)
{
  ours.removeFramework(frameworkId);
  deciding->removeFramework(frameworkId);
}


void ShadowAllocator::activateFramework(const FrameworkID& frameworkId)
{
  ours.activateFramework(frameworkId);
  deciding->activateFramework(frameworkId);
}


void ShadowAllocator::deactivateFramework(const FrameworkID& frameworkId)
{
  ours.deactivateFramework(frameworkId);
  deciding->deactivateFramework(frameworkId);
}


void ShadowAllocator::addSlave(
    const SlaveID& slaveId,
    const SlaveInfo& slaveInfo,
    const vector<SlaveInfo::Capability>& capabilities,
    const Option<Unavailability>& unavailability,
    const Resources& total,
    const hashmap<FrameworkID, Resources>& used)
{
  ours.addSlave(slaveId, slaveInfo, capabilities, unavailability, total, used);
  deciding->addSlave(
      slaveId, slaveInfo, capabilities, unavailability, total, used);
}


void ShadowAllocator::removeSlave(const SlaveID& slaveId)
{
  ours.removeSlave(slaveId);
  deciding->removeSlave(slaveId);
}


void ShadowAllocator::updateSlave(
    const SlaveID& slaveId,
    const SlaveInfo& slaveInfo,
    const Option<Resources>& total,
    const Option<vector<SlaveInfo::Capability>>& capabilities)
{
  ours.updateSlave(slaveId, slaveInfo, total, capabilities);
  deciding->updateSlave(slaveId, slaveInfo, total, capabilities);
}


void ShadowAllocator::addResourceProvider(
    const SlaveID& slaveId,
    const Resources& total,
    const hashmap<FrameworkID, Resources>& used)
{
  ours.addResourceProvider(slaveId, total, used);
  deciding->addResourceProvider(slaveId, total, used);
}


void ShadowAllocator::activateSlave(const SlaveID& slaveId)
{
  ours.activateSlave(slaveId);
  deciding->activateSlave(slaveId);
}


void ShadowAllocator::deactivateSlave(const SlaveID& slaveId)
{
  ours.deactivateSlave(slaveId);
  deciding->deactivateSlave(slaveId);
}


void ShadowAllocator::updateWhitelist(const Option<hashset<string>>& whitelist)
{
  ours.updateWhitelist(whitelist);
  deciding->updateWhitelist(whitelist);
}


void ShadowAllocator::requestResources(
    const FrameworkID& frameworkId,
    const vector<mesos::Request>& requests)
{
  ours.requestResources(frameworkId, requests);
  deciding->requestResources(frameworkId, requests);
}


void ShadowAllocator::updateAllocation(
    const FrameworkID& frameworkId,
    const SlaveID& slaveId,
    const Resources& offeredResources,
    const vector<ResourceConversion>& conversions)
{
  ours.updateAllocation(frameworkId, slaveId, offeredResources, conversions);
  deciding->updateAllocation(
      frameworkId, slaveId, offeredResources, conversions);
}


void ShadowAllocator::updateUnavailability(
    const SlaveID& slaveId,
    const Option<Unavailability>& unavailability)
{
  ours.updateUnavailability(slaveId, unavailability);
  deciding->updateUnavailability(slaveId, unavailability);
}


void ShadowAllocator::transitionOfferedToAllocated(
    const SlaveID& slaveId,
    const Resources& resources)
{
  ours.transitionOfferedToAllocated(slaveId, resources);
  deciding->transitionOfferedToAllocated(slaveId, resources);
}


void ShadowAllocator::recoverResources(
    const FrameworkID& frameworkId,
    const SlaveID& slaveId,
    const Resources& resources,
    const Option<mesos::Filters>& filters,
    bool isAllocated)
{
  ours.recoverResources(frameworkId, slaveId, resources, filters, isAllocated);
  deciding->recoverResources(
      frameworkId, slaveId, resources, filters, isAllocated);
}


void ShadowAllocator::suppressOffers(
    const FrameworkID& frameworkId,
    const set<string>& roles)
{
  ours.suppressOffers(frameworkId, roles);
  deciding->suppressOffers(frameworkId, roles);
}


void ShadowAllocator::reviveOffers(
    const FrameworkID& frameworkId,
    const set<string>& roles)
{
  ours.reviveOffers(frameworkId, roles);
  deciding->reviveOffers(frameworkId, roles);
}


void ShadowAllocator::updateQuota(const string& role, const mesos::Quota& quota)
{
  ours.updateQuota(role, quota);
  deciding->updateQuota(role, quota);
}


void ShadowAllocator::updateWeights(
    const vector<mesos::WeightInfo>& weightInfos)
{
  ours.updateWeights(weightInfos);
  deciding->updateWeights(weightInfos);
}


void ShadowAllocator::pause()
{
  ours.pause();
  deciding->pause();
}


void ShadowAllocator::resume()
{
  ours.resume();
  deciding->resume();
}

} // namespace adapter {
} // namespace allocator {
