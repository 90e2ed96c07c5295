#ifndef __ALLOCATOR_SESSION_COUNTERS_HPP__
#define __ALLOCATOR_SESSION_COUNTERS_HPP__

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "allocator/v1/session.pb.h"

#include "session/clock.hpp"

namespace allocator {
namespace session {

namespace wire = ::allocator::v1;

// Why a session, or an attempt to have one, ended.
enum class Cause : size_t
{
  UNREACHABLE, // Nobody answered.
  LOST,        // The stream broke, or the sidecar shut down.
  SILENT,      // The sidecar did not answer in time.
  MALFORMED,   // The sidecar broke the protocol.
  REFUSED,     // The sidecar ended the session with an error.
  QUEUE_FULL,  // The outgoing queue was full.
  OVERSIZED,   // An event is larger than the sidecar reads.
  SNAPSHOT,    // The owner's snapshot is not well formed.
};

constexpr size_t CAUSE_COUNT = 8;

// A name for metrics and logs, such as "silent".
const char* causeName(Cause cause);


// What happened since the keeper was made, and how it stands.
struct Counters
{
  // Whether a session is in step: the sidecar has the whole state and
  // answers.
  bool connected = false;
  Duration sessionAge{0};

  uint64_t attempts = 0; // Streams that were begun.
  uint64_t sessions = 0; // Sessions that came in step.
  uint64_t resyncs = 0;  // Snapshots after the first one.

  // Attempts and sessions that ended, by `Cause`.
  std::array<uint64_t, CAUSE_COUNT> ends{};
  std::string lastEnd;

  uint64_t events = 0;
  uint64_t batches = 0;
  uint64_t cycles = 0; // That were asked for.
  uint64_t decisions = 0;

  // Outcomes that were sent, by the number of their reason; numbers that
  // this version does not know count as 0.
  std::array<uint64_t, wire::OutcomeReason_ARRAYSIZE> outcomes{};

  // What waits to be sent, and batches that wait for their answer.
  size_t queueMessages = 0;
  size_t queueBytes = 0;
  size_t unanswered = 0;

  // Of the latest batches, from handing over to the answer.
  std::chrono::microseconds roundTripP50{0};
  std::chrono::microseconds roundTripP90{0};
  std::chrono::microseconds roundTripP99{0};
  std::chrono::microseconds roundTripMax{0};
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_COUNTERS_HPP__
