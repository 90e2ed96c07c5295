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

// Why a session or an attempt ended.
enum class Cause : size_t
{
  UNREACHABLE, // No answer.
  LOST,        // The stream broke, or the sidecar shut down.
  SILENT,      // The sidecar missed a deadline.
  MALFORMED,   // The sidecar broke the protocol.
  REFUSED,     // The sidecar ended the session with an error.
  QUEUE_FULL,  // The outgoing queue was full.
  OVERSIZED,   // An event is larger than the sidecar reads.
  SNAPSHOT,    // The owner's snapshot is malformed.
};

constexpr size_t CAUSE_COUNT = 8;

// Name for metrics and logs, such as "silent".
const char* causeName(Cause cause);


// The keeper's gauges, and its counters since it was created.
struct Stats
{
  // The sidecar has the whole state and answers.
  bool connected = false;
  Duration sessionAge{0};

  uint64_t attempts = 0; // Streams begun.
  uint64_t sessions = 0; // Sessions that became connected.
  uint64_t resyncs = 0;  // Snapshots after the first.

  // Ended attempts and sessions, by `Cause`.
  std::array<uint64_t, CAUSE_COUNT> ends{};
  std::string lastEnd;

  uint64_t events = 0;
  uint64_t batches = 0;
  uint64_t cycles = 0; // Asked for.
  uint64_t decisions = 0;

  // Outcomes sent, by number of the reason; unknown numbers count as 0.
  std::array<uint64_t, wire::OutcomeReason_ARRAYSIZE> outcomes{};

  // Outgoing messages not sent yet; batches without an answer.
  size_t queueMessages = 0;
  size_t queueBytes = 0;
  size_t unanswered = 0;

  // Round trips of recent batches, from submission to answer.
  std::chrono::microseconds roundTripP50{0};
  std::chrono::microseconds roundTripP90{0};
  std::chrono::microseconds roundTripP99{0};
  std::chrono::microseconds roundTripMax{0};
};


// A published number: the name of its metric below `allocator/sidecar/` (empty:
// no metric), the metric's value, and a function that writes the number to the
// message for the sidecar (empty: not sent).
template <typename Stats>
struct Stat
{
  std::string metric;
  std::function<double(const Stats&)> value;
  std::function<void(const Stats&, wire::ModuleFigures*)> write;
};


// A member published unchanged; `set` is the setter of the sidecar's message.
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


const std::vector<Stat<Stats>>& published();

// Upper bound on the size of all figures in a message: fewer than a hundred
// figures of at most eleven bytes.
constexpr size_t STATS_BYTES_MAX = 1100;

// Name of a reason for metrics and logs, such as "below_minimum".
std::string reasonName(wire::OutcomeReason reason);

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_STATS_HPP__
