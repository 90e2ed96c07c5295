#include "adapter/process.hpp"

#include <algorithm>
#include <iterator>

#include "brain/user_input/bounds.hpp"
#include "brain/user_input/user_input.hpp"

using std::set;
using std::string;

namespace allocator {
namespace adapter {

void AllocatorProcess::updateExclusions(const FrameworkID& frameworkId)
{
  Framework& framework = frameworks.at(frameworkId);
  framework.nextAgent = 0;

  if (!framework.waits) {
    framework.waits = true;
    frameworksToEvaluate.push_back(frameworkId);
  }
  evaluateSome();
}


void AllocatorProcess::updateExclusions(const SlaveID& agentId)
{
  Agent& agent = agents.at(agentId);
  agent.nextFramework = None();

  if (!agent.waits && !excluding.empty()) {
    agent.waits = true;
    agentsToEvaluate.push_back(agentId);
  }
  evaluateSome();
}


// Evaluates as much as the interval's budget allows.
void AllocatorProcess::evaluateSome()
{
  // `step` may call this recursively; the outer loop then evaluates the rest.
  if (evaluating) {
    return;
  }

  struct Flag
  {
    explicit Flag(bool* _flag) : flag(_flag) { *flag = true; }
    ~Flag() { *flag = false; }
    bool* flag;
  } flag(&evaluating);

  const int64_t now = nowMs();
  if (now >= pairsUntilMs) {
    pairsLeft = brain::CONSTRAINT_PAIRS_AT_ONCE;
    pairsUntilMs = now + static_cast<int64_t>(options.allocationInterval.ms());
  }

  while (pairsLeft > 0 &&
         !(frameworksToEvaluate.empty() && agentsToEvaluate.empty())) {
    evaluateFramework();
    evaluateAgent();
  }

  if (!frameworksToEvaluate.empty() || !agentsToEvaluate.empty()) {
    wakeAt(pairsUntilMs);
  }
}


// Evaluates the next framework on some agents. If it excludes none of them, it
// is assumed to have no constraints, and is not evaluated on the others.
void AllocatorProcess::evaluateFramework()
{
  if (frameworksToEvaluate.empty()) {
    return;
  }

  const FrameworkID frameworkId = frameworksToEvaluate.front();
  frameworksToEvaluate.pop_front();
  auto found = frameworks.find(frameworkId);
  if (found == frameworks.end() || !found->second.waits) {
    return;
  }

  Framework& framework = found->second;
  const brain::Handles& handles = brain.cluster().agentHandles;
  brain::Exclude event;
  size_t pairs = 0;

  for (; framework.nextAgent < handles.end() &&
       pairs < brain::CONSTRAINT_PAIRS_IN_A_ROW;
       ++framework.nextAgent) {
    const string* id = handles.id(framework.nextAgent);
    if (id != nullptr) {
      SlaveID agentId;
      agentId.set_value(*id);
      pairs += evaluate(frameworkId, agentId, &event);
    }
  }

  const bool excludes = excluding.count(frameworkId) > 0;
  framework.waits = excludes && framework.nextAgent < handles.end();
  if (framework.waits) {
    frameworksToEvaluate.push_back(frameworkId);
  }

  tell(event, pairs);
  if (excludes && !framework.waits) {
    ignoreConstraints(frameworkId);
  }
}


// Evaluates the next agent for some of the frameworks in `excluding`.
void AllocatorProcess::evaluateAgent()
{
  if (agentsToEvaluate.empty()) {
    return;
  }

  const SlaveID agentId = agentsToEvaluate.front();
  agentsToEvaluate.pop_front();
  auto found = agents.find(agentId);
  if (found == agents.end() || !found->second.waits) {
    return;
  }

  Agent& agent = found->second;
  brain::Exclude event;
  size_t pairs = 0;
  auto next = agent.nextFramework.isSome()
      ? excluding.lower_bound(agent.nextFramework.get())
      : excluding.begin();

  for (; next != excluding.end() && pairs < brain::CONSTRAINT_PAIRS_IN_A_ROW;
       ++next) {
    pairs += evaluate(*next, agentId, &event);
  }

  agent.waits = next != excluding.end();
  if (agent.waits) {
    agent.nextFramework = *next;
    agentsToEvaluate.push_back(agentId);
  }

  tell(event, pairs);
}


void AllocatorProcess::tell(const brain::Exclude& event, size_t pairs)
{
  evaluated += pairs;
  pairsLeft -= std::min(pairsLeft, pairs);
  if (!event.rows.empty()) {
    step(event);
  }
}


// Evaluates a bounded number of roles and appends the results to `event`.
// Returns the pairs evaluated, but at least 1, because each call takes time.
size_t AllocatorProcess::evaluate(
    const FrameworkID& frameworkId,
    const SlaveID& agentId,
    brain::Exclude* event)
{
  const auto framework = frameworks.find(frameworkId);
  const auto agent = agents.find(agentId);
  if (framework == frameworks.end() || agent == agents.end()) {
    return 1;
  }

  const size_t most = brain::constrainedRoles(agents.size());
  size_t pairs = 0;

  for (const string& role : framework->second.roles) {
    if (pairs == most) {
      break;
    }

    ++pairs;
    const bool now =
        framework->second.constraints.isAgentExcluded(role, agent->second.info);
    if (now) {
      excluding.insert(frameworkId);
    }

    // Common case: the framework excludes nothing, so the brain needs no event.
    if (excluding.count(frameworkId) > 0) {
      event->rows.push_back(
          brain::Exclude::Row{frameworkId.value(), role, agentId.value(), now});
    }
  }
  return std::max<size_t>(pairs, 1);
}


// Reports the roles beyond the limit, whose constraints are ignored.
void AllocatorProcess::ignoreConstraints(const FrameworkID& frameworkId)
{
  auto found = frameworks.find(frameworkId);
  const size_t seen = brain::constrainedRoles(agents.size());

  if (found != frameworks.end() && found->second.roles.size() > seen) {
    const set<string>& roles = found->second.roles;
    brain::IgnoreConstraints ignore;
    ignore.framework = frameworkId.value();
    ignore.roles.assign(std::next(roles.begin(), seen), roles.end());
    step(ignore);
  }
}


bool AllocatorProcess::isExcluded(const brain::Offer& offer)
{
  const brain::Cluster& cluster = brain.cluster();
  const FrameworkID frameworkId = frameworkIdOf(offer.framework);
  const SlaveID agentId = agentIdOf(offer.agent);

  const auto framework = frameworks.find(frameworkId);
  const auto agent = agents.find(agentId);
  if (framework == frameworks.end() || agent == agents.end()) {
    return false;
  }

  const string& role = cluster.roles.path(offer.role);
  const set<string>& roles = framework->second.roles;
  const size_t seen = brain::constrainedRoles(agents.size());

  return framework->second.constraints.isAgentExcluded(
             role, agent->second.info) &&
      (roles.size() <= seen ||
       std::distance(roles.begin(), roles.find(role)) <
           static_cast<ptrdiff_t>(seen));
}


// Gives those offers back to the brain that offer constraints exclude. Returns
// the exclusions, for `reportHeldBack`.
brain::Exclude AllocatorProcess::holdBackExcluded()
{
  brain::Exclude result;
  const auto excluded = std::partition(
      unmade.begin(), unmade.end(), [this](const brain::Offer& offer) {
        return !isExcluded(offer);
      });

  for (auto left = unmade.end() - excluded; left > 0; --left) {
    const brain::Offer& offer = unmade.back();
    result.rows.push_back(brain::Exclude::Row{
        frameworkIdOf(offer.framework).value(),
        brain.cluster().roles.path(offer.role),
        agentIdOf(offer.agent).value(),
        true});
    giveBackOffer();
  }
  return result;
}


// Reports the exclusions to the brain. Evaluates all agents for frameworks that
// exclude one for the first time.
void AllocatorProcess::reportHeldBack(const brain::Exclude& held)
{
  for (const brain::Exclude::Row& row : held.rows) {
    FrameworkID frameworkId;
    frameworkId.set_value(row.framework);
    if (frameworks.count(frameworkId) > 0 &&
        excluding.insert(frameworkId).second) {
      updateExclusions(frameworkId);
    }
  }

  if (!held.rows.empty()) {
    step(held);
  }
}

} // namespace adapter {
} // namespace allocator {
