#ifndef __ALLOCATOR_ADAPTER_ALLOCATOR_HPP__
#define __ALLOCATOR_ADAPTER_ALLOCATOR_HPP__

#include <mesos/allocator/allocator.hpp>
#include <mesos/maintenance/maintenance.hpp>

#include "adapter/parameters.hpp"
#include "adapter/types.hpp"

namespace allocator {
namespace adapter {

class AllocatorProcess;

// What the master calls. Each method copies its arguments and leaves
// them to the actor; the whitelist may come from another thread.
class SidecarAllocator : public mesos::allocator::Allocator
{
public:
  explicit SidecarAllocator(const Parameters& parameters);
  ~SidecarAllocator() override;

  void initialize(
      const mesos::allocator::Options& options,
      const lambda::function<void(
          const FrameworkID&,
          const hashmap<std::string, hashmap<SlaveID, Resources>>&)>&
          offerCallback,
      const lambda::function<void(
          const FrameworkID&,
          const hashmap<SlaveID, mesos::UnavailableResources>&)>&
          inverseOfferCallback) override;

  void recover(
      const int expectedAgentCount,
      const hashmap<std::string, mesos::Quota>& quotas) override;

  void addFramework(
      const FrameworkID& frameworkId,
      const FrameworkInfo& frameworkInfo,
      const hashmap<SlaveID, Resources>& used,
      bool active,
      mesos::allocator::FrameworkOptions&& options) override;

  void removeFramework(const FrameworkID& frameworkId) override;
  void activateFramework(const FrameworkID& frameworkId) override;
  void deactivateFramework(const FrameworkID& frameworkId) override;

  void updateFramework(
      const FrameworkID& frameworkId,
      const FrameworkInfo& frameworkInfo,
      mesos::allocator::FrameworkOptions&& options) override;

  void addSlave(
      const SlaveID& slaveId,
      const SlaveInfo& slaveInfo,
      const std::vector<SlaveInfo::Capability>& capabilities,
      const Option<Unavailability>& unavailability,
      const Resources& total,
      const hashmap<FrameworkID, Resources>& used) override;

  void removeSlave(const SlaveID& slaveId) override;

  void updateSlave(
      const SlaveID& slaveId,
      const SlaveInfo& slaveInfo,
      const Option<Resources>& total = None(),
      const Option<std::vector<SlaveInfo::Capability>>& capabilities =
          None()) override;

  void addResourceProvider(
      const SlaveID& slaveId,
      const Resources& total,
      const hashmap<FrameworkID, Resources>& used) override;

  void activateSlave(const SlaveID& slaveId) override;
  void deactivateSlave(const SlaveID& slaveId) override;

  void updateWhitelist(const Option<hashset<std::string>>& whitelist) override;

  void requestResources(
      const FrameworkID& frameworkId,
      const std::vector<mesos::Request>& requests) override;

  void updateAllocation(
      const FrameworkID& frameworkId,
      const SlaveID& slaveId,
      const Resources& offeredResources,
      const std::vector<ResourceConversion>& conversions) override;

  process::Future<Nothing> updateAvailable(
      const SlaveID& slaveId,
      const std::vector<mesos::Offer::Operation>& operations) override;

  void updateUnavailability(
      const SlaveID& slaveId,
      const Option<Unavailability>& unavailability) override;

  void updateInverseOffer(
      const SlaveID& slaveId,
      const FrameworkID& frameworkId,
      const Option<mesos::UnavailableResources>& unavailableResources,
      const Option<mesos::allocator::InverseOfferStatus>& status,
      const Option<mesos::Filters>& filters = None()) override;

  process::Future<hashmap<
      SlaveID,
      hashmap<FrameworkID, mesos::allocator::InverseOfferStatus>>>
  getInverseOfferStatuses() override;

  void transitionOfferedToAllocated(
      const SlaveID& slaveId,
      const Resources& resources) override;

  void recoverResources(
      const FrameworkID& frameworkId,
      const SlaveID& slaveId,
      const Resources& resources,
      const Option<mesos::Filters>& filters,
      bool isAllocated) override;

  void suppressOffers(
      const FrameworkID& frameworkId,
      const std::set<std::string>& roles) override;

  void reviveOffers(
      const FrameworkID& frameworkId,
      const std::set<std::string>& roles) override;

  void updateQuota(const std::string& role, const mesos::Quota& quota) override;

  void updateWeights(
      const std::vector<mesos::WeightInfo>& weightInfos) override;

  void pause() override;
  void resume() override;

  // In shadow: what the allocator that decides offered, and what it let an
  // operator do. May come from any thread.
  void offeredBeside(const FrameworkID& frameworkId, const Offers& offers);
  void convertedBeside(
      const SlaveID& slaveId,
      const std::vector<mesos::Offer::Operation>& operations);

private:
  AllocatorProcess* process;
};

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_ALLOCATOR_HPP__
