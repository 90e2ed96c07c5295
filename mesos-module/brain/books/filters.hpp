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

// What frameworks refused. A filter bars what its parts contain until it
// expires. It lies in the record of its agent and goes with that; all of a
// framework's in a role are dropped at once by a new generation. They are swept
// out of the agents when they expire, when something is added beside them, or
// when they are many.
class Filters
{
public:
  Filters(Table<Agent>* _agents, ResourceClasses* _classes)
    : agents(_agents), classes(_classes)
  {
  }

  // A filter outlives the next cycle (MESOS-4302).
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

  // Whether it is neither expired nor dropped.
  bool lasts(const OfferFilter& filter, int64_t nowMs) const;

  // Its role may have been given up since then.
  bool isDropped(const OfferFilter& filter) const;

  void drop(uint32_t framework, uint32_t role);
  void dropFramework(uint32_t framework);

  // To be called before the agent's record is removed, and where it
  // became another one.
  void dropAgent(uint32_t agent);

  // Forgets those that have expired, and those that were dropped where there
  // are many; others are not looked at.
  void expire(int64_t nowMs);

  size_t size() const { return count; }

  // Those in the role.
  size_t countOf(uint32_t role) const;

private:
  // Of a framework in a role.
  struct Client
  {
    uint32_t generation = 0; // None is 0.
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

  // Takes out, of those from `begin` to `end`, what is gone.
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
  std::unordered_map<uint32_t, size_t> ofRole; // Those that were not dropped.
  uint32_t generations = 0;                    // That have begun.
  size_t count = 0;                            // The same in all roles.
  size_t records = 0;                          // All that lie with agents.

  // When an agent has something that expires, the first on top. Filters
  // that went before leave their entries here.
  Expiries expiries;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_BOOKS_FILTERS_HPP__
