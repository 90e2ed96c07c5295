#ifndef __ALLOCATOR_BRAIN_BOOKS_FILTERS_HPP__
#define __ALLOCATOR_BRAIN_BOOKS_FILTERS_HPP__

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "brain/books/resource_classes.hpp"
#include "brain/books/tables.hpp"

namespace allocator {
namespace brain {

// Offer filters in force.
//
// A filter is stored in its agent's record and removed with it. Dropping all
// filters of a framework in a role only starts a new generation. Filters of old
// generations are deleted when they expire, when another filter is added for
// the same framework and role, or when too many accumulate.
class Filters
{
public:
  Filters(Table<Agent>* _agents, ResourceClasses* _classes)
    : agents(_agents), classes(_classes)
  {
  }

  // Sets the allocation interval. Each filter lasts at least that long, so that
  // it still applies in the next cycle (MESOS-4302).
  void setInterval(int64_t ms) { intervalMs = ms; }

  void add(
      uint32_t agent,
      uint32_t framework,
      uint32_t role,
      Parts refused,
      int64_t refuseMs,
      int64_t nowMs);

  bool covers(
      const Agent& agent,
      uint32_t framework,
      uint32_t role,
      const Parts& offer,
      int64_t nowMs) const;

  // Whether the filter is in force: neither expired nor dropped.
  bool lasts(const OfferFilter& filter, int64_t nowMs) const;

  // Whether the filter was dropped. Its role may no longer exist then.
  bool isDropped(const OfferFilter& filter) const;

  void drop(uint32_t framework, uint32_t role);
  void dropFramework(uint32_t framework);

  // Call before removing the agent's record, or when its attributes change.
  void dropAgent(uint32_t agent);

  // Removes expired filters and, if many have accumulated, dropped ones.
  void expire(int64_t nowMs);

  size_t size() const { return count; }

  size_t countOf(uint32_t role) const;

private:
  // Filters of a framework in a role.
  struct Client
  {
    uint32_t generation = 0; // From 1.
    size_t count = 0;
  };

  struct Expiry
  {
    int64_t ms;
    uint32_t agent;

    bool operator>(const Expiry& that) const { return ms > that.ms; }
  };

  using Expiries =
      std::priority_queue<Expiry, std::vector<Expiry>, std::greater<Expiry>>;
  using Gone = std::function<bool(const OfferFilter&)>;

  // Removes the agent's filters in [begin, end) for which `gone` is true.
  void sweep(Agent* agent, size_t begin, size_t end, const Gone& gone);
  void sweepDropped();
  void countIn(uint32_t role, ptrdiff_t more);
  void rebuildExpiries();

  static std::pair<size_t, size_t>
  range(const Agent& agent, uint32_t framework, uint32_t role);

  Table<Agent>* const agents;
  ResourceClasses* const classes;

  int64_t intervalMs = 1000;
  std::unordered_map<uint64_t, Client> clients;
  std::unordered_map<uint32_t, size_t> ofRole; // In force, by role.
  uint32_t generations = 0;                    // Generations started.
  size_t count = 0;                            // In force.
  size_t records = 0; // Stored in agents, including dropped ones.

  // Expiry times by agent, earliest first. An entry remains when its filter is
  // removed.
  Expiries expiries;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_BOOKS_FILTERS_HPP__
