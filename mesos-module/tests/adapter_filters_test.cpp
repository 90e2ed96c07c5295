#include "adapter/filters.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "adapter_world.hpp"

namespace allocator {
namespace adapter {
namespace {

const FrameworkID ONE = frameworkId("one");
const AgentID AGENT = agentId("agent");


TEST(FiltersTest, ARefusalCoversTheSameAndLess)
{
  Filters filters(1000);
  filters.add(ONE, "a", AGENT, parse("cpus:2;mem:100"), 5000, 0);

  EXPECT_TRUE(filters.covers(ONE, "a", AGENT, parse("cpus:2;mem:100"), 0));
  EXPECT_TRUE(filters.covers(ONE, "a", AGENT, parse("cpus:1"), 4999));
  EXPECT_FALSE(filters.covers(ONE, "a", AGENT, parse("cpus:3"), 0));
  EXPECT_FALSE(filters.covers(ONE, "b", AGENT, parse("cpus:1"), 0));
  EXPECT_FALSE(filters.covers(ONE, "a", agentId("x"), parse("cpus:1"), 0));
  EXPECT_FALSE(filters.covers(ONE, "a", AGENT, parse("cpus:1"), 5000));
}


TEST(FiltersTest, ARefusalOutlivesTheNextBatch)
{
  Filters filters(1000);
  filters.add(ONE, "a", AGENT, parse("cpus:2"), 1, 0);
  EXPECT_TRUE(filters.covers(ONE, "a", AGENT, parse("cpus:2"), 1000));
  EXPECT_FALSE(filters.covers(ONE, "a", AGENT, parse("cpus:2"), 1001));
}


TEST(FiltersTest, RefusingTheSameForEverDoesNotGrow)
{
  Filters filters(1000);
  for (int64_t now = 0; now < 1000; ++now) {
    filters.add(ONE, "a", AGENT, parse("cpus:2"), 60000, now);
  }
  EXPECT_EQ(1u, filters.size());

  filters.expire(100000);
  EXPECT_EQ(0u, filters.size());
}


TEST(FiltersTest, WhoseRoleIsRevivedIsNotFiltered)
{
  Filters filters(1000);
  filters.add(ONE, "a", AGENT, parse("cpus:2"), 5000, 0);
  filters.add(ONE, "b", AGENT, parse("cpus:2"), 5000, 0);
  filters.dropRole(ONE, "a");
  EXPECT_FALSE(filters.covers(ONE, "a", AGENT, parse("cpus:2"), 0));
  EXPECT_TRUE(filters.covers(ONE, "b", AGENT, parse("cpus:2"), 0));

  filters.dropAgent(AGENT);
  EXPECT_FALSE(filters.covers(ONE, "b", AGENT, parse("cpus:2"), 0));
}


// Counts and expiries are kept beside the lists; against counting anew.
TEST(FiltersTest, TheCountIsThatOfTheLists)
{
  std::mt19937 random(3);
  Filters filters(1000);
  int64_t now = 0;
  size_t most = 0;

  for (int step = 0; step < 20000; ++step) {
    const FrameworkID framework = frameworkId(std::to_string(random() % 4));
    const AgentID agent = agentId(std::to_string(random() % 30));
    const std::string role = random() % 2 == 0 ? "a" : "b";

    switch (random() % 40) {
      case 0: filters.dropFramework(framework); break;
      case 1: filters.dropRole(framework, role); break;
      case 2: filters.dropAgent(agent); break;
      case 3: filters.expire(now += random() % 500); break;
      default:
        filters.add(
            framework,
            role,
            agent,
            parse("cpus:" + std::to_string(random() % 9 + 1)),
            random() % 5000,
            now);
    }

    if (step % 100 == 0) {
      filters.expire(now);
      size_t count = 0;
      filters.each([&](const FrameworkID&,
                       const std::string&,
                       const AgentID&,
                       const Filters::Refusal& refusal) {
        ++count;
        ASSERT_GE(refusal.expiresMs, now); // Those that expired are gone.
      });
      ASSERT_EQ(count, filters.size());
      most = std::max(most, count);
    }
  }

  EXPECT_GT(most, 100u);
  filters.expire(now + 100000);
  EXPECT_EQ(0u, filters.size());
}


TEST(RefusalTest, TimesFollowMesos)
{
  mesos::Filters filters;
  EXPECT_EQ(5000, refusalMs(filters));

  filters.set_refuse_seconds(0);
  EXPECT_EQ(0, refusalMs(filters));
  filters.set_refuse_seconds(0.0001);
  EXPECT_EQ(1, refusalMs(filters));
  filters.set_refuse_seconds(-3);
  EXPECT_EQ(5000, refusalMs(filters));
  filters.set_refuse_seconds(std::nan(""));
  EXPECT_EQ(5000, refusalMs(filters));
  filters.set_refuse_seconds(1e300);
  EXPECT_EQ(int64_t(365) * 24 * 3600 * 1000, refusalMs(filters));
}

} // namespace {
} // namespace adapter {
} // namespace allocator {
