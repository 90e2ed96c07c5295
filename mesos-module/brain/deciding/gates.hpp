#ifndef __ALLOCATOR_BRAIN_DECIDING_GATES_HPP__
#define __ALLOCATOR_BRAIN_DECIDING_GATES_HPP__

#include <cstddef>
#include <cstdint>

#include "brain/books/cluster.hpp"

namespace allocator {
namespace brain {

// A unit of work is the approximate cost of offering one resource class, of
// processing SPANS_AS_ONE spans, or of reading only the amounts of
// AMOUNTS_AS_ONE resource classes.
constexpr size_t SPANS_AS_ONE = 16;
constexpr size_t AMOUNTS_AS_ONE = 16;


// The gate admits the offer.
constexpr wire::OutcomeReason PASS = wire::OUTCOME_REASON_UNSPECIFIED;


struct Pair
{
  uint32_t framework = 0;
  uint32_t role = 0;
  uint32_t agent = 0;
};


// Result of the gates.
struct Admission
{
  wire::OutcomeReason reason = wire::OUTCOME_REASON_UNSPECIFIED;

  // What to offer; may be empty.
  Parts given;

  // Whether quotas reduced `given`.
  bool bounded = false;

  // Work done, in units of `Options::sliceParts`.
  size_t work = 0;
};


inline Admission refuse(wire::OutcomeReason reason)
{
  Admission admission;
  admission.reason = reason;
  return admission;
}


// Every offer passes these gates, whether the sidecar or the fallback decided
// it. They use the current books, and can only reduce or refuse an offer.
// Therefore a late or wrong decision never over-commits an agent, and never
// makes the master abort because of an unknown role, reservation or agent.

// Whether the framework may be offered anything in the role.
wire::OutcomeReason
admitFramework(const Cluster& cluster, uint32_t framework, uint32_t role);

// Whether the agent may be offered at all.
wire::OutcomeReason admitAgent(const Cluster& cluster, uint32_t agent);

// Whether the framework may be offered the agent. Both must be admitted.
wire::OutcomeReason admitPair(const Cluster& cluster, const Pair& pair);

// The agent's free resources that may be allocated to the role, in a form that
// the framework supports; at most one copy of a shared volume. The pair must be
// admitted.
Parts pool(const Cluster& cluster, const Pair& pair);

// Takes amounts by kind out of the pool. Uses whole objects where possible and
// splits only divisible ones. A kind that is not in the pool yields nothing.
// Leaves in `wanted` the amounts that could not be taken.
Parts take(const Cluster& cluster, Parts pool, Amounts* wanted);

// Applies the remaining gates: limits, headroom, minimum, filters. `wanted`
// must come from the pool of an admitted pair. `Admission::work` counts only
// spans, which filters compare and booking updates; the caller counts resource
// classes.
Admission applyQuotaAndFilters(
    const Cluster& cluster,
    const Pair& pair,
    Parts wanted,
    int64_t nowMs);

// Applies all gates to amounts by kind. Returns OFFERED if the full amounts
// pass, PARTIAL if only a part does. Counts the work of each check.
Admission
judge(const Cluster& cluster, const Pair& pair, Amounts wanted, int64_t nowMs);

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_DECIDING_GATES_HPP__
