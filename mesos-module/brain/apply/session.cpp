#include "brain/brain.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace allocator {
namespace brain {

void Brain::forgetSession()
{
  following = connected = false;
  snapshot.stop(&state);
  backlog.clear();
  coalescer.clear();
  unjudged.clear();
  judged = 0;
  judgedGroup = judgedRow = judgedGangs = 0;
  answer = Answer();
  uselessAnswers = 0;
  again = false;
  idleCheck.forgetSession();
  sendingSoon = false;
  cycleAsked = cycleWanted = cycleAll = false;
  cycleAgents.clear();
  watchMs = INT64_MAX;

  // Discard pending updates: the next snapshot contains the current state.
  workedOut.clear();
  lateUpdates.clear();
}


void Brain::restartSession()
{
  forgetSession();
  emit(Message::Kind::STOP);
  emit(Message::Kind::START);
}


std::string Brain::step(const Welcomed& event, int64_t nowMs)
{
  if (breakerOpen) {
    return "No session is expected";
  }

  forgetSession();
  following = true;
  state.roles.forgetHandles();
  removeUnusedRoles();
  retryCrowded(nowMs);

  for (uint32_t each = 0; each < state.classes.end(); ++each) {
    if (state.classes.defined(each) && state.classes.traits(each).depth > 0) {
      state.classes.setReportedRole(
          each,
          state.roles.reportedPathOf(state.classes.traits(each).reservedRole));
    }
  }

  // New `Kinds` also drop the kinds that are no longer in use.
  state.kinds =
      Kinds(event.kindsMax > 0 ? event.kindsMax : size_t(Kinds::MOST_DEFAULT));
  state.messageBytesMax =
      event.chunkBytesMax > 0 ? event.chunkBytesMax : SIZE_MAX;
  snapshot.begin(&state, event.chunkBytesMax, ++revisions);
  sendRequests();
  sendSnapshot(nowMs);
  return std::string();
}


std::string Brain::step(const Connected& event, int64_t)
{
  if (!following) {
    return "There is no session";
  }

  connected = true;
  failures = 0;
  log(Level::INFO,
      "Sidecar " + event.sidecarId + " (version " + event.sidecarVersion +
          (state.options.shadow
               ? ") runs in shadow mode: Mesos's own allocator decides"
               : ") decides on offers from now on"));
  return std::string();
}


std::string Brain::step(const Ended& event, int64_t)
{
  forgetSession();

  // Log failed attempts 1 to 4, then only powers of two, because a sidecar may
  // be unavailable for hours.
  if (failures < 4 || (failures & (failures - 1)) == 0) {
    const char* what = event.wasConnected
        ? "The session with the sidecar ended: "
        : "There is no session with a sidecar: ";
    const char* meanwhile = state.options.shadow
        ? "Mesos's own allocator decides"
        : state.options.fallback ? "offering by DRF meanwhile"
                                 : "without offers meanwhile";
    log(Level::WARNING,
        what + event.why + "; trying again in " +
            std::to_string(event.retryInMs) + " ms, " + meanwhile);
  }

  ++failures;

  // The outstanding cycle will not be answered.
  if (event.wasConnected) {
    triggerAll();
  }

  return std::string();
}


std::string Brain::step(const NotStarted& event, int64_t nowMs)
{
  forgetSession();
  log(Level::ERROR,
      "A session cannot be started: " + event.why + "; trying again in " +
          std::to_string(state.options.breakerPauseMs) + " ms");
  breakerMs = nowMs + state.options.breakerPauseMs;
  return std::string();
}


void Brain::addAgents(
    const std::vector<uint32_t>& some,
    std::vector<uint32_t>* agents,
    bool* all)
{
  // The list may contain duplicates.
  constexpr size_t MOST = 1 << 14;

  if (*all || agents->size() + some.size() > MOST) {
    *all = true;
    agents->clear();
  } else {
    agents->insert(agents->end(), some.begin(), some.end());
  }
}


void Brain::askCycle(
    bool all,
    const std::vector<uint32_t>& agents,
    int64_t clockMs)
{
  cycleWanted = true;
  cycleAll = cycleAll || all;
  cycleClockMs = clockMs;
  addAgents(agents, &cycleAgents, &cycleAll);
  flushCycle();
}


// While a wake-up is due that adds agents, the request waits for it: a new
// framework should get its first offers in one cycle over all agents.
void Brain::flushCycle()
{
  if (!cycleWanted || cycleAsked || !unjudged.empty() || triggered) {
    return;
  }

  Message message;
  message.kind = Message::Kind::CYCLE;
  message.clockMs = cycleClockMs;

  if (!cycleAll) {
    std::sort(cycleAgents.begin(), cycleAgents.end());
    for (uint32_t agent : cycleAgents) {
      const bool again =
          !message.agents.empty() && message.agents.back() == agent;
      if (!again && state.agents.find(agent) != nullptr) {
        message.agents.push_back(agent);
      }
    }
  }

  const bool anything = cycleAll || !message.agents.empty();
  cycleAskedAll = cycleAll;
  cycleWanted = cycleAll = false;
  cycleAgents.clear();

  if (anything) {
    cycleAsked = true;
    comparison.ask();
    askedMs = again ? askedMs : cycleClockMs;
    sendCoalesced();
    emit(std::move(message));
  }
}

} // namespace brain {
} // namespace allocator {
