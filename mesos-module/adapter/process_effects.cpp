#include "adapter/process.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <vector>

#include <glog/logging.h>

#include <mesos/version.hpp>

#include <process/clock.hpp>
#include <process/delay.hpp>
#include <process/dispatch.hpp>

#include <stout/duration.hpp>
#include <stout/stringify.hpp>
#include <stout/uuid.hpp>

#include "adapter/builtin_metrics.hpp"
#include "adapter/convert.hpp"

#include "session/transport.hpp"

using std::string;
using std::vector;

namespace allocator {
namespace adapter {

void AllocatorProcess::carryOut()
{
  // Offers may be left over from an earlier exception.
  giveBack();

  brain::Ready ready = brain.ready();
  takeEffects(&ready);

  // Schedule wake-ups first, because a later exception must not prevent them.
  if (ready.soon && !wakingSoon) {
    process::dispatch(self(), &AllocatorProcess::wakeSoon);
    wakingSoon = true;
  }
  wakeAt(ready.wakeMs);

  for (const brain::Log& log : ready.logs) {
    switch (log.level) {
      case brain::Log::Level::INFO: LOG(INFO) << log.text; break;
      case brain::Log::Level::WARNING: LOG(WARNING) << log.text; break;
      case brain::Log::Level::ERROR: LOG(ERROR) << log.text; break;
    }
  }

  const brain::Exclude held = holdBackExcluded();
  makeOffers();
  makeInverseOffers();

  for (brain::Message& message : ready.messages) {
    carryOut(std::move(message));
  }

  // These call `step`, which carries out further effects.
  reportHeldBack(held);
  if (!notStarted.empty()) {
    brain::NotStarted event;
    event.why.swap(notStarted);
    step(event);
    return;
  }

  if (builtin != nullptr && !brain.isUnderWay()) {
    builtin->runEnds();
  }
  if (builtin != nullptr && brain.isDue(nowMs())) {
    builtin->runDue();
  }
}


// Stores the effects that the brain reports only once, in case carrying out the
// others throws. `unmade` must be empty.
void AllocatorProcess::takeEffects(brain::Ready* ready)
{
  unmade.swap(ready->offers);
  unmadeInverse.swap(ready->inverseOffers);
  toForget.insert(
      toForget.end(), ready->forgotten.begin(), ready->forgotten.end());

  // Forget one at a time, so that no number is forgotten twice after an
  // exception.
  while (!toForget.empty()) {
    objects.forget({toForget.back()});
    toForget.pop_back();
  }
}


void AllocatorProcess::carryOut(brain::Message&& message)
{
  using Kind = brain::Message::Kind;

  if (message.kind == Kind::START) {
    startSession();
    return;
  }

  if (keeper == nullptr) {
    return;
  }

  switch (message.kind) {
    case Kind::SNAPSHOT:
      keeper->snapshot(std::move(message.chunks), message.revision);
      break;
    case Kind::EVENT:
      keeper->submit(std::move(message.event), message.revision);
      break;
    case Kind::OUTCOMES: keeper->report(*message.outcomes); break;
    case Kind::CYCLE:
      cycleMs = message.clockMs;
      keeper->cycle(message.agents);
      cycleMs = None();
      break;
    default: keeper->stop(); break;
  }
}


void AllocatorProcess::startSession()
{
  if (keeper != nullptr) {
    keeper->start();
    return;
  }

  try {
    const process::PID<AllocatorProcess> pid = self();
    const session::Executor executor = [=](std::function<void()> function) {
      process::dispatch(pid, std::function<void()>([this, function]() {
                          guard([&]() {
                            function();
                            return string();
                          });
                        }));
    };

    string error;
    std::unique_ptr<session::Link> link(
        new session::Transport(parameters.transport, executor, &error));
    notStarted = error;

    if (error.empty()) {
      session::KeeperOptions settings;
      settings.hello.set_mesos_version(MESOS_VERSION);
      settings.hello.set_master_id(stringify(process::address()));
      settings.hello.set_instance_id(id::UUID::random().toString());
      settings.hello.set_instance_started_us(
          static_cast<int64_t>(process::Clock::now().duration().us()));
      *settings.hello.mutable_options() = toWire(options);
      settings.hello.set_module_version(MODULE_VERSION);
      settings.clockMs = [this]() { return sessionClockMs(); };
      settings.writeStats = [this](wire::ModuleFigures* figures) {
        session::write(brain::published(), brain.stats(), figures);
      };
      settings.deadlines = parameters.deadlines;
      settings.seed = std::hash<string>()(settings.hello.instance_id());

      keeper.reset(new session::Keeper(settings, this, std::move(link)));
      keeper->start();
    }
  } catch (const std::exception& error) {
    // For example, no thread could be started.
    keeper.reset();
    notStarted = error.what();
  }
}


namespace {

// Hashes may collide, so compare the offers as well.
uint64_t hashOf(const brain::Offer& offer)
{
  uint64_t hash = offer.role;
  const auto mix = [&hash](uint64_t number) {
    hash = (hash ^ number) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };

  for (const brain::Part& part : offer.parts) {
    mix(part.resourceClass);
    mix(static_cast<uint64_t>(part.amount));
    for (const brain::Span& span : part.spans) {
      mix(span.begin);
      mix(span.end);
    }
  }
  return hash;
}

} // namespace {


// The objects of an offer, allocated to its role.
const Resources& AllocatorProcess::toOffer(const brain::Offer& offer)
{
  const string& role = brain.cluster().roles.path(offer.role);

  // Drop cached offers when most are no longer made.
  if (offered.size() > 2 * agents.size()) {
    offered.clear();
  }

  Offered& last = offered[hashOf(offer)];

  if (last.generation != objects.generation() || last.role != role ||
      last.parts != offer.parts) {
    last.resources = objects.toResources(offer.parts);
    last.resources.allocate(role);
    last.parts = offer.parts;
    last.role = role;
    last.generation = objects.generation();
  }

  return last.resources;
}


// Makes the offers in `unmade`. After an exception, those that the master did
// not get remain there.
void AllocatorProcess::makeOffers()
{
  while (!unmade.empty()) {
    vector<brain::Offer> later = takeOtherCopies();
    try {
      makeOffersTogether();
    } catch (...) {
      // This cannot throw, because `unmade` still has its former capacity.
      std::move(later.begin(), later.end(), std::back_inserter(unmade));
      throw;
    }
    unmade = std::move(later);
  }
}


// Takes from `unmade` further copies of a shared volume for the same framework,
// role and agent. The master keeps only one copy per offer, so each becomes a
// separate offer later. An exception leaves `unmade` complete.
vector<brain::Offer> AllocatorProcess::takeOtherCopies()
{
  const brain::ResourceClasses& classes = brain.cluster().classes;
  std::set<std::array<uint32_t, 4>> given;
  vector<size_t> others;

  for (size_t i = 0; i < unmade.size(); ++i) {
    const brain::Offer& offer = unmade[i];
    bool isOther = false;
    for (const brain::Part& part : offer.parts) {
      if (classes.row(part.resourceClass).traits.shared) {
        const std::array<uint32_t, 4> copy = {
            {offer.framework, offer.role, offer.agent, part.resourceClass}};
        isOther = !given.insert(copy).second || isOther;
      }
    }
    if (isOther) {
      others.push_back(i);
    }
  }

  vector<brain::Offer> result;
  result.reserve(others.size());
  for (size_t i : others) {
    result.push_back(std::move(unmade[i]));
  }
  for (auto i = others.rbegin(); i != others.rend(); ++i) {
    unmade.erase(unmade.begin() + *i);
  }
  return result;
}


void AllocatorProcess::makeOffersTogether()
{
  const brain::Cluster& cluster = brain.cluster();
  hashmap<uint32_t, Offers> offers;

  for (const brain::Offer& offer : unmade) {
    const Resources& resources = toOffer(offer);
    const auto place =
        offers[offer.framework][cluster.roles.path(offer.role)].emplace(
            agentIdOf(offer.agent), resources);

    // Merge with an earlier offer of the agent; there is rarely one.
    if (!place.second) {
      place.first->second += resources;
    }
  }

  try {
    for (auto& entry : offers) {
      offerCallback(frameworkIdOf(entry.first), entry.second);
      entry.second.clear();
    }
  } catch (...) {
    const auto isMade = [&](const brain::Offer& offer) {
      return offers.at(offer.framework).empty();
    };
    unmade.erase(
        std::remove_if(unmade.begin(), unmade.end(), isMade), unmade.end());
    throw;
  }

  unmade.clear();
}


// Makes the inverse offers in `unmadeInverse`, likewise.
void AllocatorProcess::makeInverseOffers()
{
  hashmap<uint32_t, InverseOffers> offers;

  for (const brain::InverseOffer& offer : unmadeInverse) {
    const SlaveID agentId = agentIdOf(offer.agent);
    auto agent = agents.find(agentId);

    if (agent != agents.end() && agent->second.unavailability.isSome()) {
      offers[offer.framework][agentId] = mesos::UnavailableResources{
          Resources(), agent->second.unavailability.get()};
    }
  }

  for (const auto& entry : offers) {
    inverseOfferCallback(frameworkIdOf(entry.first), entry.second);

    const auto isMade = [&](const brain::InverseOffer& offer) {
      return offer.framework == entry.first;
    };
    unmadeInverse.erase(
        std::remove_if(unmadeInverse.begin(), unmadeInverse.end(), isMade),
        unmadeInverse.end());
  }

  unmadeInverse.clear();
}


// Releases what was booked for offers that were not made, and lets inverse
// offers be made again. Skips removed agents and frameworks: the books have
// already released their resources.
void AllocatorProcess::giveBack()
{
  const brain::Cluster& cluster = brain.cluster();

  while (!unmade.empty()) {
    giveBackOffer();
  }

  while (!unmadeInverse.empty()) {
    const brain::InverseOffer& offer = unmadeInverse.back();
    const string* agent = cluster.agentHandles.id(offer.agent);
    const string* framework = cluster.frameworkHandles.id(offer.framework);

    if (agent != nullptr && framework != nullptr) {
      brain::AnswerInverseOffer event;
      event.agent = *agent;
      event.framework = *framework;
      brain.step(event, nowMs());
    }
    unmadeInverse.pop_back();
  }
}


void AllocatorProcess::giveBackOffer()
{
  const brain::Cluster& cluster = brain.cluster();
  const brain::Offer& offer = unmade.back();
  const string* agent = cluster.agentHandles.id(offer.agent);
  const string* framework = cluster.frameworkHandles.id(offer.framework);

  if (agent != nullptr && framework != nullptr) {
    brain::Release event;
    event.agent = *agent;
    event.framework = *framework;
    event.parts.push_back(
        brain::RoleParts{cluster.roles.path(offer.role), offer.parts});
    brain.step(event, nowMs());
  }
  unmade.pop_back();
}


// Sets the timer for exactly this time, because a test that advances a paused
// clock to this time expects it to fire.
void AllocatorProcess::wakeAt(int64_t ms)
{
  if (ms < alarmMs) {
    process::delay(
        Milliseconds(std::max<int64_t>(ms - nowMs(), 0)),
        self(),
        &AllocatorProcess::wakeByAlarm);
    alarmMs = ms;
  }
}


void AllocatorProcess::wakeSoon()
{
  wakingSoon = false;
  wake();
}


void AllocatorProcess::wakeByAlarm()
{
  if (nowMs() >= alarmMs) {
    alarmMs = INT64_MAX;
  }
  wake();
}


void AllocatorProcess::wake()
{
  guard([this]() {
    if (builtin != nullptr && brain.isDue(nowMs())) {
      builtin->runBegins();
    }
    evaluateSome();

    brain::Wake event;
    if (keeper != nullptr) {
      event.silentMs = keeper->waiting().count();
      event.quietMs = keeper->quiet().count();
    }
    return step(event);
  });
}

} // namespace adapter {
} // namespace allocator {
