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

// What is to be done, in the order of the lists and of their entries.

// For the sidecar.
struct Message
{
  enum class Kind
  {
    START,    // Begin to have sessions.
    STOP,     // End the session, and have none.
    SNAPSHOT, // A part of the snapshot; the last one says so.
    EVENT,
    OUTCOMES,
    CYCLE,
  };

  Kind kind;

  std::vector<wire::SnapshotChunk> chunks;
  wire::Event event;
  std::unique_ptr<session::Outcomes> outcomes;

  // The agents to run the cycle over, empty for all; and as of when, for
  // a cycle that runs late counts as run when it was due.
  std::vector<uint32_t> agents;
  int64_t clockMs = 0;

  // Of the snapshot (in its last part) and of events; it ascends, over all
  // sessions. A decision says the revision of the last message
  // that the sidecar had taken in.
  uint64_t revision = 0;
};


// Resources that a framework is offered; they are held from now on.
struct Offer
{
  uint32_t framework;
  uint32_t role;
  uint32_t agent;
  Parts parts;
};


// A framework is asked to leave an agent before it is maintained.
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

  // Resource classes that nobody uses; their numbers may name others.
  std::vector<uint32_t> forgotten;

  // Wake the brain after what has been said by now; and at this time at
  // the latest, INT64_MAX for never.
  bool soon = false;
  int64_t wakeMs = INT64_MAX;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_READY_HPP__
