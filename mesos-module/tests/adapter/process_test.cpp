#include "adapter/process.hpp"

#include <atomic>
#include <future>
#include <map>
#include <thread>

#include <process/clock.hpp>
#include <process/dispatch.hpp>
#include <process/metrics/metrics.hpp>
#include <process/process.hpp>

#include <stout/duration.hpp>

#include "tests/adapter/world.hpp"
#include "tests/fake_sidecar.hpp"

// The actor with its own sidecar over a real stream.

namespace allocator {
namespace adapter {
namespace {

class ProcessTest : public ::testing::Test
{
protected:
  // Starts the actor with one framework and one agent, and waits for a session.
  void start(const std::string& target)
  {
    parameters.transport.channel.target = target;
    parameters.fallback = false;
    parameters.badDecisionsMax = 1;
    actor.reset(new AllocatorProcess(parameters));
    process::spawn(actor.get());

    mesos::allocator::Options options;
    options.allocationInterval = Hours(1);

    call([=](AllocatorProcess* allocator) {
      allocator->initialize_(
          options,
          [this](
              const FrameworkID&,
              const hashmap<std::string, hashmap<AgentID, Resources>>&) {
            ++offers;
          },
          [this](
              const FrameworkID& framework,
              const hashmap<AgentID, mesos::UnavailableResources>& agents) {
            EXPECT_EQ(ONE, framework);
            EXPECT_TRUE(agents.contains(AGENT));
            ++inverseOffers;
          });

      FrameworkInfo info;
      info.set_user("user");
      info.set_name("name");
      info.add_roles("eng");
      info.add_capabilities()->set_type(FrameworkInfo::Capability::MULTI_ROLE);
      info.add_capabilities()->set_type(
          FrameworkInfo::Capability::SHARED_RESOURCES);
      allocator->addFramework(ONE, info, true, {});

      std::vector<AgentInfo::Capability> capabilities(2);
      capabilities[0].set_type(AgentInfo::Capability::MULTI_ROLE);
      capabilities[1].set_type(AgentInfo::Capability::HIERARCHICAL_ROLE);
      allocator->addSlave(AGENT, AgentInfo(), capabilities, None(), total, {});
      allocator->recover(0, {});
    });

    await("connected", 1);
  }

  void TearDown() override
  {
    if (actor != nullptr) {
      process::terminate(actor.get());
      process::wait(actor.get());
    }
  }

  void call(const std::function<void(AllocatorProcess*)>& function)
  {
    std::promise<void> done;
    AllocatorProcess* allocator = actor.get();
    process::dispatch(actor->self(), std::function<void()>([&]() {
                        function(allocator);
                        done.set_value();
                      }));
    done.get_future().get();
  }

  double metric(const std::string& name)
  {
    const process::Future<std::map<std::string, double>> all =
        process::metrics::snapshot(None());
    all.await(Seconds(10));
    const std::string key = "allocator/sidecar/" + name;
    return all.isReady() && all->count(key) > 0 ? all->at(key) : -1;
  }

  void await(const std::string& name, double value)
  {
    // Read the metric once per turn, because it may change between two reads.
    double seen = metric(name);
    for (int i = 0; i < 2000 && seen != value; ++i) {
      std::this_thread::sleep_for(session::Duration(5));
      seen = metric(name);
    }
    ASSERT_EQ(value, seen) << name;
  }

  session::Parameters parameters;
  Resources total = parse("cpus:4;mem:4");
  std::atomic<int> offers{0};
  std::atomic<int> inverseOffers{0};
  std::unique_ptr<AllocatorProcess> actor;
};


TEST_F(ProcessTest, ADecisionBecomesAnOffer)
{
  session::FakeSidecar sidecar;
  start(sidecar.target());
  call([](AllocatorProcess* allocator) { allocator->reviveOffers(ONE, {}); });
  await("outcomes/offered", 1);
  EXPECT_EQ(1, offers);
}


// An offer cannot contain two copies of a volume: the message that the master
// makes of it does not count copies.
TEST_F(ProcessTest, EachCopyOfASharedVolumeIsAnOfferOfItsOwn)
{
  Resource volume = *parse("disk(eng):100").begin();
  volume.mutable_disk()->mutable_persistence()->set_id("volume");
  volume.mutable_disk()->mutable_volume()->set_container_path("path");
  volume.mutable_disk()->mutable_volume()->set_mode(mesos::Volume::RW);
  volume.mutable_shared();
  total = volume;

  // Grants it twice in the first answer.
  std::atomic<bool> first{true};
  session::FakeSidecar sidecar;
  sidecar.spoil = [&](const wire::SessionRequest& request,
                      std::vector<wire::SessionResponse>* answers) {
    if (!request.events().cycle()) {
      return;
    }
    wire::DecisionBatch* decisions = answers->at(0).mutable_decisions();
    if (!first.exchange(false)) {
      decisions->clear_grants();
    }
    for (wire::Holdings& group : *decisions->mutable_grants()) {
      group.set_kind(0, 0);
      group.set_agent(0, 1);
      group.set_amount(0, 100 * 1000);
    }
  };

  start(sidecar.target());
  call([](AllocatorProcess* allocator) { allocator->reviveOffers(ONE, {}); });
  await("outcomes/offered", 2);
  EXPECT_EQ(2, offers);
}


// With distant maintenance, only frameworks named by the sidecar get inverse
// offers, once.
TEST_F(ProcessTest, WhomTheSidecarNamesIsAskedToLeave)
{
  std::atomic<bool> names{false};
  session::FakeSidecar sidecar;
  sidecar.spoil = [&](const wire::SessionRequest& request,
                      std::vector<wire::SessionResponse>* answers) {
    if (request.events().cycle() && names) {
      // Remove the grants: all resources are offered already, and one bad
      // decision would end the session and its cycles.
      wire::DecisionBatch* decisions = answers->back().mutable_decisions();
      decisions->clear_grants();
      decisions->mutable_reclaims()->add_framework(1);
      decisions->mutable_reclaims()->add_agent(1);
    }
  };

  parameters.inverseOffersWithin = session::Duration(3600 * 1000);
  start(sidecar.target());
  call([](AllocatorProcess* allocator) {
    mesos::Unavailability later;
    later.mutable_start()->set_nanoseconds(
        (process::Clock::now().duration() + Hours(1000)).ns());
    allocator->updateUnavailability(AGENT, later);
    allocator->reviveOffers(ONE, {});
  });
  await("outcomes/offered", 1);
  EXPECT_EQ(0, inverseOffers);

  names = true;
  const double before = metric("cycles");
  for (int i = 0; i < 2000 && metric("cycles") < before + 3; ++i) {
    call([](AllocatorProcess* allocator) {
      allocator->suppressOffers(ONE, {});
      allocator->reviveOffers(ONE, {});
    });
    await("unanswered", 0);
  }
  ASSERT_LE(before + 3, metric("cycles"));
  EXPECT_EQ(1, inverseOffers);
}


// Two parts of an answer arrive during a bracket. The first opens the circuit
// breaker, so the second is not judged.
TEST_F(ProcessTest, WhatWaitsOfAStoppedSessionIsNotOffered)
{
  std::promise<void> asked;
  std::promise<void> paused;
  std::shared_future<void> isPaused = paused.get_future().share();
  std::atomic<bool> first{true};

  session::FakeSidecar sidecar;
  sidecar.likeThis.partsPerCycle = 2;
  sidecar.spoil = [&](const wire::SessionRequest& request,
                      std::vector<wire::SessionResponse>* answers) {
    if (request.events().cycle() && first.exchange(false)) {
      asked.set_value();
      isPaused.wait();
      for (wire::Holdings& group :
           *answers->at(0).mutable_decisions()->mutable_grants()) {
        group.set_framework(0, 999);
      }
    }
  };

  start(sidecar.target());
  call([](AllocatorProcess* allocator) { allocator->reviveOffers(ONE, {}); });
  asked.get_future().get();
  call([](AllocatorProcess* allocator) { allocator->pause(); });
  paused.set_value();
  await("decisions", 4);

  call([](AllocatorProcess* allocator) { allocator->resume(); });
  EXPECT_EQ(1, metric("breaker_trips"));
  EXPECT_EQ(0, metric("connected"));
  EXPECT_EQ(0, offers);
}

} // namespace {
} // namespace adapter {
} // namespace allocator {
