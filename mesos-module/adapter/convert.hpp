#ifndef __ALLOCATOR_ADAPTER_CONVERT_HPP__
#define __ALLOCATOR_ADAPTER_CONVERT_HPP__

#include <mesos/quota/quota.hpp>

#include "adapter/types.hpp"

#include "brain/events.hpp"

#include "session/parameters.hpp"

namespace allocator {
namespace adapter {

// From Mesos's messages to the protocol's and the brain's: beside
// `Objects` the only place where they meet.

// What agents and frameworks say is handed on as they say it; the brain decides
// what is taken of it (`brain/words/words.hpp`).

// Host's name, attributes, domain and capabilities.
wire::Agent toAgent(
    const AgentInfo& info,
    const std::vector<AgentInfo::Capability>& capabilities);

// What the brain is told of a framework, but for its id and whether it is
// active.
void describe(
    const FrameworkInfo& info,
    const std::set<std::string>& suppressed,
    brain::AddFramework* event);

brain::Options toOptions(
    const mesos::allocator::Options& options,
    const session::Parameters& parameters);

// What the sidecar hears of them.
wire::AllocatorOptions toWire(const mesos::allocator::Options& options);

brain::SetQuota toQuota(const std::string& role, const mesos::Quota& quota);

brain::Quantities toQuantities(const ResourceQuantities& quantities);

brain::Unavailability toUnavailability(
    const Option<Unavailability>& unavailability);

wire::ResourceRequest toRequest(const std::vector<mesos::Request>& requests);

// How long a filter lasts, by Mesos's rules: 0 for no filter; what is
// negative or no number counts as the default, and a year is the most. -1
// where there is none.
int64_t filterMs(const Option<mesos::Filters>& filters);

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_CONVERT_HPP__
