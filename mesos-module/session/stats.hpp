#ifndef __ALLOCATOR_SESSION_STATS_HPP__
#define __ALLOCATOR_SESSION_STATS_HPP__

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

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
struct Stats
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


// One of the numbers that are published: what the master's metrics call it
// below `allocator/sidecar/` (empty where they do not show it), its value
// there, and how it is written for the sidecar (not at all where that is
// empty).
template <typename Stats>
struct Stat
{
  std::string metric;
  std::function<double(const Stats&)> value;
  std::function<void(const Stats&, wire::ModuleFigures*)> write;
};


// A member that is published as it is; `set` is of the sidecar's message.
template <typename Stats, typename Value, typename Written>
Stat<Stats> stat(
    const char* metric,
    Value Stats::*member,
    void (wire::ModuleFigures::*set)(Written))
{
  return {
      metric,
      [=](const Stats& stats) { return double(stats.*member); },
      [=](const Stats& stats, wire::ModuleFigures* figures) {
        (figures->*set)(stats.*member);
      }};
}


template <typename Stats, typename Value>
Stat<Stats> stat(const char* metric, Value Stats::*member)
{
  return {
      metric,
      [=](const Stats& stats) { return double(stats.*member); },
      nullptr};
}


template <typename Stats>
void write(
    const std::vector<Stat<Stats>>& table,
    const Stats& stats,
    wire::ModuleFigures* figures)
{
  for (const Stat<Stats>& each : table) {
    if (each.write) {
      each.write(stats, figures);
    }
  }
}


// All that a keeper publishes.
const std::vector<Stat<Stats>>& published();

// More bytes than all numbers ever have in a message: each takes eleven at
// most, and there are fewer than a hundred.
constexpr size_t STATS_BYTES_MAX = 1100;

// The name of a reason for metrics and logs, such as "below_minimum".
std::string reasonName(wire::OutcomeReason reason);

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_STATS_HPP__
