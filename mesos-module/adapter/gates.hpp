#ifndef __ALLOCATOR_ADAPTER_GATES_HPP__
#define __ALLOCATOR_ADAPTER_GATES_HPP__

#include "adapter/quota.hpp"
#include "adapter/state.hpp"

namespace allocator {
namespace adapter {

// Somebody in a role, and an agent.
struct Pair
{
  FrameworkID frameworkId;
  std::string role;
  SlaveID agentId;
};


// What comes of a wish.
struct Verdict
{
  wire::OutcomeReason reason = wire::OUTCOME_REASON_UNSPECIFIED;

  // What is to be offered, not allocated yet; empty where nothing is.
  Resources given;

  // Whether that is all that is free on the agent.
  bool all = false;

  // Whether quotas made it smaller.
  bool bounded = false;
};


// The gates that every offer passes, whoever decided on it. They look at
// the books as they are now: a decision, however late or wrong, can only
// be made smaller or refused here, so no agent is over-committed and the
// master is never told of a role, a reservation or an agent that it
// would abort on.

// Whether this framework may be offered anything in this role.
wire::OutcomeReason admitFramework(
    const Cluster& state,
    const FrameworkID& frameworkId,
    const std::string& role);

// Whether this agent may be offered at all.
wire::OutcomeReason admitAgent(const Cluster& state, const SlaveID& agentId);

// Whether the two may meet. Both were admitted.
wire::OutcomeReason admitPair(const Cluster& state, const Pair& pair);

// What is free on the agent, can be allocated to the role, and is of a
// form that the framework understands. The pair was admitted.
Resources pool(const Cluster& state, const Pair& pair);

// Whether the offer reaches one of the minima.
bool reachesMinimum(
    const Cluster& state,
    const Framework& framework,
    const std::string& role,
    const Resources& offer);

// The gates behind the pool: quota, the minimum, filters. `wanted` was
// taken from the pool of an admitted pair.
Verdict finish(
    const Cluster& state,
    const Pair& pair,
    const Resources& wanted,
    const QuotaBook& quotas,
    int64_t nowMs);

// All gates, for a wish of amounts by kind. OFFERED says that all of it
// is given, PARTIAL that some is.
Verdict judge(
    const Cluster& state,
    const Pair& pair,
    const Amounts& wanted,
    const QuotaBook& quotas,
    int64_t nowMs);

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_GATES_HPP__
