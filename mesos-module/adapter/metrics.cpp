#include "adapter/metrics.hpp"

#include <algorithm>

#include <process/defer.hpp>
#include <process/future.hpp>
#include <process/metrics/metrics.hpp>

#include "adapter/attempt.hpp"
#include "adapter/process.hpp"

using std::string;

using process::Future;

namespace allocator {
namespace adapter {
namespace {

string reasonName(int reason)
{
  string name =
      wire::OutcomeReason_Name(static_cast<wire::OutcomeReason>(reason));
  name = name.substr(string("OUTCOME_REASON_").size());
  std::transform(name.begin(), name.end(), name.begin(), ::tolower);
  return name;
}

} // namespace {


Metrics::Metrics(AllocatorProcess& process)
{
  AllocatorProcess* p = &process;

  auto count =
      [p](const std::function<double(const session::Counters&)>& f) -> Read {
    return [p, f]() {
      return p->keeper == nullptr ? 0.0 : f(p->keeper->counters());
    };
  };

  using C = session::Counters;
  const std::vector<std::pair<string, std::function<double(const C&)>>> counts =
      {
          {"connected", [](const C& c) { return c.connected ? 1.0 : 0.0; }},
          {"session_age_secs",
           [](const C& c) { return c.sessionAge.count() / 1000.0; }},
          {"attempts", [](const C& c) { return double(c.attempts); }},
          {"sessions", [](const C& c) { return double(c.sessions); }},
          {"resyncs", [](const C& c) { return double(c.resyncs); }},
          {"events", [](const C& c) { return double(c.events); }},
          {"batches", [](const C& c) { return double(c.batches); }},
          {"cycles", [](const C& c) { return double(c.cycles); }},
          {"decisions", [](const C& c) { return double(c.decisions); }},
          {"queue_messages",
           [](const C& c) { return double(c.queueMessages); }},
          {"queue_bytes", [](const C& c) { return double(c.queueBytes); }},
          {"unanswered", [](const C& c) { return double(c.unanswered); }},
          {"round_trip_ms/p50",
           [](const C& c) { return c.roundTripP50.count() / 1000.0; }},
          {"round_trip_ms/p90",
           [](const C& c) { return c.roundTripP90.count() / 1000.0; }},
          {"round_trip_ms/p99",
           [](const C& c) { return c.roundTripP99.count() / 1000.0; }},
          {"round_trip_ms/max",
           [](const C& c) { return c.roundTripMax.count() / 1000.0; }},
      };

  for (const auto& entry : counts) {
    add(process, entry.first, count(entry.second));
  }

  for (size_t cause = 0; cause < session::CAUSE_COUNT; ++cause) {
    add(process,
        string("ends/") +
            session::causeName(static_cast<session::Cause>(cause)),
        count([=](const C& c) { return double(c.ends[cause]); }));
  }

  for (int reason = 1; reason < wire::OutcomeReason_ARRAYSIZE; ++reason) {
    add(process, "outcomes/" + reasonName(reason), count([=](const C& c) {
          return double(c.outcomes[reason]);
        }));
  }

  using B = brain::Counts;
  const std::vector<std::pair<string, std::function<double(const B&)>>> ours = {
      {"fallback_cycles", [](const B& b) { return double(b.fallbackCycles); }},
      {"kinds", [](const B& b) { return double(b.kinds); }},
      {"set_aside", [](const B& b) { return double(b.setAside); }},
      {"breaker_trips", [](const B& b) { return double(b.breakerTrips); }},
      {"breaker_open", [](const B& b) { return b.breakerOpen ? 1.0 : 0.0; }},
      {"barren_intervals",
       [](const B& b) { return double(b.barrenIntervals); }},
      {"barren_turns", [](const B& b) { return double(b.barrenTurns); }},
      {"shadow/offers", [](const B& b) { return double(b.compared.offers); }},
      {"shadow/same", [](const B& b) { return double(b.compared.same); }},
      {"shadow/other", [](const B& b) { return double(b.compared.other); }},
      {"shadow/none", [](const B& b) { return double(b.compared.none); }},
      {"filters", [](const B& b) { return double(b.filters); }},
      {"agents", [](const B& b) { return double(b.agents); }},
      {"frameworks", [](const B& b) { return double(b.frameworks); }},
  };

  for (const auto& entry : ours) {
    const auto read = entry.second;
    add(process, entry.first, [p, read]() { return read(p->brain.counts()); });
  }

  add(process, "misfits", [p]() {
    return double(p->misfits + p->brain.counts().misfits);
  });
}


Metrics::~Metrics()
{
  for (const process::metrics::PullGauge& gauge : gauges) {
    process::metrics::remove(gauge);
  }
}


void Metrics::add(AllocatorProcess& actor, const string& name, const Read& read)
{
  const std::function<Future<double>()> pull =
      process::defer(actor.self(), [read]() { return answer<double>(read); });

  gauges.emplace_back("allocator/sidecar/" + name, pull);
  process::metrics::add(gauges.back());
}

} // namespace adapter {
} // namespace allocator {
