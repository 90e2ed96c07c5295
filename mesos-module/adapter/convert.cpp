#include "adapter/convert.hpp"

#include <algorithm>
#include <cmath>

#include <mesos/values.hpp>

#include <stout/stringify.hpp>

#include "adapter/objects.hpp"

#include "brain/user_input/text.hpp"

using std::string;
using std::vector;

namespace allocator {
namespace adapter {

using brain::toText;

namespace {

wire::Attribute toAttribute(const mesos::Attribute& attribute)
{
  wire::Attribute result;
  result.set_name(attribute.name());

  switch (attribute.type()) {
    case mesos::Value::SCALAR:
      result.set_type(wire::VALUE_TYPE_SCALAR);
      result.set_value(stringify(attribute.scalar()));
      break;
    case mesos::Value::RANGES:
      result.set_type(wire::VALUE_TYPE_RANGES);
      result.set_value(stringify(attribute.ranges()));
      break;
    case mesos::Value::SET:
      result.set_type(wire::VALUE_TYPE_SET);
      result.set_value(stringify(attribute.set()));
      break;
    case mesos::Value::TEXT:
      result.set_type(wire::VALUE_TYPE_TEXT);
      result.set_value(attribute.text().value());
      break;
  }

  return result;
}


wire::Domain toDomain(const mesos::DomainInfo& domain)
{
  wire::Domain result;
  result.set_region(domain.fault_domain().region().name());
  result.set_zone(domain.fault_domain().zone().name());
  return result;
}


// UNSPECIFIED if the protocol does not have it.
wire::AgentCapability toCapability(const SlaveInfo::Capability& capability)
{
  switch (capability.type()) {
    case SlaveInfo::Capability::MULTI_ROLE:
      return wire::AGENT_CAPABILITY_MULTI_ROLE;
    case SlaveInfo::Capability::HIERARCHICAL_ROLE:
      return wire::AGENT_CAPABILITY_HIERARCHICAL_ROLE;
    case SlaveInfo::Capability::RESERVATION_REFINEMENT:
      return wire::AGENT_CAPABILITY_RESERVATION_REFINEMENT;
    case SlaveInfo::Capability::RESOURCE_PROVIDER:
      return wire::AGENT_CAPABILITY_RESOURCE_PROVIDER;
    default: return wire::AGENT_CAPABILITY_UNSPECIFIED;
  }
}


// UNSPECIFIED if the protocol does not have it.
wire::FrameworkCapability toCapability(
    const FrameworkInfo::Capability& capability)
{
  switch (capability.type()) {
    case FrameworkInfo::Capability::REVOCABLE_RESOURCES:
      return wire::FRAMEWORK_CAPABILITY_REVOCABLE_RESOURCES;
    case FrameworkInfo::Capability::GPU_RESOURCES:
      return wire::FRAMEWORK_CAPABILITY_GPU_RESOURCES;
    case FrameworkInfo::Capability::SHARED_RESOURCES:
      return wire::FRAMEWORK_CAPABILITY_SHARED_RESOURCES;
    case FrameworkInfo::Capability::MULTI_ROLE:
      return wire::FRAMEWORK_CAPABILITY_MULTI_ROLE;
    case FrameworkInfo::Capability::RESERVATION_REFINEMENT:
      return wire::FRAMEWORK_CAPABILITY_RESERVATION_REFINEMENT;
    case FrameworkInfo::Capability::REGION_AWARE:
      return wire::FRAMEWORK_CAPABILITY_REGION_AWARE;
    default: return wire::FRAMEWORK_CAPABILITY_UNSPECIFIED;
  }
}

} // namespace {


wire::Agent toAgent(
    const AgentInfo& info,
    const vector<AgentInfo::Capability>& capabilities)
{
  wire::Agent result;
  result.set_hostname(info.hostname());

  for (const mesos::Attribute& attribute : info.attributes()) {
    *result.add_attributes() = toAttribute(attribute);
  }

  if (info.has_domain() && info.domain().has_fault_domain()) {
    *result.mutable_domain() = toDomain(info.domain());
  }

  for (const AgentInfo::Capability& capability : capabilities) {
    result.add_capabilities(toCapability(capability));
  }

  return result;
}


void describe(
    const FrameworkInfo& info,
    const std::set<string>& suppressed,
    brain::AddFramework* event)
{
  event->info.set_name(info.name());
  event->info.set_user(info.user());
  event->info.set_principal(info.principal());
  event->suppressed = suppressed;

  for (const mesos::Label& label : info.labels().labels()) {
    (*event->info.mutable_labels())[label.key()] = label.value();
  }

  bool multiRole = false;
  for (const FrameworkInfo::Capability& capability : info.capabilities()) {
    const wire::FrameworkCapability known = toCapability(capability);
    multiRole = multiRole || known == wire::FRAMEWORK_CAPABILITY_MULTI_ROLE;
    event->info.add_capabilities(known);
  }

  if (multiRole) {
    event->roles.insert(info.roles().begin(), info.roles().end());
  } else {
    event->roles.insert(info.role());
  }

  for (const auto& entry : info.offer_filters()) {
    if (!entry.second.has_min_allocatable_resources()) {
      continue;
    }

    vector<brain::Quantities> anyOf;
    for (const auto& each :
         entry.second.min_allocatable_resources().quantities()) {
      brain::Quantities least;
      for (const auto& quantity : each.quantities()) {
        least.emplace_back(quantity.first, thousandths(quantity.second));
      }
      anyOf.push_back(least);
    }
    event->minimum.emplace_back(entry.first, anyOf);
  }
}


brain::Options toOptions(
    const mesos::allocator::Options& options,
    const session::Parameters& parameters)
{
  brain::Options result;
  result.intervalMs = static_cast<int64_t>(options.allocationInterval.ms());
  result.filterGpus = options.filterGpuResources;
  result.recoveryTimeoutMs = static_cast<int64_t>(options.recoveryTimeout.ms());
  result.recoveryFactor = options.agentRecoveryFactor;

  if (options.domain.isSome() && options.domain->has_fault_domain()) {
    result.region = toText(options.domain->fault_domain().region().name());
  }

  if (options.fairnessExcludeResourceNames.isSome()) {
    result.excludedNames = options.fairnessExcludeResourceNames.get();
  }

  if (options.minAllocatableResources.isSome()) {
    result.hasMinimum = true;
    for (const ResourceQuantities& each :
         options.minAllocatableResources.get()) {
      result.minimum.push_back(toQuantities(each));
    }
  }

  result.fallback = parameters.fallback;
  result.inverseWithinMs = parameters.inverseOffersWithin.count();
  result.fallbackAfterMs = parameters.fallbackAfter.count();
  result.shadow = parameters.shadow;
  result.barrenIntervalsMax = parameters.barrenIntervalsMax;
  result.badDecisionsMax = parameters.badDecisionsMax;
  result.breakerPauseMs = parameters.breakerPause.count();
  return result;
}


wire::AllocatorOptions toWire(const mesos::allocator::Options& options)
{
  wire::AllocatorOptions result;
  result.set_allocation_interval_ms(
      static_cast<int64_t>(options.allocationInterval.ms()));
  result.set_filter_gpu_resources(options.filterGpuResources);

  if (options.domain.isSome()) {
    const wire::Domain domain = toDomain(options.domain.get());
    result.mutable_domain()->set_region(toText(domain.region()));
    result.mutable_domain()->set_zone(toText(domain.zone()));
  }

  if (options.fairnessExcludeResourceNames.isSome()) {
    for (const string& name : options.fairnessExcludeResourceNames.get()) {
      result.add_fairness_excluded_resource_names(toText(name));
    }
  }

  if (options.minAllocatableResources.isSome()) {
    for (const ResourceQuantities& each :
         options.minAllocatableResources.get()) {
      wire::Quantities* anyOf = result.add_minimum_any_of();
      for (const auto& entry : toQuantities(each)) {
        anyOf->add_name(toText(entry.first));
        anyOf->add_amount(entry.second);
      }
    }
  }

  return result;
}


brain::SetQuota toQuota(const string& role, const mesos::Quota& quota)
{
  brain::SetQuota result;
  result.role = role;
  result.guarantees = toQuantities(quota.guarantees);

  for (const auto& limit : quota.limits) {
    result.limits.emplace_back(limit.first, thousandths(limit.second));
  }

  return result;
}


brain::Quantities toQuantities(const ResourceQuantities& quantities)
{
  brain::Quantities result;
  for (const auto& quantity : quantities) {
    result.emplace_back(quantity.first, thousandths(quantity.second));
  }
  return result;
}


brain::Unavailability toUnavailability(
    const Option<Unavailability>& unavailability)
{
  constexpr int64_t NS_PER_MS = 1000 * 1000;
  brain::Unavailability result;

  if (unavailability.isSome()) {
    result.scheduled = true;
    result.startMs = unavailability->start().nanoseconds() / NS_PER_MS;
    if (unavailability->has_duration()) {
      result.durationMs = unavailability->duration().nanoseconds() / NS_PER_MS;
    }
  }

  return result;
}


wire::ResourceRequest toRequest(const vector<mesos::Request>& requests)
{
  wire::ResourceRequest result;

  for (const mesos::Request& request : requests) {
    result.add_agent_id(request.slave_id().value());
    wire::Quantities* quantities = result.add_requests();
    for (const Resource& resource : request.resources()) {
      quantities->add_name(resource.name());
      quantities->add_amount(amountOf(resource));
    }
  }

  return result;
}


int64_t filterMs(const Option<mesos::Filters>& filters)
{
  if (filters.isNone()) {
    return -1;
  }

  constexpr double YEAR_S = 365.0 * 24 * 3600;
  const double asked = filters->refuse_seconds();

  if (std::isnan(asked) || asked < 0) {
    return std::llround(mesos::Filters().refuse_seconds() * 1000);
  }

  // Round up, because 0 means no filter.
  return static_cast<int64_t>(std::ceil(std::min(asked, YEAR_S) * 1000));
}

} // namespace adapter {
} // namespace allocator {
