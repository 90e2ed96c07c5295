#ifndef __ALLOCATOR_BRAIN_DECIDING_GATES_HPP__
#define __ALLOCATOR_BRAIN_DECIDING_GATES_HPP__

#include <cstddef>
#include <cstdint>

#include "brain/books/cluster.hpp"

namespace allocator {
namespace brain {

// So many spans cost about as much as a resource class without any; and so many
// resource classes cost as much where only the amount is looked at.
constexpr size_t SPANS_AS_ONE = 16;
constexpr size_t AMOUNTS_AS_ONE = 16;


// Nothing speaks against it.
constexpr wire::OutcomeReason PASS = wire::OUTCOME_REASON_UNSPECIFIED;


// Somebody in a role, and an agent, by their numbers.
struct Pair
{
  uint32_t framework = 0;
  uint32_t role = 0;
  uint32_t agent = 0;
};


// What comes of a wish.
struct Admission
{
  wire::OutcomeReason reason = wire::OUTCOME_REASON_UNSPECIFIED;

  // What is to be offered; empty where nothing is.
  Parts given;

  // Whether quotas made it smaller.
  bool bounded = false;

  // How much was looked at, as slices count it (see `Options::sliceParts`).
  size_t work = 0;
};


inline Admission refuse(wire::OutcomeReason reason)
{
  Admission admission;
  admission.reason = reason;
  return admission;
}


// The gates that every offer passes, whoever decided on it. They look at
// the books as they are now: a decision, however late or wrong, can only
// be made smaller or refused here, so no agent is over-committed and the
// master never hears of a role, a reservation or an agent that it would
// abort on.

// Whether this framework may be offered anything in this role.
wire::OutcomeReason
admitFramework(const Cluster& cluster, uint32_t framework, uint32_t role);

// Whether this agent may be offered at all.
wire::OutcomeReason admitAgent(const Cluster& cluster, uint32_t agent);

// Whether the two may meet. Both were admitted.
wire::OutcomeReason admitPair(const Cluster& cluster, const Pair& pair);

// What is free on the agent, can be allocated to the role, and is of a
// form that the framework understands; of a shared volume one copy. The
// pair was admitted.
Parts pool(const Cluster& cluster, const Pair& pair);

// Takes amounts by kind out of the pool. An amount is made up of as many
// objects of its kind as it takes; only what can be divided is split. A
// kind that is not in the pool gives nothing. What could not be taken is
// left in `wanted`.
Parts take(const Cluster& cluster, Parts pool, Amounts* wanted);

// The gates behind the pool: quotas, the minimum, filters. `wanted` was
// taken from the pool of an admitted pair. The work is that of filters, and of
// booking what is given, which look at spans; resource classes are the caller's.
Admission applyQuotaAndFilters(
    const Cluster& cluster,
    const Pair& pair,
    Parts wanted,
    int64_t nowMs);

// All gates, for a wish of amounts by kind. OFFERED says that all of it
// is given, PARTIAL that some is. All of the work counts.
Admission
judge(const Cluster& cluster, const Pair& pair, Amounts wanted, int64_t nowMs);

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_DECIDING_GATES_HPP__
