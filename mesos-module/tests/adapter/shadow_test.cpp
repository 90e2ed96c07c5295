#include "adapter/allocator.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <process/metrics/metrics.hpp>

#include <stout/duration.hpp>

#include "session/clock.hpp"

#include "tests/adapter/world.hpp"
#include "tests/fake_sidecar.hpp"

// Mesos's own allocator decides, with the module in its shadow and a sidecar
// over a real stream.

namespace allocator {
namespace adapter {
namespace {

class ShadowTest : public ::testing::Test
{
protected:
  // Acts as a master with one agent. Adds a framework; if there is a sidecar,
  // once it is connected.
  void start(const std::string& target, bool connects)
  {
    session::Parameters parameters;
    parameters.shadow = true;
    parameters.transport.channel.target = target;

    const Try<mesos::allocator::Allocator*> deciding =
        mesos::allocator::Allocator::create("HierarchicalDRF", "drf", "drf");
    ASSERT_TRUE(deciding.isSome());
    allocator = makeAllocator(
        parameters,
        std::unique_ptr<mesos::allocator::Allocator>(deciding.get()));

    mesos::allocator::Options options;
    options.allocationInterval = Milliseconds(100);
    allocator->initialize(
        options,
        [this](const FrameworkID& id, const Offers& offers) {
          const std::lock_guard<std::mutex> lock(mutex);
          EXPECT_EQ(ONE, id);
          for (const auto& role : offers) {
            for (const auto& agent : role.second) {
              offered.push_back(agent.second);
            }
          }
        },
        [](const FrameworkID&,
           const hashmap<AgentID, mesos::UnavailableResources>&) {});

    std::vector<AgentInfo::Capability> capabilities(2);
    capabilities[0].set_type(AgentInfo::Capability::MULTI_ROLE);
    capabilities[1].set_type(AgentInfo::Capability::HIERARCHICAL_ROLE);
    AgentInfo agent;
    agent.set_hostname("host");
    *agent.mutable_id() = AGENT;
    allocator->recover(0, {});
    allocator->addSlave(
        AGENT, agent, capabilities, None(), parse("cpus:4;mem:400"), {});
    if (connects) {
      EXPECT_TRUE(reaches("allocator/sidecar/connected", 1));
    }

    FrameworkInfo info;
    *info.mutable_id() = ONE;
    info.set_user("user");
    info.set_name("name");
    info.add_roles("eng");
    info.add_capabilities()->set_type(FrameworkInfo::Capability::MULTI_ROLE);
    allocator->addFramework(ONE, info, {}, true, {});
  }

  // The offers so far, once there are `count`.
  std::vector<Resources> offers(size_t count)
  {
    for (int i = 0; i < 2000; ++i) {
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (offered.size() >= count) {
          return offered;
        }
      }
      std::this_thread::sleep_for(session::Duration(5));
    }
    ADD_FAILURE() << "fewer than " << count << " offers came";
    return std::vector<Resources>(count);
  }

  std::map<std::string, double> metrics()
  {
    const process::Future<std::map<std::string, double>> all =
        process::metrics::snapshot(None());
    all.await(Seconds(10));
    return all.isReady() ? all.get() : std::map<std::string, double>();
  }

  bool reaches(const std::string& name, double least, int tries = 2000)
  {
    for (int i = 0; i < tries && metrics()[name] < least; ++i) {
      std::this_thread::sleep_for(session::Duration(5));
    }
    return metrics()[name] >= least;
  }

  // Waits until this many cpus are held according to the metrics.
  void awaitHeld(double cpus)
  {
    const char* name = "allocator/mesos/resources/cpus/offered_or_allocated";
    for (int i = 0; i < 2000 && metrics()[name] != cpus; ++i) {
      std::this_thread::sleep_for(session::Duration(5));
    }
    EXPECT_EQ(cpus, metrics()[name]);
  }

  std::mutex mutex;
  std::vector<Resources> offered;
  std::unique_ptr<mesos::allocator::Allocator> allocator;
};


TEST_F(ShadowTest, TheSidecarIsComparedAndOffersNothing)
{
  session::FakeSidecar sidecar;
  start(sidecar.target(), true);

  // The fake sidecar always gives something of the first agent to the first
  // framework, which matches every run of the built-in allocator.
  EXPECT_EQ(allocated("cpus:4;mem:400", "eng"), offers(1)[0]);
  EXPECT_TRUE(reaches("allocator/sidecar/shadow/offers", 1));
  EXPECT_EQ(0, metrics()["allocator/sidecar/outcomes/offered"]);

  // On a busy machine an answer may come too late for its run; then try another
  // run.
  const std::string same = "allocator/sidecar/shadow/same";
  size_t runs = 1;
  while (!reaches(same, 2, 50) && runs < 100) {
    allocator->recoverResources(
        ONE, AGENT, allocated("cpus:4;mem:400", "eng"), None(), false);
    ++runs;
    EXPECT_EQ(allocated("cpus:4;mem:400", "eng"), offers(runs).back());
  }
  EXPECT_TRUE(reaches(same, 2));
  EXPECT_EQ(0, metrics()["allocator/sidecar/misfits"]);
}


// Without a sidecar, Mesos's own allocator offers and publishes as usual.
TEST_F(ShadowTest, WithoutASidecarNothingIsMissing)
{
  start("127.0.0.1:1", false);
  EXPECT_EQ(allocated("cpus:4;mem:400", "eng"), offers(1)[0]);
  awaitHeld(4);
  EXPECT_EQ(0, metrics()["allocator/sidecar/shadow/offers"]);
  EXPECT_EQ(0, metrics()["allocator/sidecar/fallback_cycles"]);

  // The metrics under Mesos's names belong to its own allocator, and stay until
  // it is destroyed.
  EXPECT_EQ(1u, metrics().count("allocator/mesos/allocation_runs"));
  allocator.reset();
  EXPECT_EQ(0u, metrics().count("allocator/mesos/allocation_runs"));
}


// The deciding allocator answers an operator's reservation, and the module's
// books follow.
TEST_F(ShadowTest, AnOperatorIsAnsweredByTheOneThatDecides)
{
  session::FakeSidecar sidecar;
  start(sidecar.target(), true);
  offers(1);

  Resource::ReservationInfo reservation;
  reservation.set_type(Resource::ReservationInfo::DYNAMIC);
  reservation.set_role("eng");
  mesos::Offer::Operation reserve;
  reserve.set_type(mesos::Offer::Operation::RESERVE);
  reserve.mutable_reserve()->mutable_resources()->CopyFrom(
      parse("cpus:1").pushReservation(reservation));

  // Everything is offered.
  process::Future<Nothing> refused =
      allocator->updateAvailable(AGENT, {reserve});
  refused.await(Seconds(10));
  EXPECT_TRUE(refused.isFailed());

  mesos::Filters filters;
  filters.set_refuse_seconds(0);
  allocator->pause();
  allocator->recoverResources(
      ONE, AGENT, allocated("cpus:4;mem:400", "eng"), filters, false);
  process::Future<Nothing> done = allocator->updateAvailable(AGENT, {reserve});
  done.await(Seconds(10));
  EXPECT_TRUE(done.isReady());
  allocator->resume();

  const Resources next = offers(2)[1];
  EXPECT_EQ(1, next.reserved("eng").cpus().get());
  EXPECT_EQ(4, next.cpus().get());
  allocator->recoverResources(ONE, AGENT, next, None(), false);
  offers(3);
  EXPECT_TRUE(reaches("allocator/sidecar/shadow/offers", 3));
  EXPECT_EQ(0, metrics()["allocator/sidecar/misfits"]);
}

} // namespace {
} // namespace adapter {
} // namespace allocator {
