#include "adapter/convert.hpp"

#include <algorithm>

#include <mesos/values.hpp>

#include <stout/stringify.hpp>

#include "adapter/holdings.hpp"
#include "adapter/text.hpp"

#include "session/decisions.hpp"

using std::map;
using std::string;
using std::vector;

namespace allocator {
namespace adapter {
namespace {

// What is believed of a framework's labels and requests: a message must
// not become too large for the sidecar.
constexpr size_t LABEL_BYTES_MAX = 256 << 10;
constexpr int REQUESTS_MAX = 64;
constexpr int REQUEST_RESOURCES_MAX = 64;


void add(
    const string& name,
    const mesos::Value::Scalar& scalar,
    wire::Quantities* quantities)
{
  quantities->add_name(toText(name));
  quantities->add_amount(thousandths(scalar));
}


wire::Attribute toAttribute(const mesos::Attribute& attribute)
{
  wire::Attribute result;
  result.set_name(toText(attribute.name()));

  switch (attribute.type()) {
    case mesos::Value::SCALAR:
      result.set_type(wire::VALUE_TYPE_SCALAR);
      result.set_value(toText(stringify(attribute.scalar())));
      break;
    case mesos::Value::RANGES:
      result.set_type(wire::VALUE_TYPE_RANGES);
      result.set_value(toText(stringify(attribute.ranges())));
      break;
    case mesos::Value::SET:
      result.set_type(wire::VALUE_TYPE_SET);
      result.set_value(toText(stringify(attribute.set())));
      break;
    case mesos::Value::TEXT:
      result.set_type(wire::VALUE_TYPE_TEXT);
      result.set_value(toText(attribute.text().value()));
      break;
  }

  return result;
}


wire::Domain toDomain(const mesos::DomainInfo& domain)
{
  wire::Domain result;
  result.set_region(toText(domain.fault_domain().region().name()));
  result.set_zone(toText(domain.fault_domain().zone().name()));
  return result;
}


// UNSPECIFIED for those that the protocol does not have.
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


template <typename Message>
void describe(const Agent& agent, Message* message)
{
  message->set_hostname(toText(agent.info.hostname()));

  for (const mesos::Attribute& attribute : agent.info.attributes()) {
    *message->add_attributes() = toAttribute(attribute);
  }

  if (agent.info.has_domain()) {
    *message->mutable_domain() = toDomain(agent.info.domain());
  }

  for (const SlaveInfo::Capability& capability : agent.capabilities) {
    const wire::AgentCapability known = toCapability(capability);
    if (known != wire::AGENT_CAPABILITY_UNSPECIFIED) {
      message->add_capabilities(known);
    }
  }
}


void addCapabilities(const Framework& framework, wire::Framework* result)
{
  if (framework.revocable) {
    result->add_capabilities(wire::FRAMEWORK_CAPABILITY_REVOCABLE_RESOURCES);
  }
  if (framework.gpus) {
    result->add_capabilities(wire::FRAMEWORK_CAPABILITY_GPU_RESOURCES);
  }
  if (framework.shared) {
    result->add_capabilities(wire::FRAMEWORK_CAPABILITY_SHARED_RESOURCES);
  }
  if (framework.multiRole) {
    result->add_capabilities(wire::FRAMEWORK_CAPABILITY_MULTI_ROLE);
  }
  if (framework.refinement) {
    result->add_capabilities(wire::FRAMEWORK_CAPABILITY_RESERVATION_REFINEMENT);
  }
  if (framework.regionAware) {
    result->add_capabilities(wire::FRAMEWORK_CAPABILITY_REGION_AWARE);
  }
}

} // namespace {


wire::Agent toAgent(
    const SlaveID& agentId,
    const Agent& agent,
    const Resources& total,
    Handles* handles)
{
  wire::Agent result;
  result.set_agent(handles->agents.bind(agentId));
  result.set_agent_id(toText(agentId.value()));
  describe(agent, &result);
  *result.mutable_capacity() = toSparse(total, &handles->kinds);
  result.set_deactivated(!agent.active);

  if (agent.unavailability.isSome()) {
    *result.mutable_unavailability() =
        toUnavailability(agent.unavailability.get());
  }

  return result;
}


wire::UpdateAgent toUpdateAgent(
    const SlaveID& agentId,
    const Agent& agent,
    const Resources& total,
    Handles* handles)
{
  wire::UpdateAgent result;
  result.set_agent(handles->agents.bind(agentId));
  result.set_replaces_info(true);
  result.set_replaces_capabilities(true);
  describe(agent, &result);
  *result.mutable_capacity() = toSparse(total, &handles->kinds);
  return result;
}


wire::Framework toFramework(
    const FrameworkID& frameworkId,
    const Framework& framework,
    Handles* handles)
{
  wire::Framework result;
  result.set_framework(handles->frameworks.bind(frameworkId));
  result.set_framework_id(toText(frameworkId.value()));
  result.set_name(toText(framework.info.name()));
  result.set_user(toText(framework.info.user()));
  result.set_principal(toText(framework.info.principal()));
  result.set_inactive(!framework.active);
  addCapabilities(framework, &result);

  for (const string& role : framework.roles) {
    result.add_roles(handles->roles.bind(role));
  }

  for (const string& role : framework.suppressed) {
    if (framework.roles.count(role) > 0) {
      result.add_suppressed_roles(handles->roles.bind(role));
    }
  }

  size_t labelBytes = 0;
  for (const mesos::Label& label : framework.info.labels().labels()) {
    const string key = toText(label.key());
    const string value = toText(label.value());
    labelBytes += key.size() + value.size();
    if (labelBytes <= LABEL_BYTES_MAX) {
      (*result.mutable_labels())[key] = value;
    }
  }

  for (const auto& entry : framework.minimum) {
    wire::MinimumResources* minimum = result.add_minimum();
    minimum->set_role(handles->roles.bind(entry.first));
    for (const ResourceQuantities& each : entry.second) {
      *minimum->add_any_of() = toQuantities(each);
    }
  }

  return result;
}


wire::Quota toQuota(const string& role, const mesos::Quota& quota)
{
  wire::Quota result;
  result.set_role(toText(role));
  *result.mutable_guarantees() = toQuantities(quota.guarantees);

  for (const auto& limit : quota.limits) {
    add(limit.first, limit.second, result.mutable_limits());
  }

  return result;
}


wire::Quantities toQuantities(const ResourceQuantities& quantities)
{
  wire::Quantities result;
  for (const auto& quantity : quantities) {
    add(quantity.first, quantity.second, &result);
  }
  return result;
}


wire::AllocatorOptions toOptions(const mesos::allocator::Options& options)
{
  wire::AllocatorOptions result;
  result.set_allocation_interval_ms(
      static_cast<int64_t>(options.allocationInterval.ms()));
  result.set_filter_gpu_resources(options.filterGpuResources);

  if (options.domain.isSome()) {
    *result.mutable_domain() = toDomain(options.domain.get());
  }

  if (options.fairnessExcludeResourceNames.isSome()) {
    for (const string& name : options.fairnessExcludeResourceNames.get()) {
      result.add_fairness_excluded_resource_names(name);
    }
  }

  if (options.minAllocatableResources.isSome()) {
    for (const ResourceQuantities& each :
         options.minAllocatableResources.get()) {
      *result.add_minimum_any_of() = toQuantities(each);
    }
  }

  return result;
}


wire::Unavailability toUnavailability(const Unavailability& unavailability)
{
  constexpr int64_t NS_PER_MS = 1000 * 1000;

  wire::Unavailability result;
  result.set_start_ms(unavailability.start().nanoseconds() / NS_PER_MS);
  if (unavailability.has_duration()) {
    result.set_duration_ms(unavailability.duration().nanoseconds() / NS_PER_MS);
  }
  return result;
}


wire::ResourceRequest toRequest(
    uint32_t framework,
    const vector<mesos::Request>& requests)
{
  wire::ResourceRequest result;
  result.set_framework(framework);

  for (const mesos::Request& request : requests) {
    if (result.requests_size() >= REQUESTS_MAX ||
        request.resources_size() > REQUEST_RESOURCES_MAX) {
      continue;
    }

    map<string, int64_t> amounts;
    for (const Resource& resource : request.resources()) {
      const int64_t amount = amountOf(resource);
      if (amount > 0) {
        amounts[resource.name()] += amount;
      }
    }

    wire::Quantities* quantities = result.add_requests();
    for (const auto& entry : amounts) {
      quantities->add_name(toText(entry.first));
      quantities->add_amount(std::min(entry.second, session::AMOUNT_MAX));
    }
  }

  return result;
}

} // namespace adapter {
} // namespace allocator {
