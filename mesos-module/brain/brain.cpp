#include "brain/brain.hpp"

#include <algorithm>
#include <utility>

namespace allocator {
namespace brain {

constexpr int64_t NEVER = INT64_MAX;


Brain::Brain() {}


Brain::~Brain() {}


std::string Brain::step(const Initialize& event, int64_t nowMs)
{
  state.options = event.options;
  state.options.fallback = event.options.fallback && !event.options.shadow;
  state.filters.setInterval(event.options.intervalMs);
  fallback.seed(event.options.seed);
  intervalEndMs = nowMs + event.options.intervalMs;
  return std::string();
}


std::string Brain::step(const Recover& event, int64_t nowMs)
{
  for (const SetQuota& quota : event.quotas) {
    step(quota, nowMs);
  }

  // Offer nothing until agents have returned: while the holdings of roles are
  // unknown, offers to others could take what guarantees need.
  expectedAgents = static_cast<size_t>(
      std::max(0.0, event.expectedAgents * state.options.recoveryFactor));

  if (!event.quotas.empty() && expectedAgents > state.agents.size()) {
    state.recovering = true;
    recoveryMs = nowMs + state.options.recoveryTimeoutMs;
    sendPause();
    log(Level::INFO,
        "No offers until " + std::to_string(expectedAgents) +
            " agents are back, for at most " +
            std::to_string(state.options.recoveryTimeoutMs / 1000) + " s");
  }

  // Only an elected master calls recover; a standby must not open a session.
  emit(Message::Kind::START);
  return std::string();
}


void Brain::endRecovery()
{
  recoveryMs = NEVER;
  if (state.recovering) {
    state.recovering = false;
    log(Level::INFO,
        "Recovered with " + std::to_string(state.agents.size()) + " agents");
    sendPause();
  }
}


std::string Brain::step(const Pause& event, int64_t)
{
  // Not sent to the sidecar, because no cycle is requested within a bracket.
  state.paused = event.paused;
  return std::string();
}


std::string Brain::step(const Misfit& event, int64_t)
{
  return misfit(event.text, event.level);
}


std::string Brain::step(const DefineResourceClass& event, int64_t)
{
  const Traits& traits = event.traits;
  const bool reserved = traits.depth > 0 && !traits.reservedRole.empty();

  if (reserved != (traits.depth > 0) || traits.unit < 0 ||
      (traits.shared && traits.unit == 0)) {
    return misfit(
        "Resource class " + std::to_string(event.resourceClass) + " ('" +
        traits.name + "') is defined with a depth of " +
        std::to_string(traits.depth) + ", role '" + traits.reservedRole +
        "' and unit " + std::to_string(traits.unit) +
        "; a reserved one has both, a shared one has a unit");
  }

  // A reservation alone does not make the role compete, so the role itself is
  // not added. Quotas need its top-level role, and offers its path.
  const std::string& role = traits.reservedRole;
  const uint32_t top =
      reserved ? state.roles.note(role.substr(0, role.find('/'))) : 0;

  if (!state.classes.define(
          event.resourceClass,
          traits,
          top,
          reserved ? state.roles.reportedPathOf(role) : std::string())) {
    return misfit(
        "Resource class " + std::to_string(event.resourceClass) +
        " is defined already, as '" +
        state.classes.traits(event.resourceClass).name + "'");
  }

  return std::string();
}


void Brain::log(Level level, const std::string& text)
{
  effects.logs.push_back(Log{level, text});
}


std::string Brain::misfit(const std::string& text, Level level)
{
  ++counted.misfits;
  log(level, text);
  return text;
}


void Brain::triggerAll()
{
  if (!state.offersPaused()) {
    candidatesAll = true;
    triggered = true;
  }
}


void Brain::trigger(uint32_t agent)
{
  // While offers are paused, skip it as Mesos's own allocator does: a later
  // interval covers all agents.
  if (!state.offersPaused()) {
    addAgents({agent}, &candidates, &candidatesAll);
    triggered = true;
  }
}


std::string Brain::step(const Wake& event, int64_t nowMs)
{
  if (sendingSoon) {
    sendCoalesced();
  }

  quietMs = event.quietMs;
  runTimers(nowMs, event.silentMs);

  if (triggered) {
    runTriggered(nowMs, event.silentMs);
    if (!state.offersPaused()) {
      flushCycle();
    }
  }

  if (!state.paused && !unjudged.empty()) {
    judgeSome(nowMs);
  }

  if (snapshot.underWay()) {
    sendSnapshot(nowMs);
  }

  if (fallback.underWay()) {
    runFallback(nowMs);
  }

  return std::string();
}


void Brain::runTimers(int64_t nowMs, int64_t silentMs)
{
  if (nowMs >= recoveryMs) {
    endRecovery();
  }

  if (nowMs >= breakerMs) {
    breakerMs = NEVER;
    breakerOpen = false;
    emit(Message::Kind::START);
  }

  if (nowMs >= watchMs) {
    noticeSilence(nowMs, silentMs);
  }

  if (nowMs >= intervalEndMs) {
    endInterval(nowMs, silentMs);
  }
}


// A late cycle runs as of the time when it was due, so that filters apply to it
// that have expired since: a filter must outlast the next cycle, so that the
// refused resources are first offered to others (MESOS-4302).
void Brain::endInterval(int64_t nowMs, int64_t silentMs)
{
  const int64_t asOfMs = std::min(nowMs, intervalEndMs);
  intervalEndMs = nowMs + state.options.intervalMs;
  state.filters.expire(asOfMs);
  comparison.expire(nowMs);
  limitRoles(nowMs);
  limitKinds(nowMs);
  asideLines = 0;
  sendLateUpdates(nowMs);
  candidates.clear();
  candidatesAll = triggered = false;

  // After too many barren intervals the fallback decides this cycle, and the
  // sidecar the next.
  const bool answers = sidecarAnswers(asOfMs, silentMs);
  runCycle(true, {}, asOfMs, silentMs, !answers || isBarrenTurn(asOfMs));
}


// Whether the module should decide this cycle because the sidecar answers but
// leaves resources unused.
bool Brain::isBarrenTurn(int64_t nowMs)
{
  // In shadow mode, answers have no effect.
  if (state.options.shadow) {
    return false;
  }

  const uint64_t before = idleCheck.intervals();
  const uint64_t most = state.options.barrenIntervalsMax;
  idleCheck.endInterval(state, nowMs);
  const uint64_t intervals = idleCheck.intervals();

  if (!state.options.fallback || most == 0 || intervals <= before ||
      intervals % most != 0 || fallback.underWay()) {
    return false;
  }

  const Pair& pair = idleCheck.willing();
  log(Level::WARNING,
      "The sidecar has offered nothing for " + std::to_string(intervals) +
          " intervals, without saying that it holds back, but framework " +
          *state.frameworkHandles.id(pair.framework) + " in role " +
          state.roles.path(pair.role) + " could use free resources of agent " +
          *state.agentHandles.id(pair.agent) + "; offering by DRF once");
  ++counted.barrenTurns;
  return true;
}


void Brain::runTriggered(int64_t nowMs, int64_t silentMs)
{
  const bool all = candidatesAll;
  std::vector<uint32_t> agents;

  std::sort(candidates.begin(), candidates.end());
  candidates.erase(
      std::unique(candidates.begin(), candidates.end()), candidates.end());

  for (uint32_t agent : candidates) {
    if (state.agents.find(agent) != nullptr) {
      agents.push_back(agent);
    }
  }

  candidates.clear();
  candidatesAll = triggered = false;

  // Frameworks that subscribe before the first agent registers cannot be
  // offered anything; a cycle for them would only delay later events.
  if (all ? state.agents.size() > 0 : !agents.empty()) {
    runCycle(
        all,
        all ? std::vector<uint32_t>() : agents,
        nowMs,
        silentMs,
        !sidecarAnswers(nowMs, silentMs));
  }
}


bool Brain::sidecarAnswers(int64_t nowMs, int64_t silentMs) const
{
  return connected &&
      (silentMs < state.options.fallbackAfterMs || turnLeft(nowMs) > 0);
}


// A sidecar that answers late has not caught up with the master's events. Each
// fallback cycle adds more events, so fallback in every interval could keep the
// sidecar behind forever. Therefore the module waits `fallbackAfterMs` after
// each fallback cycle. Returns the rest of that time.
int64_t Brain::turnLeft(int64_t nowMs) const
{
  const int64_t mostMs = state.options.fallbackAfterMs;
  return quietMs < mostMs ? aloneMs + mostMs - nowMs : 0;
}


void Brain::runCycle(
    bool all,
    const std::vector<uint32_t>& agents,
    int64_t asOfMs,
    int64_t silentMs,
    bool alone)
{
  if (state.offersPaused()) {
    return;
  }

  ++counted.cycles;

  if (!alone) {
    noteDecider(false, asOfMs);
    fallback.cancelFollowing();
    askCycle(all, agents, asOfMs);

    // Check in time whether the sidecar is silent, rather than at the end of
    // the interval.
    if (state.options.fallback && watchMs == NEVER) {
      watchMs = asOfMs + timeLeft(asOfMs, silentMs);
    }
  } else if (state.options.fallback) {
    decideAlone(all, agents, asOfMs);
  }

  // In shadow mode, the other allocator makes the inverse offers.
  if (state.options.shadow) {
    return;
  }

  const std::vector<InverseOffer> asked =
      inverse.generate(state, all, agents, asOfMs);
  effects.inverseOffers.insert(
      effects.inverseOffers.end(), asked.begin(), asked.end());
}


// Time until the fallback takes over. Repeating a cycle does not extend this
// time.
int64_t Brain::timeLeft(int64_t nowMs, int64_t silentMs) const
{
  const int64_t waitedMs =
      again ? std::max(silentMs, nowMs - askedMs) : silentMs;
  return std::max(state.options.fallbackAfterMs - waitedMs, turnLeft(nowMs));
}


void Brain::noticeSilence(int64_t nowMs, int64_t silentMs)
{
  watchMs = NEVER;

  // If the session ended, the fallback has taken over already.
  if (!connected || silentMs == 0) {
    return;
  }

  const int64_t leftMs = timeLeft(nowMs, silentMs);

  if (leftMs > 0) {
    watchMs = nowMs + leftMs;
  } else if (!state.offersPaused()) {
    decideAlone(true, {}, nowMs);
  }
}


bool Brain::fallbackDecides() const
{
  return counted.fallbackSinceMs != 0 && counted.fallbackUntilMs == 0;
}


// Records for metrics when fallback began and ended.
void Brain::noteDecider(bool alone, int64_t nowMs)
{
  const bool before = fallbackDecides();

  if (alone && !before) {
    counted.fallbackSinceMs = nowMs;
    counted.fallbackUntilMs = 0;
  } else if (!alone && before) {
    counted.fallbackUntilMs = nowMs;
  }
}


void Brain::decideAlone(
    bool all,
    const std::vector<uint32_t>& agents,
    int64_t nowMs)
{
  ++counted.fallbackCycles;
  aloneMs = nowMs;
  noteDecider(true, nowMs);
  fallback.begin(state, all, agents, nowMs);
}


void Brain::runFallback(int64_t)
{
  if (state.recovering) {
    fallback.stop();
    return;
  }

  if (state.paused) {
    return;
  }

  const size_t before = effects.offers.size();
  fallback.slice(&state, &effects.offers);
  counted.fallbackOffers += effects.offers.size() - before;

  // The sidecar did not decide these offers, so report them like other
  // holdings.
  reportOffers(before);
}


Ready Brain::ready()
{
  // A snapshot under construction may still name unused resource classes.
  if (!snapshot.underWay()) {
    // Append: entries of an earlier call that ended in an exception may remain.
    for (uint32_t resourceClass : state.classes.takeUnused()) {
      effects.forgotten.push_back(resourceClass);
      state.kinds.forget(resourceClass);
    }
  }

  effects.soon = soon();
  effects.wakeMs = wakeMs();

  Ready result = std::move(effects);
  effects = Ready();
  return result;
}


bool Brain::soon() const
{
  const bool judging = !unjudged.empty() && !state.paused;
  const bool serving = fallback.underWay() && !state.paused;
  return sendingSoon || triggered || judging || snapshot.underWay() || serving;
}


int64_t Brain::wakeMs() const
{
  return std::min(
      std::min(intervalEndMs, recoveryMs), std::min(watchMs, breakerMs));
}


bool Brain::isDue(int64_t nowMs) const
{
  return !state.offersPaused() && (triggered || nowMs >= intervalEndMs);
}


bool Brain::isUnderWay() const
{
  return cycleAsked || !unjudged.empty() || fallback.underWay();
}


Stats Brain::stats() const
{
  Stats result = counted;
  result.breakerOpen = breakerOpen;
  result.following = following;
  result.connected = connected;
  result.barrenIntervals = idleCheck.intervals();
  result.agents = state.agents.size();
  result.frameworks = state.frameworks.size();
  result.filters = state.filters.size();
  result.kinds = state.kinds.size();
  result.shadow = state.options.shadow;
  result.compared = comparison.stats();
  return result;
}


std::string Brain::check() const
{
  for (uint32_t number = 0; number < state.agents.end(); ++number) {
    const Agent* agent = state.agents.find(number);
    std::string wrong =
        agent == nullptr ? std::string() : state.books.check(*agent);
    if (!wrong.empty()) {
      return wrong;
    }
  }

  return std::string();
}

} // namespace brain {
} // namespace allocator {
