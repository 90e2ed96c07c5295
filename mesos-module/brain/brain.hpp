#ifndef __ALLOCATOR_BRAIN_BRAIN_HPP__
#define __ALLOCATOR_BRAIN_BRAIN_HPP__

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "brain/deciding/idle_sidecar_check.hpp"
#include "brain/books/cluster.hpp"
#include "brain/messages/event_coalescer.hpp"
#include "brain/deciding/comparison.hpp"
#include "brain/events.hpp"
#include "brain/deciding/fallback.hpp"
#include "brain/messages/snapshot_builder.hpp"
#include "brain/deciding/maintenance.hpp"
#include "brain/ready.hpp"
#include "brain/stats.hpp"
#include "brain/user_input/user_input.hpp"

namespace allocator {
namespace brain {

// Keeps the books and decides what to do. Depends on neither Mesos, threads nor
// a clock: time is an argument, in milliseconds of the master's clock.
//
// Each fact is booked first and sent to the sidecar afterwards, so the books
// never depend on the sidecar. A decision is only a request: the gates decide
// whether it becomes an offer. After each step, take `ready` and carry it out
// in order before the next step. The same steps give the same effects.
//
// `step` returns an error, or an empty string. A rejected fact (for example,
// one that names an unknown agent) changes nothing. If a correct master cannot
// have sent it, it is also logged and counted as a misfit.
class Brain
{
public:
  Brain();
  ~Brain();

  Brain(const Brain&) = delete;
  Brain& operator=(const Brain&) = delete;

  // brain.cpp.
  std::string step(const Initialize& event, int64_t nowMs);
  std::string step(const Recover& event, int64_t nowMs);
  std::string step(const Pause& event, int64_t nowMs);
  std::string step(const DefineResourceClass& event, int64_t nowMs);
  std::string step(const Misfit& event, int64_t nowMs);
  std::string step(const Wake& event, int64_t nowMs);

  // apply/agents.cpp.
  std::string step(AddAgent event, int64_t nowMs);
  std::string step(const SetWhitelist& event, int64_t nowMs);
  std::string step(const AnswerInverseOffer& event, int64_t nowMs);

  // apply/frameworks.cpp.
  std::string step(const AddFramework& event, int64_t nowMs);

  // apply/settings.cpp.
  std::string step(const SetQuota& event, int64_t nowMs);
  std::string step(const SetWeights& event, int64_t nowMs);
  std::string step(const Exclude& event, int64_t nowMs);

  // Handles an event about one agent or framework. Returns an error if the
  // agent or framework is unknown. Events about a removed agent may fail,
  // because its holdings were removed with it.
  template <typename Event>
  std::string step(const Event& event, int64_t nowMs)
  {
    uint32_t number;
    const std::string unknown = find(event, &number, 0);
    return unknown.empty() ? apply(event, number, nowMs) : unknown;
  }

  // apply/session.cpp.
  std::string step(const Welcomed& event, int64_t nowMs);
  std::string step(const Connected& event, int64_t nowMs);
  std::string step(const Ended& event, int64_t nowMs);
  std::string step(const NotStarted& event, int64_t nowMs);

  // apply/judging.cpp.
  std::string step(Decided event, int64_t nowMs);

  // apply/resources.cpp.
  std::string step(Release event, int64_t nowMs);

  // apply/shadow.cpp.
  std::string step(const OfferedBeside& event, int64_t nowMs);

  // The effects since the last call.
  Ready ready();

  bool soon() const;
  int64_t wakeMs() const;

  const Cluster& cluster() const { return state; }
  const Maintenance& maintenance() const { return inverse; }

  // Whether a wake-up at `nowMs` starts a cycle; whether a cycle is under way
  // in the sidecar or in fallback.
  bool isDue(int64_t nowMs) const;
  bool isUnderWay() const;

  Stats stats() const;

  // The first inconsistency of the books, or empty; for tests.
  std::string check() const;

private:
  using Level = Log::Level;

  static std::string unknownAgent(const std::string& id)
  {
    return "Agent " + id + " is not known";
  }

  // Finds the agent that an event names or, for an event without an agent, the
  // framework. Returns an error if it is unknown.
  template <typename Event>
  auto find(const Event& event, uint32_t* agent, int)
      -> decltype(std::string(event.agent))
  {
    return findAgent(event.agent, agent) != nullptr ? std::string()
                                                    : unknownAgent(event.agent);
  }

  template <typename Event>
  std::string find(const Event& event, uint32_t* framework, long)
  {
    return findFramework(event.framework, framework) != nullptr
        ? std::string()
        : "Framework " + event.framework + " is not known";
  }

  // apply/agents.cpp.
  std::string apply(const RemoveAgent& event, uint32_t agent, int64_t nowMs);
  std::string apply(const UpdateAgent& event, uint32_t agent, int64_t nowMs);
  std::string apply(const AddProvider& event, uint32_t agent, int64_t nowMs);
  std::string apply(const ActivateAgent& event, uint32_t agent, int64_t nowMs);
  std::string
  apply(const SetUnavailability& event, uint32_t agent, int64_t nowMs);

  // apply/frameworks.cpp, apply/settings.cpp.
  std::string
  apply(const RemoveFramework& event, uint32_t framework, int64_t nowMs);
  std::string
  apply(const ActivateFramework& event, uint32_t framework, int64_t nowMs);
  std::string
  apply(const UpdateFramework& event, uint32_t framework, int64_t nowMs);
  std::string apply(const Request& event, uint32_t framework, int64_t nowMs);
  std::string apply(const Suppress& event, uint32_t framework, int64_t nowMs);
  std::string apply(const Revive& event, uint32_t framework, int64_t nowMs);
  std::string
  apply(const IgnoreConstraints& event, uint32_t framework, int64_t nowMs);

  // apply/resources.cpp.
  std::string apply(const ConvertHeld& event, uint32_t agent, int64_t nowMs);
  std::string apply(const ConvertFree& event, uint32_t agent, int64_t nowMs);
  std::string apply(const Transition& event, uint32_t agent, int64_t nowMs);

  // brain.cpp: cycles and the clock.
  void endInterval(int64_t nowMs, int64_t silentMs);
  void trigger(uint32_t agent);
  void triggerAll();
  void runTriggered(int64_t nowMs, int64_t silentMs);
  void runCycle(
      bool all,
      const std::vector<uint32_t>& agents,
      int64_t nowMs,
      int64_t silentMs,
      bool alone);
  void runTimers(int64_t nowMs, int64_t silentMs);
  bool sidecarAnswers(int64_t nowMs, int64_t silentMs) const;
  int64_t turnLeft(int64_t nowMs) const;
  bool isBarrenTurn(int64_t nowMs);
  int64_t timeLeft(int64_t nowMs, int64_t silentMs) const;
  void noticeSilence(int64_t nowMs, int64_t silentMs);
  void endRecovery();
  void runFallback(int64_t nowMs);
  bool fallbackDecides() const;
  void noteDecider(bool alone, int64_t nowMs);
  void
  decideAlone(bool all, const std::vector<uint32_t>& agents, int64_t nowMs);
  void log(Level level, const std::string& text);
  std::string misfit(const std::string& text, Level level = Level::ERROR);

  // apply/roles.cpp: limits of roles and kinds.
  std::vector<bool> rolesSought() const;
  void markRolesInUse(std::vector<bool>* marked) const;
  uint32_t useRole(uint32_t number, const std::string& path);
  void placeRoles();
  void sendHandleChanges();
  void removeUnusedRoles();
  void limitRoles(int64_t nowMs);
  void limitKinds(int64_t nowMs);
  void refundPayer(const Framework& framework);
  void sendOverflow();
  void sendOverflow(Reporter reporter);
  void leaveSession(const std::string& why, int64_t nowMs);
  void retryCrowded(int64_t nowMs);

  // apply/session.cpp.

  // Adds agents to `*agents`; beyond a limit, sets `*all` instead.
  static void addAgents(
      const std::vector<uint32_t>& some,
      std::vector<uint32_t>* agents,
      bool* all);

  void askCycle(bool all, const std::vector<uint32_t>& agents, int64_t clockMs);
  void flushCycle();
  void forgetSession();
  void restartSession();

  // apply/judging.cpp.

  // Results of one slice of judging.
  struct Judging
  {
    explicit Judging(const session::Decisions& first) : outcomes(first) {}

    session::Outcomes outcomes;
    uint64_t bad = 0;
    size_t work = 0;
  };

  void judgeSome(int64_t nowMs);
  session::Decision nextDecision();
  bool isGangNext() const;
  void give(const Pair& pair, Parts&& parts);
  void takeBack(size_t before);
  Admission judgeCounted(
      const session::Decision& decision,
      int64_t nowMs,
      Pair* pair,
      Judging* judging);
  void judgeAlone(int64_t nowMs, Judging* judging);
  void judgeGang(int64_t nowMs, Judging* judging);
  Admission judgeOne(
      const session::Decision& decision,
      uint64_t known,
      int64_t nowMs,
      Pair* pair) const;
  bool isBad(
      const session::Decision& decision,
      uint64_t known,
      wire::OutcomeReason reason) const;
  void countBad(uint64_t bad, int64_t nowMs);
  void reclaim(const session::Decisions& decisions, int64_t nowMs);
  void assessAnswer(int64_t nowMs);

  // apply/resources.cpp.
  std::string followMisfit(
      const ConvertHeld& event,
      uint32_t agent,
      const std::string& wrong);

  // apply/shadow.cpp.
  int64_t comparedForMs() const;
  void askBeforeOffers(int64_t nowMs, int64_t silentMs);
  void bookBeside(
      uint32_t framework,
      uint32_t number,
      const Agent& agent,
      const OfferedBeside::Row& row);
  void compare(const Pair& pair, int64_t nowMs, Admission* admission);

  // apply/send.cpp: messages to the sidecar. `send` returns the message's
  // revision, or 0 without a session.
  uint64_t send(wire::Event&& event);
  void sendSoon();
  void sendCoalesced();
  void sendHold(
      uint32_t framework,
      uint32_t role,
      uint32_t agent,
      const Parts& parts);
  void reportOffers(size_t first);
  void reportMover(uint32_t agent, const Allocation& held);
  void sendPause();
  void sendSnapshot(int64_t nowMs);
  void sendConversion(
      uint32_t framework,
      uint32_t role,
      uint32_t agent,
      const Amounts& ofTotal,
      const Amounts& ofHeld);
  void define();
  void emit(Message&& message);
  void emit(Message::Kind kind);
  void emitEvent(wire::Event&& event);
  Place place(uint32_t framework, uint32_t role, uint32_t agent);
  Amounts toAmounts(const Parts& parts);

  // apply/settings.cpp.
  void exclude(
      uint32_t framework,
      uint32_t role,
      uint32_t agent,
      bool excluded,
      wire::Event* message);

  // apply/agents.cpp, apply/frameworks.cpp.
  std::string checkUses(const std::vector<Use>& used) const;
  std::vector<uint32_t> useRoles(uint32_t agent, const std::vector<Use>& used);
  void holdUses(
      uint32_t agent,
      const std::vector<Use>& used,
      const std::vector<uint32_t>& roles);
  void describeAgent(const wire::Agent& info, Agent* agent);
  void updateFoldedReport(Agent* agent);
  void describeFramework(const AddFramework& event, Framework* framework);

  // apply/late.cpp
  size_t workLeft(const std::string& payer) const;
  bool chargeWork(const Framework& framework, size_t work);
  bool chargeWork(const Framework& framework);
  bool chargeRequest(const Framework& framework);
  void sendUpdate(uint32_t framework);
  void sendRequest(uint32_t framework);
  void sendRequests();
  void deferUpdate(uint32_t framework, const std::set<uint32_t>& suppressed);
  void sendSuppressed(uint32_t framework, const std::set<uint32_t>& roles);
  void sendLateUpdates(int64_t nowMs);
  void sendLateRequests();
  void forgetLate(uint32_t framework, const std::string& id);
  void noteWaiting(
      const std::string& id,
      const std::set<std::string>& roles,
      bool suppressed);
  void setAside(
      const std::string& whose,
      size_t count,
      const Aside::Rows& rows,
      const Aside::Rows& before);
  const Framework* findFramework(const std::string& id, uint32_t* number);
  const Agent* findAgent(const std::string& id, uint32_t* number);

  Cluster state;
  Fallback fallback;
  IdleSidecarCheck idleCheck;
  Maintenance inverse;
  SnapshotBuilder snapshot;
  Comparison comparison;

  Ready effects;

  // State of the session.
  bool following = false; // The sidecar has a snapshot or is getting one.
  bool connected = false;
  uint64_t failures = 0;  // Failed attempts since the last session.
  uint64_t revisions = 0; // Messages sent so far.

  EventCoalescer coalescer;
  bool sendingSoon = false;
  std::vector<wire::Event> backlog; // Events that follow the snapshot.

  // Answers to judge, and the position in the first one.
  std::deque<Decided> unjudged;
  size_t judged = 0;
  size_t toJudge = 0;  // Decisions in the first answer.
  int judgedGroup = 0; // Group and row of the next decision.
  int judgedRow = 0;
  int judgedGangs = 0; // Gangs of the first answer that were judged.

  // Result of the answer being judged, and how many consecutive answers were
  // useless.
  struct Answer
  {
    bool gave = false;
    bool refused = false;
    bool bad = false;
    bool holdsBack = false;
  };

  Answer answer;
  int uselessAnswers = 0;

  // Whether the outstanding cycle repeats one with a useless answer, and when
  // the first one was requested.
  bool again = false;
  int64_t askedMs = 0;

  // How long answers have been due without any arriving, and when the module
  // last decided a cycle itself.
  int64_t quietMs = 0;
  int64_t aloneMs = INT64_MIN / 2;

  // At most one cycle is outstanding; requests made meanwhile are merged into
  // the next one.
  bool cycleAsked = false;
  bool cycleAskedAll = false; // The outstanding cycle covers all agents.
  bool cycleWanted = false;
  bool cycleAll = false;
  std::vector<uint32_t> cycleAgents;
  int64_t cycleClockMs = 0;

  // Agents that changed and wait for a cycle.
  std::vector<uint32_t> candidates;
  bool candidatesAll = false;
  bool triggered = false;

  size_t rolesKept = 0; // Roles left after the last cleanup.
  // When too many roles last forced a cleanup.
  int64_t rolesTightMs = INT64_MIN / 2;

  // When a session was last replaced because of too many roles or kinds.
  int64_t leftMs = INT64_MIN / 2;
  uint32_t reporters = 0;

  std::unordered_map<std::string, Footprint> payers;

  // The last input of frameworks with roles that wait for room, by id.
  std::map<std::string, UpdateFramework> crowded;
  size_t expectedAgents = 0;

  // When each timer is due; INT64_MAX for never.
  int64_t intervalEndMs = INT64_MAX;
  int64_t recoveryMs = INT64_MAX;
  int64_t watchMs = INT64_MAX; // Check whether the sidecar is silent.
  int64_t breakerMs = INT64_MAX;

  // Bad decisions in the current window of the circuit breaker.
  uint64_t badDecisions = 0;
  int64_t badSinceMs = 0;
  bool breakerOpen = false;

  size_t asideLines = 0; // Lines logged about ignored input in this interval.

  // Roles that the sidecar recomputed in this interval, by payer.
  std::unordered_map<std::string, size_t> workedOut;

  // Updates that exceeded the budget and are sent in a later interval.
  // `lateUpdates`: by framework, the roles that the sidecar believes to be
  // suppressed. `lateRequests`: frameworks whose last request was not sent.
  // `lateRoles`: ids of frameworks some of whose roles were not admitted yet.
  std::map<uint32_t, std::set<uint32_t>> lateUpdates;
  std::set<uint32_t> lateRequests;
  std::set<std::string> lateRoles;

  Stats counted;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_BRAIN_HPP__
