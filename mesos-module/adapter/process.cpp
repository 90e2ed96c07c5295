#include "adapter/process.hpp"

#include <glog/logging.h>

#include <process/clock.hpp>
#include <process/id.hpp>

#include <stout/uuid.hpp>

#include "adapter/builtin_metrics.hpp"
#include "adapter/convert.hpp"
#include "adapter/metrics.hpp"

using std::string;
using std::vector;

namespace allocator {
namespace adapter {

AllocatorProcess::AllocatorProcess(const Parameters& _parameters)
  : ProcessBase(process::ID::generate("sidecar-allocator")),
    parameters(_parameters),
    objects([this](uint32_t piece, const brain::Traits& traits) {
      brain::DefinePiece event;
      event.piece = piece;
      event.traits = traits;
      brain.step(event, nowMs());
    })
{
  // As with the built-in allocator, they are there before it is initialized.
  // In shadow they are its own.
  guard([this]() {
    if (!parameters.shadow) {
      startBuiltinMetrics();
    }
    return string();
  });
}


AllocatorProcess::~AllocatorProcess() {}


string AllocatorProcess::guard(const std::function<string()>& function)
{
  try {
    return function();
  } catch (const std::exception& error) {
    LOG(ERROR) << "The allocator could not do what it was asked: "
               << error.what();
    doWithoutSidecar(error.what());
    return error.what();
  }
}


// What the sidecar should have heard may be lost, so it is to begin anew.
void AllocatorProcess::doWithoutSidecar(const string& why)
{
  try {
    if (keeper != nullptr) {
      keeper->stop();
    }
    giveBack();
    step(brain::NotStarted{why});
  } catch (const std::exception& error) {
    LOG(ERROR) << "The allocator has no more means: " << error.what();
  }
}


void AllocatorProcess::initialize_(
    const mesos::allocator::Options& _options,
    const OfferCallback& _offerCallback,
    const InverseOfferCallback& _inverseOfferCallback)
{
  options = _options;
  offerCallback = _offerCallback;
  inverseOfferCallback = _inverseOfferCallback;

  guard([this]() {
    metrics.reset(new Metrics(*this));
    LOG(INFO) << "Allocator initialized; its sidecar is at "
              << parameters.transport.channel.target;

    brain::Initialize event;
    event.options = toOptions(options, parameters);
    event.options.seed = std::hash<string>()(id::UUID::random().toString());
    return step(event);
  });
}


void AllocatorProcess::finalize()
{
  metrics.reset();
  builtin.reset();

  // Its threads end here, while the actor still exists.
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
      if (builtin != nullptr) {
        builtin->setQuota(entry.first, entry.second);
      }
    }
    return step(event);
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


void AllocatorProcess::decided(const session::Decisions& decisions)
{
  guard([&]() { return step(brain::Decided{decisions}); });
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
