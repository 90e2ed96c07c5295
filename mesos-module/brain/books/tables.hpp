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
#include "brain/user_input/bounds.hpp"

namespace allocator {
namespace brain {

// A maintenance window.
struct Unavailability
{
  bool scheduled = false;
  int64_t startMs = 0;
  int64_t durationMs = 0; // 0: no end.
};


// Amounts by resource name, in thousandths.
using Quantities = std::vector<std::pair<std::string, int64_t>>;


// An agent's amounts of one resource class. `total - held` is free. A total may
// shrink below what is held; then nothing is free.
struct AgentResource
{
  uint32_t resourceClass;
  int64_t total = 0;
  int64_t held = 0; // By all frameworks.

  // Ranges and sets: all elements, the free elements, and the number of free
  // elements in thousandths.
  Spans all;
  Spans free;
  int64_t freeAmount = 0;
};


// A framework's holdings on an agent in a role, offered or in use.
struct Allocation
{
  uint32_t framework;
  uint32_t role;
  Parts parts;
};


// Prevents offers whose resources are all among the filter's parts, until the
// filter expires or is dropped (see `Filters`).
struct OfferFilter
{
  uint32_t framework;
  uint32_t role;
  uint32_t generation; // Of the framework and role.
  int64_t expiresMs;
  std::shared_ptr<const Parts> parts;
};


// An agent. Change it only through `Table::edit`, because a snapshot under
// construction may have pinned it.
struct Agent
{
  std::string id;
  Reporter reporter = 0;
  std::shared_ptr<const wire::Agent> info; // Without handle and amounts.
  std::string hostname;
  std::string region; // Empty: unknown.
  bool active = true;
  bool multiRole = false;
  bool hierarchicalRole = false;
  bool gpus = false;
  Unavailability unavailability;

  // Role levels that were added for this agent alone; the number of folded
  // roles that it uses, and the path of the first one.
  size_t levels = 0;
  size_t folded = 0;
  std::string foldedRole;

  std::vector<AgentResource> resources; // Sorted by resource class.
  std::vector<Allocation> allocations;  // Sorted by framework and role.
  std::vector<OfferFilter> filters;     // Sorted by framework and role.
};


// Share of the global limits in use: levels of the role tree, and pairs of
// framework and role.
struct Footprint
{
  size_t levels = 0;
  size_t pairs = 0;
};


// A framework, which competes in each of its roles.
struct Framework
{
  std::string id;
  Reporter reporter = 0;
  std::shared_ptr<const wire::Framework> info; // Without handles and roles.
  bool active = false;
  std::string payer;
  Footprint footprint;
  std::set<uint32_t> roles;
  std::set<uint32_t> suppressed;

  // Its last REQUEST, as accepted; null: none. Sent again in each new session.
  std::shared_ptr<const wire::ResourceRequest> request;

  bool multiRole = false;
  bool gpus = false;
  bool shared = false;
  bool revocable = false;
  bool refinement = false;
  bool regionAware = false;

  // Minimum of an offer, by role: any one of the alternatives suffices. For a
  // role that is not listed the master's minimum applies; an empty list allows
  // every offer.
  std::map<uint32_t, std::vector<Quantities>> minimum;

  // Agents that offer constraints exclude: by role, indexed by agent number.
  std::map<uint32_t, std::vector<bool>> excluded;
};


inline uint64_t clientKey(uint32_t framework, uint32_t role)
{
  return (uint64_t(framework) << 32) | role;
}


// Records by number. `pin` freezes their current state for a snapshot; a later
// change keeps a copy of the pinned record (copy on write).
template <typename Record>
class Table
{
public:
  // Null if the number is unbound; any number is allowed.
  const Record* find(uint32_t number) const
  {
    return number < records.size() ? records[number].get() : nullptr;
  }

  // The record must exist.
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

  void pin()
  {
    pinned.clear();
    pinnedFrom = 0;
    pinnedEnd = end();
  }

  // One more than the largest number that is pinned.
  uint32_t endPinned() const { return pinnedEnd; }

  // The record as it was when pinned, or null.
  const Record* findPinned(uint32_t number) const
  {
    auto found = pinned.find(number);
    return found == pinned.end() ? find(number) : found->second.get();
  }

  // Releases pinned records below the number.
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

  // The pinned state of records that changed or were removed since; null if the
  // number was unbound.
  std::unordered_map<uint32_t, std::unique_ptr<Record>> pinned;
  uint32_t pinnedFrom = 0;
  uint32_t pinnedEnd = 0;
};


// The allocator's options and the module's parameters.
struct Options
{
  int64_t intervalMs = 1000;
  bool filterGpus = true;
  std::string region; // Of the master; empty: unknown.

  bool hasMinimum = false;
  std::vector<Quantities> minimum;     // Any one of these suffices.
  std::set<std::string> excludedNames; // Not counted in shares.

  int64_t recoveryTimeoutMs = 600000;
  double recoveryFactor = 0.8;

  // If an agent's maintenance begins later than this, only frameworks that the
  // sidecar reclaims from get inverse offers for it.
  int64_t inverseWithinMs = INT64_MAX;

  bool fallback = true;
  int64_t fallbackAfterMs = 1000;

  // Another allocator decides; the module only compares the sidecar's decisions
  // with that allocator's offers. Disables the fallback.
  bool shadow = false;

  // Consecutive barren intervals after which the module decides one cycle; 0:
  // never.
  uint64_t barrenIntervalsMax = 300;

  uint64_t badDecisionsMax = 1000;
  int64_t breakerPauseMs = 30000;

  uint64_t seed = 0;

  // Unused roles are removed when the number of roles exceeds `rolesSpare` plus
  // twice the number that the last cleanup left. A session is replaced when it
  // knows more than `rolesSentMax` unused roles.
  size_t rolesSpare = 1024;
  size_t rolesSentMax = 16384;

  // Role levels that may be added for one agent alone.
  size_t levelsOfAgentMax = LEVELS_OF_AGENT_MAX;

  // Limits on one slice of work, during which the master's calls wait:
  // decisions judged; agents in a snapshot or in fallback; units of work in
  // judging and fallback; filters in a snapshot. A unit is a resource class, a
  // kind, or 16 spans, processed for one decision or for one framework that
  // fallback tries.
  size_t sliceDecisions = 2048;
  size_t sliceAgents = 1024;
  size_t sliceParts = 131072;
  size_t sliceFilters = 8192;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_BOOKS_TABLES_HPP__
