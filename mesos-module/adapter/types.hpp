#ifndef __ALLOCATOR_ADAPTER_TYPES_HPP__
#define __ALLOCATOR_ADAPTER_TYPES_HPP__

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <mesos/mesos.hpp>
#include <mesos/resource_quantities.hpp>
#include <mesos/resources.hpp>
#include <mesos/type_utils.hpp>

#include <mesos/allocator/allocator.hpp>

#include <stout/hashmap.hpp>
#include <stout/hashset.hpp>
#include <stout/nothing.hpp>
#include <stout/option.hpp>
#include <stout/try.hpp>

#include "allocator/v1/session.pb.h"

namespace allocator {
namespace adapter {

namespace wire = ::allocator::v1;

using mesos::FrameworkID;
using mesos::FrameworkInfo;
using mesos::Resource;
using mesos::ResourceConversion;
using mesos::ResourceQuantities;
using mesos::Resources;
using mesos::SlaveID;
using mesos::SlaveInfo;
using mesos::Unavailability;

// Mesos's documented names for agents; its older ones stay in the adapter.
using AgentID = SlaveID;
using AgentInfo = SlaveInfo;

// Offers to one framework: by role and agent.
using Offers = hashmap<std::string, hashmap<SlaveID, Resources>>;

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_TYPES_HPP__
