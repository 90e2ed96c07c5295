#include "adapter/state.hpp"

using std::string;
using std::vector;

namespace allocator {
namespace adapter {

void describeAgent(
    const SlaveInfo& info,
    const Option<vector<SlaveInfo::Capability>>& capabilities,
    Agent* agent)
{
  agent->info = info;

  if (capabilities.isNone()) {
    return;
  }

  agent->capabilities = capabilities.get();
  agent->multiRole = false;
  agent->hierarchicalRole = false;

  for (const SlaveInfo::Capability& capability : agent->capabilities) {
    switch (capability.type()) {
      case SlaveInfo::Capability::MULTI_ROLE: agent->multiRole = true; break;
      case SlaveInfo::Capability::HIERARCHICAL_ROLE:
        agent->hierarchicalRole = true;
        break;
      default: break;
    }
  }
}


void describeFramework(const FrameworkInfo& info, Framework* framework)
{
  framework->info = info;
  framework->multiRole = false;
  framework->gpus = false;
  framework->shared = false;
  framework->revocable = false;
  framework->refinement = false;
  framework->regionAware = false;

  for (const FrameworkInfo::Capability& capability : info.capabilities()) {
    switch (capability.type()) {
      case FrameworkInfo::Capability::MULTI_ROLE:
        framework->multiRole = true;
        break;
      case FrameworkInfo::Capability::GPU_RESOURCES:
        framework->gpus = true;
        break;
      case FrameworkInfo::Capability::SHARED_RESOURCES:
        framework->shared = true;
        break;
      case FrameworkInfo::Capability::REVOCABLE_RESOURCES:
        framework->revocable = true;
        break;
      case FrameworkInfo::Capability::RESERVATION_REFINEMENT:
        framework->refinement = true;
        break;
      case FrameworkInfo::Capability::REGION_AWARE:
        framework->regionAware = true;
        break;
      default: break;
    }
  }

  framework->roles.clear();
  if (framework->multiRole) {
    framework->roles.insert(info.roles().begin(), info.roles().end());
  } else {
    framework->roles.insert(info.role());
  }

  framework->minimum.clear();
  for (const auto& entry : info.offer_filters()) {
    if (!entry.second.has_min_allocatable_resources()) {
      continue;
    }

    vector<ResourceQuantities>& anyOf = framework->minimum[entry.first];
    const auto& wanted = entry.second.min_allocatable_resources();

    for (const auto& each : wanted.quantities()) {
      google::protobuf::Map<string, mesos::Value::Scalar> quantities =
          each.quantities();
      anyOf.push_back(ResourceQuantities(quantities));
    }
  }
}

} // namespace adapter {
} // namespace allocator {
