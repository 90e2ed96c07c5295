#include "tests/adapter/driver_master.hpp"

#include <mutex>
#include <thread>
#include <utility>

#include <mesos/maintenance/maintenance.hpp>

#include <process/defer.hpp>
#include <process/dispatch.hpp>
#include <process/metrics/metrics.hpp>

#include <stout/duration.hpp>
#include <stout/stringify.hpp>

using std::string;
using std::vector;

using process::Future;
using process::Promise;

namespace allocator {
namespace driver {
namespace {

const Duration PATIENCE = Minutes(1);


// A machine of a medium-sized cluster.
Resources totalOf()
{
  static const Resources total =
      Resources::parse("cpus:24;mem:65536;disk:409600;ports:[31000-32000]")
          .get();
  return total;
}


SlaveInfo agentInfo(size_t number)
{
  SlaveInfo info;
  *info.mutable_id() = agentIdOf(number);
  info.set_hostname("host-" + stringify(number));
  *info.mutable_resources() = totalOf();
  return info;
}


vector<SlaveInfo::Capability> agentCapabilities()
{
  vector<SlaveInfo::Capability> result;
  for (auto type :
       {SlaveInfo::Capability::MULTI_ROLE,
        SlaveInfo::Capability::HIERARCHICAL_ROLE,
        SlaveInfo::Capability::RESERVATION_REFINEMENT}) {
    SlaveInfo::Capability capability;
    capability.set_type(type);
    result.push_back(capability);
  }
  return result;
}


FrameworkInfo frameworkInfo(size_t number, size_t roles)
{
  FrameworkInfo info;
  *info.mutable_id() = frameworkIdOf(number);
  info.set_user("driver");
  info.set_name("framework-" + stringify(number));
  info.add_roles("role-" + stringify(number % roles));
  info.add_capabilities()->set_type(FrameworkInfo::Capability::MULTI_ROLE);
  return info;
}

} // namespace {


FrameworkID frameworkIdOf(size_t number)
{
  FrameworkID id;
  id.set_value("6c3a0b1e-88f6-4d2e-9a55-1f0d3b9e7c21-F" + stringify(number));
  return id;
}


SlaveID agentIdOf(size_t number)
{
  SlaveID id;
  id.set_value("6c3a0b1e-88f6-4d2e-9a55-1f0d3b9e7c21-S" + stringify(number));
  return id;
}


// Receives the offers.
class Master::Inbox : public process::Process<Inbox>
{
public:
  void offered(
      const FrameworkID& frameworkId,
      const hashmap<string, hashmap<SlaveID, Resources>>& offers)
  {
    const Price before = priceOfThread();

    for (const auto& role : offers) {
      for (const auto& agent : role.second) {
        held.push_back(Held{frameworkId, agent.first, agent.second});
        agents.insert(agent.first);
      }
    }

    if (agents.size() >= wanted && waiter) {
      waiter->set(Nothing());
      waiter.reset();
    }

    own += priceOfThread() - before;
  }

  Future<Nothing> wait(size_t _wanted)
  {
    wanted = _wanted;
    if (agents.size() >= wanted) {
      return Nothing();
    }

    waiter.reset(new Promise<Nothing>());
    return waiter->future();
  }

  // Returns the offers received, and forgets them.
  vector<Held> take()
  {
    const Price before = priceOfThread();
    agents.clear();
    vector<Held> result;
    result.swap(held);
    own += priceOfThread() - before;
    return result;
  }

  size_t count() { return held.size(); }

  // The price of the thread that all actors share, without this actor's part.
  Price priceOfOthers() { return priceOfThread() - own; }

private:
  vector<Held> held;
  hashset<SlaveID> agents;
  size_t wanted = 0;
  std::unique_ptr<Promise<Nothing>> waiter;
  Price own;
};


Master::Master(
    mesos::allocator::Allocator* _allocator,
    const Size& _size,
    const Option<Duration>& interval)
  : allocator(_allocator), size(_size), inbox(new Inbox())
{
  process::spawn(inbox.get());

  mesos::allocator::Options options;
  options.allocationInterval = interval.getOrElse(Hours(1));

  const process::PID<Inbox> pid = inbox->self();
  allocator->initialize(
      options,
      process::defer(pid, &Inbox::offered, lambda::_1, lambda::_2),
      [](const FrameworkID&,
         const hashmap<SlaveID, mesos::UnavailableResources>&) {});
  allocator->recover(0, {});
}


Master::~Master()
{
  process::terminate(inbox.get());
  process::wait(inbox.get());
}


bool Master::populate()
{
  addFrameworks();
  addAgents();
  return awaitAll();
}


void Master::addFrameworks()
{
  for (size_t i = 0; i < size.frameworks; ++i) {
    frameworkIds.push_back(frameworkIdOf(i));
    mesos::allocator::FrameworkOptions options;
    allocator->addFramework(
        frameworkIds.back(),
        frameworkInfo(i, size.roles),
        {},
        true,
        std::move(options));
  }
}


void Master::addAgents()
{
  const vector<SlaveInfo::Capability> capabilities = agentCapabilities();
  for (size_t i = 0; i < size.agents; ++i) {
    allocator->addSlave(
        agentIdOf(i), agentInfo(i), capabilities, None(), totalOf(), {});
  }
}


void Master::pause()
{
  allocator->pause();
}


void Master::resume()
{
  allocator->resume();
}


void Master::barrier()
{
  allocator->getInverseOfferStatuses().await(PATIENCE);
}


void Master::decline(const Option<mesos::Filters>& filters)
{
  const vector<Held> offers =
      process::dispatch(inbox.get(), &Inbox::take).get();

  for (const Held& offer : offers) {
    allocator->recoverResources(
        offer.frameworkId, offer.agentId, offer.resources, filters, false);
  }
}


bool Master::awaitAll()
{
  return process::dispatch(inbox.get(), &Inbox::wait, size.agents)
      .await(PATIENCE);
}


size_t Master::held()
{
  return process::dispatch(inbox.get(), &Inbox::count).get();
}


bool Master::offerAll()
{
  allocator->reviveOffers(frameworkIds.front(), {});
  return awaitAll();
}


bool Master::reoffer(const Option<mesos::Filters>& filters)
{
  decline(filters);
  return offerAll();
}


size_t Master::accept()
{
  used = process::dispatch(inbox.get(), &Inbox::take).get();

  for (const Held& offer : used) {
    allocator->pause();
    allocator->transitionOfferedToAllocated(offer.agentId, offer.resources);
    allocator->resume();
  }

  return used.size() * 3;
}


size_t Master::end()
{
  for (const Held& each : used) {
    allocator->recoverResources(
        each.frameworkId, each.agentId, each.resources, None(), true);
  }

  return used.size();
}


Spent Master::spent()
{
  Spent result;
  result.actor = process::dispatch(inbox.get(), &Inbox::priceOfOthers).get();
  result.caller = priceOfThread();
  result.othersNs = processNs() - result.actor.ns - result.caller.ns;
  return result;
}


Option<double> readMetric(const string& name)
{
  const Future<std::map<string, double>> metrics =
      process::metrics::snapshot(None());
  metrics.await(PATIENCE);

  if (!metrics.isReady()) {
    return None();
  }
  const auto metric = metrics->find(name);
  return metric == metrics->end() ? Option<double>::none() : metric->second;
}


bool waitForMetric(const string& name, double value)
{
  for (int i = 0; i < 6000; ++i) {
    if (readMetric(name) == value) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  return false;
}

} // namespace driver {
} // namespace allocator {
