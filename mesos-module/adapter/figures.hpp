#ifndef __ALLOCATOR_ADAPTER_FIGURES_HPP__
#define __ALLOCATOR_ADAPTER_FIGURES_HPP__

#include <cstdint>

#include "allocator/v1/session.pb.h"

#include "brain/brain.hpp"

namespace allocator {
namespace adapter {

// Adds what the brain counts to the figures that a sidecar is told, and
// misfits that were noticed before they reached it.
inline void writeFigures(
    const brain::Counts& counts,
    uint64_t misfits,
    ::allocator::v1::ModuleFigures* figures)
{
  figures->set_cycles(counts.cycles);
  figures->set_fallback_cycles(counts.fallbackCycles);
  figures->set_fallback_offers(counts.fallbackOffers);
  figures->set_fallback_since_ms(counts.fallbackSinceMs);
  figures->set_fallback_until_ms(counts.fallbackUntilMs);
  figures->set_breaker_open(counts.breakerOpen);
  figures->set_breaker_trips(counts.breakerTrips);
  figures->set_barren_intervals(counts.barrenIntervals);
  figures->set_barren_turns(counts.barrenTurns);
  figures->set_misfits(counts.misfits + misfits);
  figures->set_set_aside(counts.setAside);
  figures->set_shadow(counts.shadow);
  figures->set_shadow_offers(counts.compared.offers);
  figures->set_shadow_same(counts.compared.same);
  figures->set_shadow_other(counts.compared.other);
  figures->set_shadow_none(counts.compared.none);
}

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_FIGURES_HPP__
