#include "adapter/process.hpp"

#include <algorithm>
#include <utility>

#include <glog/logging.h>

#include <process/clock.hpp>
#include <process/delay.hpp>
#include <process/dispatch.hpp>
#include <process/id.hpp>

#include <stout/uuid.hpp>

#include "adapter/builtin_metrics.hpp"
#include "adapter/metrics.hpp"

using std::string;
using std::vector;

namespace allocator {
namespace adapter {

AllocatorProcess::AllocatorProcess(const Parameters& _parameters)
  : ProcessBase(process::ID::generate("sidecar-allocator")),
    parameters(_parameters),
    fallback(std::hash<string>()(id::UUID::random().toString()))
{
}


AllocatorProcess::~AllocatorProcess() {}


void AllocatorProcess::initialize_(
    const mesos::allocator::Options& options,
    const OfferCallback& _offerCallback,
    const InverseOfferCallback& _inverseOfferCallback)
{
  state.options = options;
  state.filters =
      Filters(static_cast<int64_t>(options.allocationInterval.ms()));
  offerCallback = _offerCallback;
  inverseOfferCallback = _inverseOfferCallback;
  metrics.reset(new Metrics(*this));
  startBuiltinMetrics();

  LOG(INFO) << "Allocator initialized; its sidecar is at "
            << parameters.transport.channel.target;

  batchDueMs = nowMs() + static_cast<int64_t>(options.allocationInterval.ms());
  process::delay(options.allocationInterval, self(), &AllocatorProcess::batch);
}


void AllocatorProcess::finalize()
{
  builtin.reset();
  metrics.reset();

  // Its threads end here, while the actor still exists.
  keeper.reset();
}


void AllocatorProcess::recover(
    int expectedAgentCount,
    const hashmap<string, mesos::Quota>& quotas)
{
  for (const auto& entry : quotas) {
    if (entry.second != mesos::Quota()) {
      state.quotas[entry.first] = entry.second;
      builtin->setQuota(entry.first, entry.second);
    }
  }

  // Where guarantees exist, nothing may be given to others before it is
  // known what the roles that have them hold.
  expectedAgents = static_cast<size_t>(
      std::max(0.0, expectedAgentCount * state.options.agentRecoveryFactor));

  if (!quotas.empty() && expectedAgents > state.agents.size()) {
    state.recovering = true;
    sendPause();
    process::delay(
        state.options.recoveryTimeout, self(), &AllocatorProcess::endRecovery);

    LOG(INFO) << "No offers until " << expectedAgents
              << " agents are back, for at most "
              << state.options.recoveryTimeout;
  }

  // Only an elected master recovers; a standby must not have a session.
  startSession();
}


void AllocatorProcess::endRecovery()
{
  if (state.recovering) {
    state.recovering = false;
    LOG(INFO) << "Recovered with " << state.agents.size() << " agents";
    sendPause();
  }
}


void AllocatorProcess::pause()
{
  // Sidecars need not know: no cycle is asked for within a bracket.
  state.paused = true;
}


void AllocatorProcess::resume()
{
  state.paused = false;

  while (!unjudged.empty()) {
    const session::Decisions decisions = std::move(unjudged.front());
    unjudged.pop_front();
    decided(decisions);
  }
}


int64_t AllocatorProcess::nowMs() const
{
  return static_cast<int64_t>(process::Clock::now().duration().ms());
}


vector<SlaveID> AllocatorProcess::allAgents() const
{
  vector<SlaveID> result;
  result.reserve(state.agents.size());
  for (const auto& entry : state.agents) {
    result.push_back(entry.first);
  }
  return result;
}


// A refusal outlives the next batch (MESOS-4302), however late that runs;
// so it runs as of when it was due.
int64_t AllocatorProcess::allocationMs() const
{
  return batchMs.isSome() ? batchMs.get() : nowMs();
}


void AllocatorProcess::batch()
{
  const int64_t now = nowMs();
  batchMs = std::min(now, batchDueMs);
  state.filters.expire(batchMs.get());
  allocate({}, true);
  batchMs = None();

  batchDueMs =
      now + static_cast<int64_t>(state.options.allocationInterval.ms());
  process::delay(
      state.options.allocationInterval, self(), &AllocatorProcess::batch);
}


void AllocatorProcess::triggerAll()
{
  candidatesAll = candidatesAll || !state.held();
  trigger(SlaveID());
}


void AllocatorProcess::trigger(const SlaveID& agentId)
{
  // As with Mesos's own allocator, the next batch makes up for it.
  if (state.held()) {
    return;
  }

  builtin->runDue();
  candidates.insert(agentId);

  if (!triggered) {
    triggered = true;
    process::dispatch(self(), &AllocatorProcess::runTriggered);
  }
}


void AllocatorProcess::runTriggered()
{
  triggered = false;
  const bool all = candidatesAll;
  vector<SlaveID> agents;

  if (!all) {
    for (const SlaveID& agentId : candidates) {
      if (state.agents.contains(agentId)) {
        agents.push_back(agentId);
      }
    }
  }

  candidates.clear();
  candidatesAll = false;

  if (all || !agents.empty()) {
    allocate(agents, all);
  }
}


bool AllocatorProcess::served() const
{
  return keeper != nullptr && keeper->connected() &&
      keeper->waiting() < parameters.fallbackAfter;
}


void AllocatorProcess::allocate(const vector<SlaveID>& some, bool all)
{
  if (state.held()) {
    return;
  }

  ++cycles;
  builtin->runBegins();

  // Tens of thousands of ids are listed only where somebody reads them.
  const bool listed = all && !(served() && maintenance.empty());
  const vector<SlaveID> agents = listed ? allAgents() : some;

  if (served()) {
    sendPending();

    vector<uint32_t> handles;
    if (!all) {
      for (const SlaveID& agentId : agents) {
        handles.push_back(state.handles.agents.find(agentId));
      }
    }

    keeper->cycle(handles);
    watch();
  } else if (parameters.fallback) {
    ++fallbackCycles;
    allocateHere(agents);
    builtin->runEnds();
  }

  const Maintenance::InverseOffers inverse =
      maintenance.generate(state, agents, nowMs());

  for (const auto& entry : inverse) {
    inverseOfferCallback(entry.first, entry.second);
  }
}


// A sidecar that falls silent must not cost a whole interval more than it
// is given.
void AllocatorProcess::watch()
{
  if (!parameters.fallback || watching) {
    return;
  }

  watching = true;
  const session::Duration left = std::max(
      session::Duration(1), parameters.fallbackAfter - keeper->waiting());
  process::delay(
      Milliseconds(left.count()), self(), &AllocatorProcess::noticeSilence);
}


void AllocatorProcess::noticeSilence()
{
  watching = false;

  // Where the session ended the fallback has taken over already.
  if (keeper == nullptr || !keeper->connected() ||
      keeper->waiting() == session::Duration(0)) {
    return;
  }

  if (served()) {
    watch();
  } else if (!state.held()) {
    ++fallbackCycles;
    allocateHere(allAgents());
  }
}


void AllocatorProcess::allocateHere(const vector<SlaveID>& agents)
{
  QuotaBook quotas(state);
  hashmap<FrameworkID, Offers> offers;
  fallback.allocate(&state, agents, &quotas, allocationMs(), &offers);

  // The sidecar did not decide on these, so it is told as of any use.
  for (const auto& framework : offers) {
    for (const auto& role : framework.second) {
      for (const auto& agent : role.second) {
        sendHold(framework.first, agent.first, agent.second);
      }
    }
  }

  makeOffers(offers);
}


void AllocatorProcess::makeOffers(const hashmap<FrameworkID, Offers>& offers)
{
  for (const auto& entry : offers) {
    offerCallback(entry.first, entry.second);
  }
}

} // namespace adapter {
} // namespace allocator {
