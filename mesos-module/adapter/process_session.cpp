#include "adapter/process.hpp"

#include <memory>
#include <utility>

#include <glog/logging.h>

#include <mesos/version.hpp>

#include <process/clock.hpp>
#include <process/delay.hpp>
#include <process/dispatch.hpp>
#include <process/process.hpp>

#include <stout/duration.hpp>
#include <stout/stringify.hpp>
#include <stout/uuid.hpp>

#include "adapter/builtin_metrics.hpp"
#include "adapter/convert.hpp"
#include "adapter/holdings.hpp"

#include "session/transport.hpp"

using std::string;
using std::unique_ptr;
using std::vector;

namespace allocator {
namespace adapter {

constexpr int64_t BREAKER_WINDOW_MS = 10000;


void AllocatorProcess::startSession()
{
  if (keeper != nullptr) {
    return;
  }

  const process::PID<AllocatorProcess> pid = self();
  const session::Executor executor = [pid](std::function<void()> function) {
    process::dispatch(pid, std::move(function));
  };

  string error;
  unique_ptr<session::Link> link(
      new session::Transport(parameters.transport, executor, &error));

  if (!error.empty()) {
    LOG(ERROR) << "There will be no sidecar: " << error;
    return;
  }

  session::KeeperOptions options;
  options.hello.set_mesos_version(MESOS_VERSION);
  options.hello.set_master_id(stringify(process::address()));
  options.hello.set_instance_id(id::UUID::random().toString());
  options.hello.set_instance_started_us(
      static_cast<int64_t>(process::Clock::now().duration().us()));
  *options.hello.mutable_options() = toOptions(state.options);
  options.hello.set_module_version(MODULE_VERSION);
  options.clockMs = [this]() { return allocationMs(); };
  options.deadlines = parameters.deadlines;
  options.seed = std::hash<string>()(options.hello.instance_id());

  keeper.reset(new session::Keeper(options, this, std::move(link)));
  keeper->start();
}


uint64_t AllocatorProcess::send(wire::Event&& event)
{
  if (!following) {
    return 0;
  }

  sendPending();
  define();
  return keeper->submit(std::move(event));
}


void AllocatorProcess::define()
{
  // A message must not become too large for the sidecar.
  constexpr size_t BYTES = 64 << 10;

  vector<wire::Kind> kinds = state.handles.kinds.takeNew();
  vector<wire::Role> roles = state.handles.roles.takeNew();
  wire::Event event;
  size_t bytes = 0;

  auto submit = [&](size_t more) {
    if (bytes > 0 && bytes + more > BYTES) {
      keeper->submit(std::move(event));
      event = wire::Event();
      bytes = 0;
    }
    bytes += more;
  };

  for (wire::Kind& kind : kinds) {
    submit(kind.ByteSizeLong());
    event.mutable_define()->add_kinds()->Swap(&kind);
  }

  for (wire::Role& role : roles) {
    submit(role.ByteSizeLong());
    event.mutable_define()->add_roles()->Swap(&role);
  }

  if (bytes > 0) {
    keeper->submit(std::move(event));
  }
}


void AllocatorProcess::sendSoon()
{
  if (pending.size() >= static_cast<size_t>(Pending::ROWS_MAX)) {
    sendPending();
  } else if (!sendingSoon) {
    // Behind what the master has said by then.
    sendingSoon = true;
    process::dispatch(self(), &AllocatorProcess::sendPendingNow);
  }
}


void AllocatorProcess::sendPendingNow()
{
  sendingSoon = false;
  sendPending();
}


void AllocatorProcess::sendPending()
{
  if (!following || pending.size() == 0) {
    return;
  }

  define();
  for (wire::Event& event : pending.take()) {
    keeper->submit(std::move(event));
  }
}


void AllocatorProcess::sendHold(
    const FrameworkID& frameworkId,
    const SlaveID& agentId,
    const Resources& resources)
{
  if (!following) {
    return;
  }

  HoldingsWriter writer(&state.handles);
  writer.add(frameworkId, agentId, resources);

  for (const auto& group : writer.groups()) {
    wire::Event event;
    *event.mutable_hold() = group.second;
    send(std::move(event));
  }
}


void AllocatorProcess::sendPause()
{
  wire::Event event;
  event.mutable_pause()->set_paused(state.recovering);
  send(std::move(event));
}


void AllocatorProcess::connected(const wire::Welcome& welcome)
{
  failures = 0;
  LOG(INFO) << "Sidecar " << welcome.sidecar_id() << " (version "
            << welcome.sidecar_version() << ") decides on offers from now on";
}


void AllocatorProcess::ended(const session::Keeper::End& end)
{
  following = false;
  pending.clear();
  unjudged.clear();

  // Where nobody comes for hours, not every attempt is worth a line.
  const bool worth = failures < 4 || (failures & (failures - 1)) == 0;
  ++failures;

  LOG_IF(WARNING, worth) << (end.wasConnected
                                 ? "The session with the sidecar ended"
                                 : "There is no session with a sidecar")
                         << " (" << session::causeName(end.cause)
                         << "): " << end.reason << "; trying again in "
                         << end.retryIn.count() << " ms, "
                         << (parameters.fallback ? "offering by DRF meanwhile"
                                                 : "without offers meanwhile");

  // What it was asked last will not come.
  builtin->runEnds();

  if (end.wasConnected) {
    triggerAll();
  }
}


Verdict AllocatorProcess::decide(
    const session::Decision& decision,
    uint64_t sequence,
    const QuotaBook& quotas,
    int64_t clockMs,
    Pair* pair) const
{
  const Handles& handles = state.handles;
  const FrameworkID* frameworkId = handles.frameworks.id(decision.framework());
  const string* role = handles.roles.path(decision.role());
  const SlaveID* agentId = handles.agents.id(decision.agent());

  Verdict verdict;

  if (frameworkId == nullptr) {
    verdict.reason = wire::OUTCOME_REASON_UNKNOWN_FRAMEWORK;
  } else if (role == nullptr) {
    verdict.reason = wire::OUTCOME_REASON_BAD_ROLE;
  } else if (agentId == nullptr) {
    verdict.reason = wire::OUTCOME_REASON_UNKNOWN_AGENT;
  } else if (
      handles.frameworks.batch(decision.framework()) > sequence ||
      handles.agents.batch(decision.agent()) > sequence) {
    verdict.reason = wire::OUTCOME_REASON_STALE;
  }

  if (verdict.reason != wire::OUTCOME_REASON_UNSPECIFIED) {
    return verdict;
  }

  pair->frameworkId = *frameworkId;
  pair->role = *role;
  pair->agentId = *agentId;

  Amounts wanted;
  wanted.reserve(decision.kinds());
  for (size_t column = 0; column < decision.kinds(); ++column) {
    const int64_t amount = decision.amount(column);
    if (amount != 0) {
      wanted.emplace_back(decision.kind(column), amount);
    }
  }

  return judge(state, *pair, wanted, quotas, clockMs);
}


// Whether a sidecar that knows what it was sent cannot have decided this.
bool AllocatorProcess::isBad(
    const session::Decision& decision,
    uint64_t sequence,
    wire::OutcomeReason reason) const
{
  switch (reason) {
    case wire::OUTCOME_REASON_MALFORMED: return true;
    case wire::OUTCOME_REASON_BAD_ROLE:
      return state.handles.roles.path(decision.role()) == nullptr;
    case wire::OUTCOME_REASON_UNKNOWN_AGENT:
      return !state.handles.agents.excused(decision.agent(), sequence);
    case wire::OUTCOME_REASON_UNKNOWN_FRAMEWORK:
      return !state.handles.frameworks.excused(decision.framework(), sequence);
    default: return false;
  }
}


void AllocatorProcess::decided(const session::Decisions& decisions)
{
  // A bracket of the master's calls lasts for microseconds; what comes
  // within one is judged after it.
  if (state.paused) {
    unjudged.push_back(decisions);
    return;
  }

  QuotaBook quotas(state);
  hashmap<FrameworkID, Offers> offers;
  session::Outcomes outcomes(decisions);
  const int64_t clockMs = nowMs();
  size_t bad = 0;
  Pair pair;

  decisions.each([&](const session::Decision& decision) {
    const Verdict verdict =
        decide(decision, decisions.sequence, quotas, clockMs, &pair);

    if (verdict.reason == wire::OUTCOME_REASON_OFFERED) {
      outcomes.offered();
    } else if (verdict.reason == wire::OUTCOME_REASON_PARTIAL) {
      outcomes.partial(decision, amountsOf(verdict.given, decision));
    } else {
      outcomes.refused(verdict.reason);
      bad += isBad(decision, decisions.sequence, verdict.reason) ? 1 : 0;
      return;
    }

    quotas.charge(pair.role, verdict.given);
    offers[pair.frameworkId][pair.role][pair.agentId] += state.ledger.offer(
        pair.frameworkId, pair.agentId, pair.role, verdict.given, verdict.all);
  });

  if (outcomes.size() > 0) {
    sendPending();
    keeper->report(outcomes);
  }

  makeOffers(offers);
  countBad(bad);

  if (keeper == nullptr || keeper->waiting() == session::Duration(0)) {
    builtin->runEnds();
  }
}


vector<int64_t> AllocatorProcess::amountsOf(
    const Resources& given,
    const session::Decision& decision)
{
  const Amounts amounts = toAmounts(given, &state.handles.kinds);
  vector<int64_t> result(decision.kinds(), 0);

  for (size_t column = 0; column < decision.kinds(); ++column) {
    for (const auto& entry : amounts) {
      if (entry.first == decision.kind(column)) {
        result[column] = entry.second;
      }
    }
  }

  return result;
}


void AllocatorProcess::countBad(size_t bad)
{
  const int64_t now = nowMs();

  if (now - badSinceMs > BREAKER_WINDOW_MS) {
    badSinceMs = now;
    badDecisions = 0;
  }

  badDecisions += bad;

  if (badDecisions <= parameters.badDecisionsMax || breakerOpen) {
    return;
  }

  LOG(ERROR) << "The sidecar made " << badDecisions << " bad decisions within "
             << now - badSinceMs << " ms; doing without it for "
             << parameters.breakerPause.count() << " ms";

  ++breakerTrips;
  breakerOpen = true;
  badDecisions = 0;
  following = false;
  pending.clear();

  // Others of the same session must not be judged, either.
  unjudged.clear();
  keeper->stop();

  process::delay(
      Milliseconds(parameters.breakerPause.count()),
      self(),
      &AllocatorProcess::closeBreaker);
}


void AllocatorProcess::closeBreaker()
{
  breakerOpen = false;
  if (keeper != nullptr) {
    keeper->start();
  }
}

} // namespace adapter {
} // namespace allocator {
