#include "brain/stats.hpp"

namespace allocator {
namespace brain {
namespace {

using Figures = ::allocator::v1::ModuleFigures;


// A counter of the comparison in shadow.
session::Stat<Stats> compared(
    const char* metric,
    uint64_t Comparison::Stats::*member,
    void (Figures::*set)(uint64_t))
{
  return {
      metric,
      [=](const Stats& stats) { return double(stats.compared.*member); },
      [=](const Stats& stats, Figures* figures) {
        (figures->*set)(stats.compared.*member);
      }};
}

} // namespace {


const std::vector<session::Stat<Stats>>& published()
{
  using session::stat;

  static const std::vector<session::Stat<Stats>> table = {
      // No name: the master publishes it under another one (`session/stats`).
      stat("", &Stats::cycles, &Figures::set_cycles),
      stat(
          "fallback_cycles",
          &Stats::fallbackCycles,
          &Figures::set_fallback_cycles),
      stat("", &Stats::fallbackOffers, &Figures::set_fallback_offers),
      stat("", &Stats::fallbackSinceMs, &Figures::set_fallback_since_ms),
      stat("", &Stats::fallbackUntilMs, &Figures::set_fallback_until_ms),
      stat("kinds", &Stats::kinds),
      stat("set_aside", &Stats::setAside, &Figures::set_set_aside),
      stat("misfits", &Stats::misfits, &Figures::set_misfits),
      stat("breaker_trips", &Stats::breakerTrips, &Figures::set_breaker_trips),
      stat("breaker_open", &Stats::breakerOpen, &Figures::set_breaker_open),
      stat(
          "barren_intervals",
          &Stats::barrenIntervals,
          &Figures::set_barren_intervals),
      stat("barren_turns", &Stats::barrenTurns, &Figures::set_barren_turns),
      stat("", &Stats::shadow, &Figures::set_shadow),
      compared(
          "shadow/offers",
          &Comparison::Stats::offers,
          &Figures::set_shadow_offers),
      compared(
          "shadow/same", &Comparison::Stats::same, &Figures::set_shadow_same),
      compared(
          "shadow/other",
          &Comparison::Stats::other,
          &Figures::set_shadow_other),
      compared(
          "shadow/none", &Comparison::Stats::none, &Figures::set_shadow_none),
      stat("filters", &Stats::filters),
      stat("agents", &Stats::agents),
      stat("frameworks", &Stats::frameworks),
  };

  return table;
}

} // namespace brain {
} // namespace allocator {
