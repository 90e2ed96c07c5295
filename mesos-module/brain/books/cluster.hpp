#ifndef __ALLOCATOR_BRAIN_BOOKS_CLUSTER_HPP__
#define __ALLOCATOR_BRAIN_BOOKS_CLUSTER_HPP__

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "brain/books/books.hpp"
#include "brain/books/filters.hpp"
#include "brain/books/kinds.hpp"
#include "brain/books/names.hpp"
#include "brain/books/resource_classes.hpp"
#include "brain/books/tables.hpp"
#include "brain/books/sums.hpp"

namespace allocator {
namespace brain {

// The state of the cluster.
struct Cluster
{
  Cluster()
    : sums(&roles), books(&agents, &classes, &sums), filters(&agents, &classes)
  {
  }

  // Members hold pointers to each other.
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
  std::set<std::string> whitelist; // Host names; used if `restricted`.

  Sums sums;
  Books books;
  Filters filters;

  // The largest message that the session's sidecar reads.
  size_t messageBytesMax = SIZE_MAX;

  bool paused = false;     // Within a bracket of the master's calls.
  bool recovering = false; // After a failover, until agents have returned.

  bool offersPaused() const { return paused || recovering; }
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_BOOKS_CLUSTER_HPP__
