#include "adapter/process.hpp"

#include <utility>

#include <glog/logging.h>

#include <process/clock.hpp>
#include <process/event.hpp>
#include <process/id.hpp>

#include <stout/uuid.hpp>

#include "adapter/attempt.hpp"
#include "adapter/builtin_metrics.hpp"
#include "adapter/convert.hpp"
#include "adapter/metrics.hpp"

using std::string;
using std::vector;

namespace allocator {
namespace adapter {

AllocatorProcess::AllocatorProcess(const session::Parameters& _parameters)
  : ProcessBase(process::ID::generate("sidecar-allocator")),
    parameters(_parameters),
    objects([this](uint32_t resourceClass, const brain::Traits& traits) {
      brain::DefineResourceClass event;
      event.resourceClass = resourceClass;
      event.traits = traits;
      brain.step(event, nowMs());
    }),
    gauges(self())
{
  // Like the metrics of Mesos's own allocator, these exist before `initialize`.
  // In shadow mode that allocator publishes its own.
  if (!parameters.shadow) {
    attempt("show metrics", [this]() {
      const auto dispatches = [this]() {
        return double(eventCount<process::DispatchEvent>());
      };
      builtin.reset(new BuiltinMetrics(&gauges, dispatches, brain.cluster()));
    });
  }
}


AllocatorProcess::~AllocatorProcess() {}


string AllocatorProcess::guard(const std::function<string()>& function)
{
  return brain::attempt<string>(function, [this](const char* error) {
    string why = "no memory";
    attempt("log an error", [&]() {
      LOG(ERROR) << "The allocator could not handle a call: " << error;
      why = error;
    });
    doWithoutSidecar(why);
    return why;
  });
}


// Handles an exception in the actor. Messages to the sidecar may be lost, so
// the session ends. Each step is tried separately, so that a failure does not
// prevent the next.
void AllocatorProcess::doWithoutSidecar(const string& why)
{
  attempt("end the session", [this]() {
    if (keeper != nullptr) {
      keeper->stop();
    }
  });
  attempt("release unmade offers", [this]() { giveBack(); });
  attempt(
      "continue without a session", [&]() { step(brain::NotStarted{why}); });
}


void AllocatorProcess::initialize_(
    const mesos::allocator::Options& _options,
    const OfferCallback& _offerCallback,
    const InverseOfferCallback& _inverseOfferCallback)
{
  // Do not use `guard`: it starts a session after an exception, which a standby
  // master must not do.
  attempt("initialize", [&]() {
    options = _options;
    offerCallback = _offerCallback;
    inverseOfferCallback = _inverseOfferCallback;

    brain::Initialize event;
    event.options = toOptions(options, parameters);
    event.options.seed = std::hash<string>()(id::UUID::random().toString());
    step(event);
    LOG(INFO) << "Allocator initialized; its sidecar is at "
              << parameters.transport.channel.target;
  });

  attempt("show metrics", [this]() { metrics.reset(new Metrics(*this)); });
}


void AllocatorProcess::finalize()
{
  metrics.reset();
  builtin.reset();

  // Ends the session's threads while the actor still exists.
  keeper.reset();
}


void AllocatorProcess::recover(
    int expectedAgentCount,
    const hashmap<string, mesos::Quota>& quotas)
{
  guard([&]() {
    brain::Recover event;
    event.expectedAgents = expectedAgentCount;
    for (const auto& entry : quotas) {
      event.quotas.push_back(toQuota(entry.first, entry.second));
    }
    const string wrong = step(event);
    for (const auto& entry : quotas) {
      if (builtin != nullptr) {
        builtin->setQuota(entry.first, entry.second);
      }
    }
    return wrong;
  });
}


void AllocatorProcess::pause()
{
  guard([this]() { return step(brain::Pause{true}); });
}


void AllocatorProcess::resume()
{
  guard([this]() { return step(brain::Pause{false}); });
}


SlaveID AllocatorProcess::agentIdOf(uint32_t number) const
{
  SlaveID agentId;
  agentId.set_value(*brain.cluster().agentHandles.id(number));
  return agentId;
}


FrameworkID AllocatorProcess::frameworkIdOf(uint32_t number) const
{
  FrameworkID frameworkId;
  frameworkId.set_value(*brain.cluster().frameworkHandles.id(number));
  return frameworkId;
}


int64_t AllocatorProcess::nowMs()
{
  return masterClock.at(
      static_cast<int64_t>(process::Clock::now().duration().ms()));
}


int64_t AllocatorProcess::sessionClockMs()
{
  return cycleMs.isSome() ? cycleMs.get() : nowMs();
}


void AllocatorProcess::welcomed(
    const wire::Welcome& welcome,
    size_t chunkBytesMax)
{
  guard([&]() {
    return step(brain::Welcomed{welcome.kinds_max(), chunkBytesMax});
  });
}


void AllocatorProcess::connected(const wire::Welcome& welcome)
{
  guard([&]() {
    return step(
        brain::Connected{welcome.sidecar_id(), welcome.sidecar_version()});
  });
}


void AllocatorProcess::decided(session::Decisions&& decisions)
{
  guard([&]() { return step(brain::Decided{std::move(decisions)}); });
}


void AllocatorProcess::ended(const session::Keeper::End& end)
{
  guard([&]() {
    return step(brain::Ended{
        end.wasConnected,
        string(session::causeName(end.cause)) + ": " + end.reason,
        end.retryIn.count()});
  });
}

} // namespace adapter {
} // namespace allocator {
