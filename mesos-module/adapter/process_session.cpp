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

#include "adapter/convert.hpp"

#include "client/transport.hpp"

using std::map;
using std::string;
using std::unique_ptr;
using std::vector;

namespace allocator {
namespace adapter {

constexpr int64_t BREAKER_WINDOW_MS = 10000;

constexpr char MODULE_VERSION[] = "0.1.0";


void AllocatorProcess::startClient()
{
  if (client != nullptr) {
    return;
  }

  const process::PID<AllocatorProcess> pid = self();
  const client::Executor executor = [pid](std::function<void()> function) {
    process::dispatch(pid, std::move(function));
  };

  string error;
  unique_ptr<client::Link> link(
      new client::Transport(parameters.transport, executor, &error));

  if (!error.empty()) {
    LOG(ERROR) << "There will be no sidecar: " << error;
    return;
  }

  client::ClientOptions options;
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

  client.reset(new client::Client(options, this, std::move(link)));
  client->start();
}


uint64_t AllocatorProcess::tell(wire::Event&& event)
{
  if (!following) {
    return 0;
  }

  vector<wire::Kind> kinds = state.handles.kinds.takeNew();
  vector<wire::Role> roles = state.handles.roles.takeNew();

  if (!kinds.empty() || !roles.empty()) {
    wire::Event define;
    for (wire::Kind& kind : kinds) {
      define.mutable_define()->add_kinds()->Swap(&kind);
    }
    for (wire::Role& role : roles) {
      define.mutable_define()->add_roles()->Swap(&role);
    }
    client->submit(std::move(define));
  }

  return client->submit(std::move(event));
}


void AllocatorProcess::tellHold(
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
    tell(std::move(event));
  }
}


void AllocatorProcess::tellPause()
{
  wire::Event event;
  event.mutable_pause()->set_paused(state.held());
  tell(std::move(event));
}


void AllocatorProcess::connected(const wire::Welcome& welcome)
{
  LOG(INFO) << "Sidecar " << welcome.sidecar_id() << " (version "
            << welcome.sidecar_version() << ") decides on offers from now on";
}


void AllocatorProcess::ended(const client::Client::End& end)
{
  following = false;

  LOG(WARNING) << (end.wasConnected ? "The session with the sidecar ended"
                                    : "There is no session with a sidecar")
               << " (" << client::causeName(end.cause) << "): " << end.reason
               << "; trying again in " << end.retryIn.count() << " ms, "
               << (parameters.fallback ? "offering by DRF meanwhile"
                                       : "without offers meanwhile");

  // What it was asked last will not come.
  if (end.wasConnected) {
    triggerAll();
  }
}


Verdict AllocatorProcess::decide(
    const client::Decisions& decisions,
    size_t row,
    const QuotaBook& quotas,
    Pair* pair) const
{
  const Handles& handles = state.handles;
  const FrameworkID* frameworkId =
    handles.frameworks.id(decisions.framework(row));
  const string* role = handles.roles.path(decisions.role(row));
  const SlaveID* agentId = handles.agents.id(decisions.agent(row));

  Verdict verdict;

  if (frameworkId == nullptr) {
    verdict.reason = wire::OUTCOME_REASON_UNKNOWN_FRAMEWORK;
  } else if (role == nullptr) {
    verdict.reason = wire::OUTCOME_REASON_BAD_ROLE;
  } else if (agentId == nullptr) {
    verdict.reason = wire::OUTCOME_REASON_UNKNOWN_AGENT;
  } else if (
      handles.frameworks.batch(decisions.framework(row)) >
        decisions.sequence ||
      handles.agents.batch(decisions.agent(row)) > decisions.sequence) {
    verdict.reason = wire::OUTCOME_REASON_STALE;
  }

  if (verdict.reason != wire::OUTCOME_REASON_UNSPECIFIED) {
    return verdict;
  }

  *pair = Pair{*frameworkId, *role, *agentId};

  map<uint32_t, int64_t> wanted;
  for (size_t column = 0; column < decisions.kinds(); ++column) {
    const int64_t amount = decisions.amount(row, column);
    if (amount != 0) {
      wanted[decisions.kind(column)] = amount;
    }
  }

  return judge(state, *pair, wanted, quotas, nowMs());
}


void AllocatorProcess::decided(const client::Decisions& decisions)
{
  QuotaBook quotas(state);
  hashmap<FrameworkID, Offers> offers;
  client::Outcomes outcomes(decisions);
  size_t bad = 0;

  for (size_t row = 0; row < decisions.size(); ++row) {
    Pair pair;
    const Verdict verdict = decide(decisions, row, quotas, &pair);

    switch (verdict.reason) {
      case wire::OUTCOME_REASON_OFFERED:
        outcomes.offered();
        break;
      case wire::OUTCOME_REASON_PARTIAL: {
        map<uint32_t, int64_t> given =
          toAmounts(verdict.given, &state.handles.kinds);
        vector<int64_t> amounts;
        for (size_t column = 0; column < decisions.kinds(); ++column) {
          amounts.push_back(given[decisions.kind(column)]);
        }
        outcomes.partial(amounts);
        break;
      }
      case wire::OUTCOME_REASON_MALFORMED:
      case wire::OUTCOME_REASON_BAD_ROLE:
      case wire::OUTCOME_REASON_UNKNOWN_AGENT:
      case wire::OUTCOME_REASON_UNKNOWN_FRAMEWORK:
        ++bad;
        outcomes.refused(verdict.reason);
        continue;
      default:
        outcomes.refused(verdict.reason);
        continue;
    }

    Resources given = verdict.given;
    quotas.charge(pair.role, given);
    given.allocate(pair.role);
    state.ledger.hold(pair.frameworkId, pair.agentId, given);
    offers[pair.frameworkId][pair.role][pair.agentId] += given;
  }

  if (decisions.size() > 0) {
    client->report(outcomes);
  }

  send(offers);
  countBad(bad);
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
  client->stop();

  process::delay(
      Milliseconds(parameters.breakerPause.count()),
      self(),
      &AllocatorProcess::closeBreaker);
}


void AllocatorProcess::closeBreaker()
{
  breakerOpen = false;
  if (client != nullptr) {
    client->start();
  }
}

} // namespace adapter {
} // namespace allocator {
