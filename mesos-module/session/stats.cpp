#include "session/stats.hpp"

#include <algorithm>
#include <cctype>

namespace allocator {
namespace session {
namespace {

// The protocol numbers causes like `Cause`, but from 1.
static_assert(
    wire::SESSION_END_UNREACHABLE == size_t(Cause::UNREACHABLE) + 1 &&
        wire::SESSION_END_SILENT == size_t(Cause::SILENT) + 1 &&
        wire::SESSION_END_SNAPSHOT == size_t(Cause::SNAPSHOT) + 1 &&
        wire::SessionEnd_ARRAYSIZE == CAUSE_COUNT + 1,
    "SessionEnd and Cause differ");


using Figures = wire::ModuleFigures;
using Time = std::chrono::microseconds;


// A round trip time: in milliseconds as a metric, in microseconds for the
// sidecar.
Stat<Stats> roundTrip(
    const char* which,
    Time Stats::*member,
    void (Figures::*set)(int64_t) = nullptr)
{
  Stat<Stats> result{
      std::string("round_trip_ms/") + which,
      [=](const Stats& stats) { return (stats.*member).count() / 1000.0; },
      nullptr};

  if (set != nullptr) {
    result.write = [=](const Stats& stats, Figures* figures) {
      (figures->*set)((stats.*member).count());
    };
  }

  return result;
}


std::vector<Stat<Stats>> makeTable()
{
  std::vector<Stat<Stats>> table = {
      stat("connected", &Stats::connected),
      {"session_age_secs",
       [](const Stats& stats) { return stats.sessionAge.count() / 1000.0; },
       nullptr},
      stat("attempts", &Stats::attempts, &Figures::set_attempts),
      stat("sessions", &Stats::sessions, &Figures::set_sessions),
      stat("resyncs", &Stats::resyncs, &Figures::set_resyncs),
      stat("events", &Stats::events),
      stat("batches", &Stats::batches),
      stat("cycles", &Stats::cycles),
      stat("decisions", &Stats::decisions),
      stat(
          "queue_messages",
          &Stats::queueMessages,
          &Figures::set_queue_messages),
      stat("queue_bytes", &Stats::queueBytes, &Figures::set_queue_bytes),
      stat("unanswered", &Stats::unanswered, &Figures::set_unanswered),
      roundTrip("p50", &Stats::roundTripP50, &Figures::set_round_trip_p50_us),
      roundTrip("p90", &Stats::roundTripP90),
      roundTrip("p99", &Stats::roundTripP99, &Figures::set_round_trip_p99_us),
      roundTrip("max", &Stats::roundTripMax, &Figures::set_round_trip_max_us),
      {"", nullptr, [](const Stats& stats, Figures* figures) {
         figures->add_ends(0);
         for (uint64_t count : stats.ends) {
           figures->add_ends(count);
         }
         for (uint64_t count : stats.outcomes) {
           figures->add_outcomes(count);
         }
       }}};

  for (size_t cause = 0; cause < CAUSE_COUNT; ++cause) {
    table.push_back(
        {std::string("ends/") + causeName(static_cast<Cause>(cause)),
         [=](const Stats& stats) { return double(stats.ends[cause]); },
         nullptr});
  }

  for (int reason = 1; reason < wire::OutcomeReason_ARRAYSIZE; ++reason) {
    table.push_back(
        {"outcomes/" + reasonName(static_cast<wire::OutcomeReason>(reason)),
         [=](const Stats& stats) { return double(stats.outcomes[reason]); },
         nullptr});
  }

  return table;
}

} // namespace {


const char* causeName(Cause cause)
{
  switch (cause) {
    case Cause::UNREACHABLE: return "unreachable";
    case Cause::LOST: return "lost";
    case Cause::SILENT: return "silent";
    case Cause::MALFORMED: return "malformed";
    case Cause::REFUSED: return "refused";
    case Cause::QUEUE_FULL: return "queue_full";
    case Cause::OVERSIZED: return "oversized";
    case Cause::SNAPSHOT: return "snapshot";
  }

  return "";
}


std::string reasonName(wire::OutcomeReason reason)
{
  std::string name =
      wire::OutcomeReason_Name(reason).substr(sizeof("OUTCOME_REASON_") - 1);
  std::transform(name.begin(), name.end(), name.begin(), ::tolower);
  return name;
}


const std::vector<Stat<Stats>>& published()
{
  static const std::vector<Stat<Stats>> table = makeTable();
  return table;
}

} // namespace session {
} // namespace allocator {
