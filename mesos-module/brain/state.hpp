#ifndef __ALLOCATOR_BRAIN_STATE_HPP__
#define __ALLOCATOR_BRAIN_STATE_HPP__

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "allocator/v1/session.pb.h"

#include "brain/names.hpp"
#include "brain/pieces.hpp"

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


// What an agent has of a piece. What is free is `total` less `held`, or
// nothing where more is held than there is: a total may shrink below it.
struct Slot
{
  uint32_t piece;
  int64_t total = 0;
  int64_t held = 0; // By all frameworks together.

  // Of ranges and sets, which numbers.
  Spans all;
  Spans free;
};


// What a framework holds on an agent in a role, offered or in use.
struct Holding
{
  uint32_t framework;
  uint32_t role;
  Parts parts;
};


// A refusal bars what its parts contain until it expires, or until its
// framework's refusals in the role are void (see `Filters`).
struct Refusal
{
  uint32_t framework;
  uint32_t role;
  uint32_t period; // Of the framework in the role.
  int64_t expiresMs;
  std::shared_ptr<const Parts> parts;
};


// An agent's record, shared with a snapshot that is being laid out; so
// whoever changes it asks `Table::edit` for it.
struct Agent
{
  std::string id;
  std::shared_ptr<const wire::Agent> info; // Without handle and amounts.
  std::string hostname;
  std::string region; // Empty: none is known.
  bool active = true;
  bool multiRole = false;
  bool hierarchicalRole = false;
  bool gpus = false;
  Unavailability unavailability;

  std::vector<Slot> slots;       // By piece.
  std::vector<Holding> held;     // By framework and role.
  std::vector<Refusal> refusals; // By framework and role.
};


// Somebody competes: a framework in a role.
struct Framework
{
  std::string id;
  std::shared_ptr<const wire::Framework> info; // Without handles and roles.
  bool active = false;
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


// Records by number. A record that a snapshot keeps is copied before it
// is changed, so that the snapshot is of one moment.
template <typename Record>
class Table
{
public:
  using Kept = std::vector<std::shared_ptr<const Record>>;

  // Null where the number, which may be any, names nothing.
  const Record* find(uint32_t number) const
  {
    return number < records.size() ? records[number].get() : nullptr;
  }

  // Of a record that is there.
  Record* edit(uint32_t number)
  {
    std::shared_ptr<Record>& record = records[number];
    if (record.use_count() > 1) {
      record = std::make_shared<Record>(*record);
    }
    return record.get();
  }

  Record* add(uint32_t number)
  {
    if (number >= records.size()) {
      records.resize(number + 1);
    }
    records[number] = std::make_shared<Record>();
    ++count;
    return records[number].get();
  }

  void remove(uint32_t number)
  {
    if (find(number) != nullptr) {
      records[number].reset();
      --count;
    }
  }

  size_t size() const { return count; }

  // One more than the largest number.
  uint32_t end() const { return static_cast<uint32_t>(records.size()); }

  // All records as they are now.
  Kept keep() const { return Kept(records.begin(), records.end()); }

private:
  std::vector<std::shared_ptr<Record>> records;
  size_t count = 0;
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

  bool fallback = true;
  int64_t fallbackAfterMs = 1000;

  uint64_t badDecisionsMax = 1000;
  int64_t breakerPauseMs = 30000;

  uint64_t seed = 0;

  // How much is done at a time, for the master waits meanwhile: decisions
  // judged; agents laid out, or offered in fallback; refusals laid out.
  size_t sliceDecisions = 2048;
  size_t sliceAgents = 1024;
  size_t sliceRefusals = 8192;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_STATE_HPP__
