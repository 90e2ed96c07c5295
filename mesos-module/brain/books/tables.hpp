#ifndef __ALLOCATOR_BRAIN_BOOKS_TABLES_HPP__
#define __ALLOCATOR_BRAIN_BOOKS_TABLES_HPP__

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "allocator/v1/session.pb.h"

#include "brain/books/names.hpp"
#include "brain/books/resource_classes.hpp"
#include "brain/words/bounds.hpp"

namespace allocator {
namespace brain {

// A window of maintenance.
struct Unavailability
{
  bool scheduled = false;
  int64_t startMs = 0;
  int64_t durationMs = 0; // 0: without end.
};


// Amounts by the name of the resource, in thousandths.
using Quantities = std::vector<std::pair<std::string, int64_t>>;


// What an agent has of a resource class. What is free is `total` less `held`,
// or nothing where more is held than there is: a total may shrink below it.
struct AgentResource
{
  uint32_t resourceClass;
  int64_t total = 0;
  int64_t held = 0; // By all frameworks together.

  // Of ranges and sets, which numbers, and how many are free, in thousandths.
  Spans all;
  Spans free;
  int64_t freeAmount = 0;
};


// What a framework holds on an agent in a role, offered or in use.
struct Allocation
{
  uint32_t framework;
  uint32_t role;
  Parts parts;
};


// A filter bars what its parts contain until it expires, or until its
// framework's filters in the role are void (see `Filters`).
struct OfferFilter
{
  uint32_t framework;
  uint32_t role;
  uint32_t generation; // Of the framework in the role.
  int64_t expiresMs;
  std::shared_ptr<const Parts> parts;
};


// An agent's record. A snapshot that is being built may pin it; so whoever
// changes it asks `Table::edit` for it.
struct Agent
{
  std::string id;
  Teller teller = 0;
  std::shared_ptr<const wire::Agent> info; // Without handle and amounts.
  std::string hostname;
  std::string region; // Empty: none is known.
  bool active = true;
  bool multiRole = false;
  bool hierarchicalRole = false;
  bool gpus = false;
  Unavailability unavailability;

  // Roles that only it brought, and those that it uses of which a sidecar is
  // not told, with one of them.
  size_t levels = 0;
  size_t untold = 0;
  std::string untoldRole;

  std::vector<AgentResource> resources; // By resource class.
  std::vector<Allocation> allocations;  // By framework and role.
  std::vector<OfferFilter> filters;     // By framework and role.
};


// What of the room for all somebody takes: levels of the tree of roles, and
// pairs of a framework and a role.
struct Footprint
{
  size_t levels = 0;
  size_t pairs = 0;
};


// Somebody competes: a framework in a role.
struct Framework
{
  std::string id;
  Teller teller = 0;
  std::shared_ptr<const wire::Framework> info; // Without handles and roles.
  bool active = false;
  std::string payer;
  Footprint footprint;
  std::set<uint32_t> roles;
  std::set<uint32_t> suppressed;

  bool multiRole = false;
  bool gpus = false;
  bool shared = false;
  bool revocable = false;
  bool refinement = false;
  bool regionAware = false;

  // What an offer in a role must reach: any of these. A role that is not
  // named has the master's minimum; an empty list allows everything.
  std::map<uint32_t, std::vector<Quantities>> minimum;

  // Agents, by number, that offer constraints exclude, by role.
  std::map<uint32_t, std::vector<bool>> excluded;
};


// A framework in a role, as one number.
inline uint64_t clientKey(uint32_t framework, uint32_t role)
{
  return (uint64_t(framework) << 32) | role;
}


// Records by number. For a snapshot they can be pinned as they are at one
// moment: whoever changes one then leaves a copy of what it was.
template <typename Record>
class Table
{
public:
  // Null where the number, which may be any, names nothing.
  const Record* find(uint32_t number) const
  {
    return number < records.size() ? records[number].get() : nullptr;
  }

  // Of a record that is there.
  Record* edit(uint32_t number)
  {
    if (isToPin(number)) {
      pinned[number].reset(new Record(*records[number]));
    }
    return records[number].get();
  }

  Record* add(uint32_t number)
  {
    if (isToPin(number)) {
      pinned[number] = nullptr;
    }
    if (number >= records.size()) {
      records.resize(number + 1);
    }
    records[number].reset(new Record());
    ++count;
    return records[number].get();
  }

  void remove(uint32_t number)
  {
    if (find(number) == nullptr) {
      return;
    }
    if (isToPin(number)) {
      pinned[number] = std::move(records[number]);
    }
    records[number].reset();
    --count;
  }

  size_t size() const { return count; }

  // One more than the largest number.
  uint32_t end() const { return static_cast<uint32_t>(records.size()); }

  // Pins all records as they are now.
  void pin()
  {
    pinned.clear();
    pinnedFrom = 0;
    pinnedEnd = end();
  }

  // One more than the largest number that is pinned.
  uint32_t endPinned() const { return pinnedEnd; }

  // What the number named then, or null.
  const Record* findPinned(uint32_t number) const
  {
    auto found = pinned.find(number);
    return found == pinned.end() ? find(number) : found->second.get();
  }

  // Those below the number need not be pinned any more.
  void unpinBelow(uint32_t number)
  {
    for (; pinnedFrom < number; ++pinnedFrom) {
      pinned.erase(pinnedFrom);
    }
  }

  void unpin()
  {
    pinned.clear();
    pinnedFrom = pinnedEnd = 0;
  }

private:
  bool isToPin(uint32_t number) const
  {
    return number >= pinnedFrom && number < pinnedEnd &&
        pinned.count(number) == 0;
  }

  std::vector<std::unique_ptr<Record>> records;
  size_t count = 0;

  // Those that are others by now, or no more; null where there was none.
  std::unordered_map<uint32_t, std::unique_ptr<Record>> pinned;
  uint32_t pinnedFrom = 0;
  uint32_t pinnedEnd = 0;
};


// What the allocator was initialised with, and the module's parameters.
struct Options
{
  int64_t intervalMs = 1000;
  bool filterGpus = true;
  std::string region; // The master's; empty: none is known.

  bool hasMinimum = false;
  std::vector<Quantities> minimum;     // Any of these.
  std::set<std::string> excludedNames; // Do not count in shares.

  int64_t recoveryTimeoutMs = 600000;
  double recoveryFactor = 0.8;

  // Agents whose maintenance begins later are left by whom a sidecar wants
  // to leave them, and by nobody else.
  int64_t inverseWithinMs = INT64_MAX;

  bool fallback = true;
  int64_t fallbackAfterMs = 1000;

  // Another allocator decides: nothing is offered, what the sidecar decides is
  // compared with what the other one offers. There is no fallback then.
  bool shadow = false;

  // Intervals in a row in which a sidecar may leave lie what somebody would
  // take, before the module takes a turn; 0: as many as it likes.
  uint64_t barrenIntervalsMax = 300;

  uint64_t badDecisionsMax = 1000;
  int64_t breakerPauseMs = 30000;

  uint64_t seed = 0;

  // Roles that nobody names any more are given up when there are so many
  // more than at the last time, besides twice as many; and those that a
  // session heard of, with the session, when there are so many.
  size_t rolesSpare = 1024;
  size_t rolesSentMax = 16384;

  // Roles that an agent may bring that nobody else names.
  size_t levelsOfAgentMax = LEVELS_OF_AGENT_MAX;

  // How much is done at a time, for the master waits meanwhile: decisions
  // judged; agents in a snapshot, or offered in fallback; what was looked at in
  // either, for each decision or framework that was asked: resource classes,
  // kinds, and spans by sixteens; filters in a snapshot.
  size_t sliceDecisions = 2048;
  size_t sliceAgents = 1024;
  size_t sliceParts = 131072;
  size_t sliceFilters = 8192;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_BOOKS_TABLES_HPP__
