#ifndef __ALLOCATOR_BRAIN_CLUSTER_HPP__
#define __ALLOCATOR_BRAIN_CLUSTER_HPP__

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "brain/books.hpp"
#include "brain/filters.hpp"
#include "brain/kinds.hpp"
#include "brain/names.hpp"
#include "brain/resource_classes.hpp"
#include "brain/state.hpp"
#include "brain/sums.hpp"

namespace allocator {
namespace brain {

// All that is known of the cluster.
struct Cluster
{
  Cluster()
    : sums(&roles), books(&agents, &classes, &sums), filters(&agents, &classes)
  {
  }

  // Its parts refer to each other.
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  struct Quota
  {
    Quantities guarantees;
    Quantities limits;
  };

  Options options;

  Handles agentHandles;
  Handles frameworkHandles;
  Roles roles;
  ResourceClasses classes;
  Kinds kinds;

  Table<Agent> agents;
  Table<Framework> frameworks;
  std::map<std::string, Quota> quotas;
  std::map<std::string, double> weights;
  bool restricted = false;
  std::set<std::string> whitelist; // Host names; where it is restricted.

  Sums sums;
  Books books;
  Filters filters;

  // No message should be larger: what the sidecar of the session reads.
  size_t messageBytesMax = SIZE_MAX;

  bool paused = false;     // Within a bracket of the master's calls.
  bool recovering = false; // After a failover, until the agents are back.

  bool offersPaused() const { return paused || recovering; }
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_CLUSTER_HPP__
