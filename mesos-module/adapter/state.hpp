#ifndef __ALLOCATOR_ADAPTER_STATE_HPP__
#define __ALLOCATOR_ADAPTER_STATE_HPP__

#include <mesos/quota/quota.hpp>

#include "adapter/filters.hpp"
#include "adapter/handles.hpp"
#include "adapter/ledger.hpp"
#include "adapter/quota_usage.hpp"
#include "adapter/types.hpp"

namespace allocator {
namespace adapter {

struct Agent
{
  SlaveInfo info;
  std::vector<SlaveInfo::Capability> capabilities;
  bool active = true;
  bool multiRole = false;
  bool hierarchicalRole = false;
  Option<Unavailability> unavailability;
};


struct Framework
{
  FrameworkInfo info;
  bool active = false;
  std::set<std::string> roles;
  std::set<std::string> suppressed;

  bool multiRole = false;
  bool gpus = false;
  bool shared = false;
  bool revocable = false;
  bool refinement = false;
  bool regionAware = false;

  // What an offer in a role must reach: any of these. A role that is not
  // named has the master's minimum; an empty list allows everything.
  hashmap<std::string, std::vector<ResourceQuantities>> minimum;

  mesos::allocator::OfferConstraintsFilter constraints;

  // Agents that the constraints exclude, by role. The filter cannot be
  // sent, so it is evaluated here.
  hashmap<std::string, hashset<SlaveID>> excluded;
};


// All that the module knows. Only its actor touches it.
struct Cluster
{
  mesos::allocator::Options options;

  hashmap<SlaveID, Agent> agents;
  hashmap<FrameworkID, Framework> frameworks;
  hashmap<std::string, mesos::Quota> quotas;
  hashmap<std::string, double> weights;
  Option<hashset<std::string>> whitelist;

  Ledger ledger;

  // Follows the ledger whenever it is asked.
  mutable QuotaUsage usage;

  Filters filters;
  Handles handles;

  bool paused = false;     // Within a bracket of the master's calls.
  bool recovering = false; // After a failover, until the agents are back.

  bool held() const { return paused || recovering; }
};


void describeAgent(
    const SlaveInfo& info,
    const Option<std::vector<SlaveInfo::Capability>>& capabilities,
    Agent* agent);

void describeFramework(const FrameworkInfo& info, Framework* framework);

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_STATE_HPP__
