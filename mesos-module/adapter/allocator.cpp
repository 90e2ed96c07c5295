#include "adapter/allocator.hpp"

#include <utility>

#include <process/dispatch.hpp>
#include <process/process.hpp>

#include "adapter/process.hpp"

using std::set;
using std::string;
using std::vector;

using process::Future;
using process::dispatch;

namespace allocator {
namespace adapter {

using Process = AllocatorProcess;


SidecarAllocator::SidecarAllocator(const Parameters& parameters)
  : process(new Process(parameters))
{
  process::spawn(process);
}


SidecarAllocator::~SidecarAllocator()
{
  process::terminate(process);
  process::wait(process);
  delete process;
}


void SidecarAllocator::initialize(
    const mesos::allocator::Options& options,
    const OfferCallback& offerCallback,
    const InverseOfferCallback& inverseOfferCallback)
{
  dispatch(
      process,
      &Process::initialize_,
      options,
      offerCallback,
      inverseOfferCallback);
}


void SidecarAllocator::recover(
    const int expectedAgentCount,
    const hashmap<string, mesos::Quota>& quotas)
{
  dispatch(process, &Process::recover, expectedAgentCount, quotas);
}


void SidecarAllocator::addFramework(
    const FrameworkID& frameworkId,
    const FrameworkInfo& frameworkInfo,
    const hashmap<SlaveID, Resources>&,
    bool active,
    mesos::allocator::FrameworkOptions&& options)
{
  dispatch(
      process,
      &Process::addFramework,
      frameworkId,
      frameworkInfo,
      active,
      std::move(options));
}


void SidecarAllocator::removeFramework(const FrameworkID& frameworkId)
{
  dispatch(process, &Process::removeFramework, frameworkId);
}


void SidecarAllocator::activateFramework(const FrameworkID& frameworkId)
{
  dispatch(process, &Process::activateFramework, frameworkId);
}


void SidecarAllocator::deactivateFramework(const FrameworkID& frameworkId)
{
  dispatch(process, &Process::deactivateFramework, frameworkId);
}


void SidecarAllocator::updateFramework(
    const FrameworkID& frameworkId,
    const FrameworkInfo& frameworkInfo,
    mesos::allocator::FrameworkOptions&& options)
{
  dispatch(
      process,
      &Process::updateFramework,
      frameworkId,
      frameworkInfo,
      std::move(options));
}


void SidecarAllocator::addSlave(
    const SlaveID& slaveId,
    const SlaveInfo& slaveInfo,
    const vector<SlaveInfo::Capability>& capabilities,
    const Option<Unavailability>& unavailability,
    const Resources& total,
    const hashmap<FrameworkID, Resources>& used)
{
  dispatch(
      process,
      &Process::addSlave,
      slaveId,
      slaveInfo,
      capabilities,
      unavailability,
      total,
      used);
}


void SidecarAllocator::removeSlave(const SlaveID& slaveId)
{
  dispatch(process, &Process::removeSlave, slaveId);
}


void SidecarAllocator::updateSlave(
    const SlaveID& slaveId,
    const SlaveInfo& slaveInfo,
    const Option<Resources>& total,
    const Option<vector<SlaveInfo::Capability>>& capabilities)
{
  dispatch(
      process, &Process::updateSlave, slaveId, slaveInfo, total, capabilities);
}


void SidecarAllocator::addResourceProvider(
    const SlaveID& slaveId,
    const Resources& total,
    const hashmap<FrameworkID, Resources>& used)
{
  dispatch(process, &Process::addResourceProvider, slaveId, total, used);
}


void SidecarAllocator::activateSlave(const SlaveID& slaveId)
{
  dispatch(process, &Process::activateSlave, slaveId);
}


void SidecarAllocator::deactivateSlave(const SlaveID& slaveId)
{
  dispatch(process, &Process::deactivateSlave, slaveId);
}


void SidecarAllocator::updateWhitelist(const Option<hashset<string>>& whitelist)
{
  dispatch(process, &Process::updateWhitelist, whitelist);
}


void SidecarAllocator::requestResources(
    const FrameworkID& frameworkId,
    const vector<mesos::Request>& requests)
{
  dispatch(process, &Process::requestResources, frameworkId, requests);
}


void SidecarAllocator::updateAllocation(
    const FrameworkID& frameworkId,
    const SlaveID& slaveId,
    const Resources& offeredResources,
    const vector<ResourceConversion>& conversions)
{
  dispatch(
      process,
      &Process::updateAllocation,
      frameworkId,
      slaveId,
      offeredResources,
      conversions);
}


Future<Nothing> SidecarAllocator::updateAvailable(
    const SlaveID& slaveId,
    const vector<mesos::Offer::Operation>& operations)
{
  return dispatch(process, &Process::updateAvailable, slaveId, operations);
}


void SidecarAllocator::updateUnavailability(
    const SlaveID& slaveId,
    const Option<Unavailability>& unavailability)
{
  dispatch(process, &Process::updateUnavailability, slaveId, unavailability);
}


void SidecarAllocator::updateInverseOffer(
    const SlaveID& slaveId,
    const FrameworkID& frameworkId,
    const Option<mesos::UnavailableResources>&,
    const Option<mesos::allocator::InverseOfferStatus>& status,
    const Option<mesos::Filters>& filters)
{
  dispatch(
      process,
      &Process::updateInverseOffer,
      slaveId,
      frameworkId,
      status,
      filters);
}


Future<Process::Statuses> SidecarAllocator::getInverseOfferStatuses()
{
  return dispatch(process, &Process::getInverseOfferStatuses);
}


void SidecarAllocator::transitionOfferedToAllocated(
    const SlaveID& slaveId,
    const Resources& resources)
{
  dispatch(process, &Process::transitionOfferedToAllocated, slaveId, resources);
}


void SidecarAllocator::recoverResources(
    const FrameworkID& frameworkId,
    const SlaveID& slaveId,
    const Resources& resources,
    const Option<mesos::Filters>& filters,
    bool isAllocated)
{
  dispatch(
      process,
      &Process::recoverResources,
      frameworkId,
      slaveId,
      resources,
      filters,
      isAllocated);
}


void SidecarAllocator::suppressOffers(
    const FrameworkID& frameworkId,
    const set<string>& roles)
{
  dispatch(process, &Process::suppressOffers, frameworkId, roles);
}


void SidecarAllocator::reviveOffers(
    const FrameworkID& frameworkId,
    const set<string>& roles)
{
  dispatch(process, &Process::reviveOffers, frameworkId, roles);
}


void SidecarAllocator::updateQuota(
    const string& role,
    const mesos::Quota& quota)
{
  dispatch(process, &Process::updateQuota, role, quota);
}


void SidecarAllocator::updateWeights(
    const vector<mesos::WeightInfo>& weightInfos)
{
  dispatch(process, &Process::updateWeights, weightInfos);
}


void SidecarAllocator::pause()
{
  dispatch(process, &Process::pause);
}


void SidecarAllocator::resume()
{
  dispatch(process, &Process::resume);
}


void SidecarAllocator::offeredBeside(
    const FrameworkID& frameworkId,
    const Offers& offers)
{
  dispatch(process, &Process::offeredBeside, frameworkId, offers);
}


void SidecarAllocator::convertedBeside(
    const SlaveID& slaveId,
    const vector<mesos::Offer::Operation>& operations)
{
  dispatch(process, &Process::convertedBeside, slaveId, operations);
}

} // namespace adapter {
} // namespace allocator {
