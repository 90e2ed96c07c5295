#ifndef __ALLOCATOR_BRAIN_READY_HPP__
#define __ALLOCATOR_BRAIN_READY_HPP__

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "allocator/v1/session.pb.h"

#include "brain/books/resource_classes.hpp"

#include "session/decisions.hpp"

namespace allocator {
namespace brain {

namespace wire = ::allocator::v1;

// Effects to carry out, list by list in the order of `Ready`'s members, and
// within a list in the order of its entries.

// A message for the session.
struct Message
{
  enum class Kind
  {
    START,    // Start connecting to the sidecar.
    STOP,     // End the session and stay disconnected.
    SNAPSHOT, // One part; the last chunk is marked.
    EVENT,
    OUTCOMES,
    CYCLE,
  };

  Kind kind;

  std::vector<wire::SnapshotChunk> chunks;
  wire::Event event;
  std::unique_ptr<session::Outcomes> outcomes;

  // CYCLE: the agents to allocate (empty: all), and the time the cycle counts
  // from. A late cycle counts from when it was due.
  std::vector<uint32_t> agents;
  int64_t clockMs = 0;

  // Set on events and on the last part of a snapshot; increases, also from one
  // session to the next. A decision carries the revision of the last message
  // that the sidecar had applied.
  uint64_t revision = 0;
};


// Resources to offer to a framework; the books already hold them.
struct Offer
{
  uint32_t framework;
  uint32_t role;
  uint32_t agent;
  Parts parts;
};


// Asks a framework to leave an agent before maintenance.
struct InverseOffer
{
  uint32_t framework;
  uint32_t agent;
};


struct Log
{
  enum class Level
  {
    INFO,
    WARNING,
    ERROR,
  };

  Level level;
  std::string text;
};


struct Ready
{
  std::vector<Log> logs;
  std::vector<Message> messages;
  std::vector<Offer> offers;
  std::vector<InverseOffer> inverseOffers;

  // Resource classes no longer in use; the adapter may reuse their numbers.
  std::vector<uint32_t> forgotten;

  // `soon`: wake the brain once the calls that are queued now have run.
  // `wakeMs`: wake it at this time at the latest; INT64_MAX for never.
  bool soon = false;
  int64_t wakeMs = INT64_MAX;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_READY_HPP__
