#ifndef __ALLOCATOR_ADAPTER_CONVERT_HPP__
#define __ALLOCATOR_ADAPTER_CONVERT_HPP__

#include "adapter/state.hpp"
#include "adapter/types.hpp"

namespace allocator {
namespace adapter {

// From Mesos's messages to the protocol's: the only place where the two
// meet. Handles that are not bound yet are bound on the way; they must be
// told (`Handles::...takeNew`) before what is made here.

wire::Agent toAgent(
    const SlaveID& agentId,
    const Agent& agent,
    const Resources& total,
    Handles* handles);

wire::UpdateAgent toUpdateAgent(
    const SlaveID& agentId,
    const Agent& agent,
    const Resources& total,
    Handles* handles);

wire::Framework toFramework(
    const FrameworkID& frameworkId,
    const Framework& framework,
    Handles* handles);

wire::Quota toQuota(const std::string& role, const mesos::Quota& quota);

wire::Quantities toQuantities(const ResourceQuantities& quantities);

wire::AllocatorOptions toOptions(const mesos::allocator::Options& options);

wire::Unavailability toUnavailability(const Unavailability& unavailability);

wire::ResourceRequest toRequest(
    uint32_t framework,
    const std::vector<mesos::Request>& requests);

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_CONVERT_HPP__
