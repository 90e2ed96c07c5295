#ifndef __ALLOCATOR_ADAPTER_CONVERT_HPP__
#define __ALLOCATOR_ADAPTER_CONVERT_HPP__

#include <mesos/quota/quota.hpp>

#include "adapter/types.hpp"

#include "brain/events.hpp"

#include "session/parameters.hpp"

namespace allocator {
namespace adapter {

// Conversions from Mesos's messages to those of the protocol and the brain,
// except for resources, which `Objects` converts.

// The input of agents and frameworks is passed on unchanged; the brain
// sanitises it (`brain/user_input/user_input.hpp`).

// Host name, attributes, domain and capabilities.
wire::Agent toAgent(
    const AgentInfo& info,
    const std::vector<AgentInfo::Capability>& capabilities);

// Fills in everything but the framework's id and whether it is active.
void describe(
    const FrameworkInfo& info,
    const std::set<std::string>& suppressed,
    brain::AddFramework* event);

brain::Options toOptions(
    const mesos::allocator::Options& options,
    const session::Parameters& parameters);

wire::AllocatorOptions toWire(const mesos::allocator::Options& options);

brain::SetQuota toQuota(const std::string& role, const mesos::Quota& quota);

brain::Quantities toQuantities(const ResourceQuantities& quantities);

brain::Unavailability toUnavailability(
    const Option<Unavailability>& unavailability);

wire::ResourceRequest toRequest(const std::vector<mesos::Request>& requests);

// Duration of a filter by Mesos's rules: 0 for no filter; negative values and
// NaN mean the default; at most a year. -1 if absent.
int64_t filterMs(const Option<mesos::Filters>& filters);

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_CONVERT_HPP__
