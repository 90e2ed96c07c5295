#include "session/figures.hpp"

namespace allocator {
namespace session {

// The numbers of the protocol are those of `Cause`, from 1 on.
static_assert(
    wire::SESSION_END_UNREACHABLE == size_t(Cause::UNREACHABLE) + 1 &&
        wire::SESSION_END_SILENT == size_t(Cause::SILENT) + 1 &&
        wire::SESSION_END_SNAPSHOT == size_t(Cause::SNAPSHOT) + 1 &&
        wire::SessionEnd_ARRAYSIZE == CAUSE_COUNT + 1,
    "SessionEnd and Cause differ");


void writeFigures(const Counters& counters, wire::ModuleFigures* figures)
{
  figures->set_attempts(counters.attempts);
  figures->set_sessions(counters.sessions);
  figures->set_resyncs(counters.resyncs);

  figures->clear_ends();
  figures->add_ends(0);
  for (uint64_t count : counters.ends) {
    figures->add_ends(count);
  }

  figures->clear_outcomes();
  for (uint64_t count : counters.outcomes) {
    figures->add_outcomes(count);
  }

  figures->set_queue_messages(counters.queueMessages);
  figures->set_queue_bytes(counters.queueBytes);
  figures->set_unanswered(counters.unanswered);
  figures->set_round_trip_p50_us(counters.roundTripP50.count());
  figures->set_round_trip_p99_us(counters.roundTripP99.count());
  figures->set_round_trip_max_us(counters.roundTripMax.count());
}

} // namespace session {
} // namespace allocator {
