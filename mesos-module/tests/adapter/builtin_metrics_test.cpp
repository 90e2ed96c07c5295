#include "adapter/builtin_metrics.hpp"

#include <future>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <vector>

#include <process/event.hpp>
#include <process/future.hpp>
#include <process/http.hpp>
#include <process/metrics/metrics.hpp>
#include <process/process.hpp>

#include <stout/json.hpp>

#include "adapter/gauges.hpp"
#include "adapter/process.hpp"

#include "tests/adapter/world.hpp"

// Metrics under the names of Mesos's own allocator.

namespace allocator {
namespace adapter {
namespace {

// The actor without a sidecar: the module decides alone.
class BuiltinMetricsTest : public ::testing::Test
{
protected:
  BuiltinMetricsTest() : actor(new AllocatorProcess(session::Parameters()))
  {
    process::spawn(actor.get());

    mesos::allocator::Options options;
    options.allocationInterval = Hours(1);
    options.maxCompletedFrameworks = 1;
    tell(
        &AllocatorProcess::initialize_,
        options,
        [](const FrameworkID&,
           const hashmap<std::string, hashmap<AgentID, Resources>>&) {},
        [](const FrameworkID&,
           const hashmap<AgentID, mesos::UnavailableResources>&) {});
  }

  ~BuiltinMetricsTest() override
  {
    process::terminate(actor.get());
    process::wait(actor.get());
  }

  template <typename... Parameters, typename... Arguments>
  void tell(
      void (AllocatorProcess::*method)(Parameters...),
      Arguments... arguments)
  {
    process::dispatch(actor->self(), std::function<void()>([=]() mutable {
                        (actor.get()->*method)(std::move(arguments)...);
                      }));
  }

  void addFramework(
      const std::set<std::string>& roles,
      const FrameworkID& id = ONE)
  {
    FrameworkInfo info;
    info.set_user("user");
    info.set_name("name");
    info.add_capabilities()->set_type(FrameworkInfo::Capability::MULTI_ROLE);
    for (const std::string& role : roles) {
      info.add_roles(role);
    }

    process::dispatch(actor->self(), std::function<void()>([=]() {
                        actor->addFramework(id, info, true, {});
                      }));
  }

  void addAgent(
      const std::string& total,
      const std::string& used = "",
      const std::string& role = "eng")
  {
    hashmap<FrameworkID, Resources> uses;
    if (!used.empty()) {
      uses[ONE] = allocated(used, role);
    }

    std::vector<AgentInfo::Capability> capabilities(2);
    capabilities[0].set_type(AgentInfo::Capability::MULTI_ROLE);
    capabilities[1].set_type(AgentInfo::Capability::HIERARCHICAL_ROLE);
    tell(
        &AllocatorProcess::addSlave,
        AGENT,
        AgentInfo(),
        capabilities,
        Option<Unavailability>::none(),
        parse(total),
        uses);
  }

  // Lets the actor finish its queue, including its own dispatches; otherwise
  // the metrics may be incomplete.
  void settle()
  {
    for (int i = 0; i < 3; ++i) {
      std::promise<void> done;
      process::dispatch(actor->self(), std::function<void()>([&done]() {
                          done.set_value();
                        }));
      done.get_future().get();
    }
  }

  std::map<std::string, double> snapshot()
  {
    settle();
    const process::Future<std::map<std::string, double>> all =
        process::metrics::snapshot(None());
    all.await(Seconds(30));
    return all.isReady() ? all.get() : std::map<std::string, double>();
  }

  static double of(
      const std::map<std::string, double>& all,
      const std::string& name)
  {
    auto found = all.find("allocator/mesos/" + name);
    return found == all.end() ? -1 : found->second;
  }

  std::unique_ptr<AllocatorProcess> actor;
};


TEST_F(BuiltinMetricsTest, ResourcesAreThereFromTheBeginning)
{
  auto all = snapshot();
  EXPECT_EQ(1u, all.count("allocator/event_queue_dispatches"));
  EXPECT_LE(0, of(all, "event_queue_dispatches"));
  EXPECT_EQ(0, of(all, "allocation_runs"));
  for (const std::string name : {"cpus", "mem", "disk"}) {
    EXPECT_EQ(0, of(all, "resources/" + name + "/total")) << name;
    EXPECT_EQ(0, of(all, "resources/" + name + "/offered_or_allocated"))
        << name;
  }

  // The fallback offers the whole agent.
  addFramework({"eng"});
  addAgent("cpus:2.5;mem:1024;disk(eng):8;ports:[1-9]");
  all = snapshot();
  EXPECT_DOUBLE_EQ(2.5, of(all, "resources/cpus/total"));
  EXPECT_DOUBLE_EQ(1024, of(all, "resources/mem/total"));
  EXPECT_DOUBLE_EQ(8, of(all, "resources/disk/total"));
  EXPECT_DOUBLE_EQ(2.5, of(all, "resources/cpus/offered_or_allocated"));
  EXPECT_DOUBLE_EQ(8, of(all, "resources/disk/offered_or_allocated"));

  tell(&AllocatorProcess::removeSlave, AGENT);
  all = snapshot();
  EXPECT_EQ(0, of(all, "resources/cpus/total"));
  EXPECT_EQ(0, of(all, "resources/cpus/offered_or_allocated"));
}


TEST_F(BuiltinMetricsTest, RunsAreCountedAndTimed)
{
  EXPECT_EQ(-1, of(snapshot(), "allocation_run_ms"));

  addFramework({"eng"});
  addAgent("cpus:1;mem:1");

  // Requests made at the same time may run as one, and percentiles need at
  // least two values.
  settle();
  tell(&AllocatorProcess::reviveOffers, ONE, std::set<std::string>());
  const std::map<std::string, double> all = snapshot();
  const double runs = of(all, "allocation_runs");

  EXPECT_LE(2, runs);
  EXPECT_LE(0, of(all, "allocation_run_ms"));
  EXPECT_LE(0, of(all, "allocation_run_latency_ms"));
  EXPECT_LE(2, of(all, "allocation_run_ms/count"));
  EXPECT_LE(2, of(all, "allocation_run_latency_ms/count"));
}


// An actor whose calls wait in its queue while gauges are requested.
class Reader : public process::Process<Reader>
{
public:
  double dispatches() { return eventCount<process::DispatchEvent>(); }
};


TEST(GaugesTest, AScrapeIsOneDispatch)
{
  Reader reader;
  process::spawn(reader);
  Gauges gauges(reader.self());
  std::vector<process::metrics::PullGauge> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(
        gauges.make("gauges_test/" + std::to_string(i), [&reader, i]() {
          if (i == 50) {
            throw std::bad_alloc();
          }
          return i == 0 ? reader.dispatches() : i;
        }));
  }

  for (int scrape = 0; scrape < 2; ++scrape) {
    std::promise<void> asked;
    std::shared_future<void> areAsked = asked.get_future().share();
    process::dispatch(
        reader.self(), std::function<void()>([=]() { areAsked.wait(); }));

    std::vector<process::Future<double>> values;
    for (const process::metrics::PullGauge& gauge : all) {
      values.push_back(gauge.value());
    }
    asked.set_value();

    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(values[i].await(Seconds(30))) << i;
      EXPECT_EQ(i == 50, values[i].isFailed()) << i;
      if (i != 50) {
        EXPECT_EQ(i, values[i].get());
      }
    }
  }

  for (const process::metrics::PullGauge& gauge : all) {
    process::metrics::remove(gauge);
  }
  process::terminate(reader);
  process::wait(reader);
}


TEST_F(BuiltinMetricsTest, ARoleIsShownWhileSomebodySubscribes)
{
  const std::string share = "roles/eng/shares/dominant";
  const std::string filters = "offer_filters/roles/eng/active";
  EXPECT_EQ(-1, of(snapshot(), share));

  addFramework({"eng", "ops"});
  tell(
      &AllocatorProcess::suppressOffers,
      ONE,
      std::set<std::string>({"eng", "ops"}));
  addAgent("cpus:4;mem:100", "cpus:1;mem:50");
  auto all = snapshot();
  EXPECT_DOUBLE_EQ(0.5, of(all, share));
  EXPECT_EQ(0, of(all, "roles/ops/shares/dominant"));
  EXPECT_EQ(0, of(all, filters));

  // A weight divides the share.
  mesos::WeightInfo weight;
  weight.set_role("eng");
  weight.set_weight(2);
  tell(
      &AllocatorProcess::updateWeights,
      std::vector<mesos::WeightInfo>({weight}));
  EXPECT_DOUBLE_EQ(0.25, of(snapshot(), share));

  // A filter counts while it is in force.
  mesos::Filters filter;
  filter.set_refuse_seconds(3600);
  tell(
      &AllocatorProcess::recoverResources,
      ONE,
      AGENT,
      allocated("cpus:1;mem:50", "eng"),
      Option<mesos::Filters>(filter),
      true);
  all = snapshot();
  EXPECT_EQ(1, of(all, filters));
  EXPECT_EQ(0, of(all, "offer_filters/roles/ops/active"));
  EXPECT_EQ(0, of(all, share));

  tell(&AllocatorProcess::removeFramework, ONE);
  all = snapshot();
  EXPECT_EQ(-1, of(all, share));
  EXPECT_EQ(0, of(all, filters)); // The role has a weight.
}


TEST_F(BuiltinMetricsTest, TheBooksCanBeReadAPageAtATime)
{
  addFramework({"eng"});
  addAgent("cpus:4;mem:100", "cpus:1");
  settle();

  const auto get = [&](const std::string& query) {
    process::Future<process::http::Response> response =
        process::http::get(actor->self(), "books", query);
    response.await(Seconds(30));
    return response.isReady() ? response.get() : process::http::Response();
  };

  const Try<JSON::Object> books = JSON::parse<JSON::Object>(get("").body);
  ASSERT_TRUE(books.isSome()) << books.error();
  EXPECT_EQ("agent", books->find<JSON::String>("agents[0].id").get().value);
  EXPECT_EQ(
      "one",
      books->find<JSON::String>("agents[0].held[0].framework").get().value);
  EXPECT_EQ(0, books->find<JSON::Number>("next").get().as<int>());

  const Try<JSON::Object> page =
      JSON::parse<JSON::Object>(get("first=0&count=1").body);
  ASSERT_TRUE(page.isSome()) << page.error();
  EXPECT_EQ(1, page->find<JSON::Number>("next").get().as<int>());

  EXPECT_EQ(process::http::Status::BAD_REQUEST, get("count=1001").code);
  EXPECT_EQ(process::http::Status::BAD_REQUEST, get("first=x").code);
}


TEST_F(BuiltinMetricsTest, WhetherAFrameworkWantsOffersIsShownByRole)
{
  const std::string eng = "master/frameworks/name/one/roles/eng/suppressed";
  const std::string ops = "master/frameworks/name/one/roles/ops/suppressed";

  addFramework({"eng", "ops"});
  auto all = snapshot();
  EXPECT_EQ(1u, all.count(eng));
  EXPECT_EQ(0, all[eng]);
  EXPECT_EQ(0, all[ops]);

  tell(&AllocatorProcess::suppressOffers, ONE, std::set<std::string>({"eng"}));
  all = snapshot();
  EXPECT_EQ(1, all[eng]);
  EXPECT_EQ(0, all[ops]);

  tell(&AllocatorProcess::suppressOffers, ONE, std::set<std::string>());
  EXPECT_EQ(1, snapshot()[ops]);

  tell(&AllocatorProcess::reviveOffers, ONE, std::set<std::string>({"eng"}));
  all = snapshot();
  EXPECT_EQ(0, all[eng]);
  EXPECT_EQ(1, all[ops]);

  // The metrics of removed frameworks remain unchanged, for as many frameworks
  // as the master keeps.
  tell(&AllocatorProcess::removeFramework, ONE);
  all = snapshot();
  EXPECT_EQ(1u, all.count(eng));
  EXPECT_EQ(1, all[ops]);

  addFramework({"eng"}, TWO);
  tell(&AllocatorProcess::removeFramework, TWO);
  all = snapshot();
  EXPECT_EQ(0u, all.count(eng));
  EXPECT_EQ(0u, all.count(ops));
  EXPECT_EQ(1u, all.count("master/frameworks/name/two/roles/eng/suppressed"));
}


TEST_F(BuiltinMetricsTest, WhatARoleConsumesIsShownWithoutAQuota)
{
  const auto consumed = [&](const std::string& role, const std::string& name) {
    return of(
        snapshot(), "quota/roles/" + role + "/resources/" + name + "/consumed");
  };
  const auto use = [&](const std::string& resources) {
    tell(
        &AllocatorProcess::transitionOfferedToAllocated,
        AGENT,
        allocated(resources, "eng/ads"));
  };
  const auto end = [&](const std::string& resources, bool isAllocated) {
    tell(
        &AllocatorProcess::recoverResources,
        ONE,
        AGENT,
        allocated(resources, "eng/ads"),
        Option<mesos::Filters>::none(),
        isAllocated);
  };

  // Reserved resources are consumed, and so is the cpu that a task uses. The
  // rest is only offered.
  addFramework({"eng/ads"});
  addAgent("cpus:4;mem:100;disk(ops):8;ports:[1-9]", "cpus:1", "eng/ads");
  EXPECT_EQ(1, consumed("eng/ads", "cpus"));
  EXPECT_EQ(1, consumed("eng", "cpus"));
  EXPECT_EQ(-1, consumed("eng", "mem"));
  EXPECT_EQ(8, consumed("ops", "disk"));
  EXPECT_EQ(1, consumed("", "cpus")); // The root.

  use("cpus:2;mem:30;ports:[1-2]");
  EXPECT_EQ(3, consumed("eng/ads", "cpus"));
  EXPECT_EQ(30, consumed("eng", "mem"));

  end("mem:30", true);
  end("cpus:1", false);
  EXPECT_EQ(3, consumed("eng", "cpus"));
  EXPECT_EQ(-1, consumed("eng", "mem"));

  // The reservation changes; then the agent is removed.
  tell(
      &AllocatorProcess::updateSlave,
      AGENT,
      AgentInfo(),
      Option<Resources>(parse("cpus:4;disk(ops/dev):6")),
      Option<std::vector<AgentInfo::Capability>>::none());
  EXPECT_EQ(6, consumed("ops", "disk"));
  EXPECT_EQ(6, consumed("ops/dev", "disk"));

  tell(&AllocatorProcess::removeSlave, AGENT);
  end("cpus:3", true);
  for (const auto& each : snapshot()) {
    EXPECT_EQ(std::string::npos, each.first.find("/consumed")) << each.first;
  }
}


TEST_F(BuiltinMetricsTest, FiltersOfARoleAreShownForEachReasonToKnowIt)
{
  const auto isShown = [&](const std::string& role) {
    return of(snapshot(), "offer_filters/roles/" + role + "/active") >= 0;
  };

  addFramework({"eng/ads"});
  EXPECT_TRUE(isShown("eng"));
  EXPECT_TRUE(isShown("eng/ads"));
  tell(&AllocatorProcess::removeFramework, ONE);
  EXPECT_FALSE(isShown("eng"));

  mesos::Quota quota;
  quota.guarantees = quantities("cpus:2");
  tell(&AllocatorProcess::updateQuota, std::string("ops"), quota);
  tell(&AllocatorProcess::updateQuota, std::string("ops"), quota);
  EXPECT_TRUE(isShown("ops"));
  tell(&AllocatorProcess::updateQuota, std::string("ops"), mesos::Quota());
  EXPECT_FALSE(isShown("ops"));

  mesos::WeightInfo weight;
  weight.set_role("dev");
  for (const double value : {2.0, 3.0, 1.0}) {
    weight.set_weight(value);
    tell(
        &AllocatorProcess::updateWeights,
        std::vector<mesos::WeightInfo>({weight}));
    EXPECT_EQ(value != 1, isShown("dev"));
  }

  addAgent("disk(a/b):8");
  EXPECT_TRUE(isShown("a"));
  tell(&AllocatorProcess::removeSlave, AGENT);
  EXPECT_FALSE(isShown("a"));
}


TEST_F(BuiltinMetricsTest, AQuotaIsShownWithWhatIsUsedOfIt)
{
  mesos::Quota quota;
  quota.guarantees = quantities("cpus:2;mem:64");
  quota.limits = mesos::ResourceLimits::fromString("cpus:3;mem:128").get();

  addFramework({"eng"});
  tell(&AllocatorProcess::suppressOffers, ONE, std::set<std::string>({"eng"}));
  addAgent("cpus:4;mem:100;disk(eng):8", "cpus:1;mem:50");
  tell(&AllocatorProcess::updateQuota, std::string("eng"), quota);

  const std::string prefix = "quota/roles/eng/resources/";
  auto all = snapshot();
  EXPECT_EQ(2, of(all, prefix + "cpus/guarantee"));
  EXPECT_EQ(3, of(all, prefix + "cpus/limit"));
  EXPECT_EQ(64, of(all, prefix + "mem/guarantee"));
  EXPECT_EQ(1, of(all, prefix + "cpus/offered_or_allocated"));
  EXPECT_EQ(50, of(all, prefix + "mem/offered_or_allocated"));
  EXPECT_EQ(50, of(all, prefix + "mem/consumed"));
  EXPECT_EQ(-1, of(all, prefix + "disk/limit"));

  quota.limits = mesos::ResourceLimits::fromString("cpus:8").get();
  tell(&AllocatorProcess::updateQuota, std::string("eng"), quota);
  all = snapshot();
  EXPECT_EQ(8, of(all, prefix + "cpus/limit"));
  EXPECT_EQ(-1, of(all, prefix + "mem/limit"));
  EXPECT_EQ(64, of(all, prefix + "mem/guarantee"));

  tell(&AllocatorProcess::updateQuota, std::string("eng"), mesos::Quota());
  all = snapshot();
  EXPECT_EQ(-1, of(all, prefix + "cpus/limit"));
  EXPECT_EQ(-1, of(all, prefix + "cpus/offered_or_allocated"));
}

} // namespace {
} // namespace adapter {
} // namespace allocator {
