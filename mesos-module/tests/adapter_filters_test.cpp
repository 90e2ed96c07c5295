#include "adapter/filters.hpp"

#include <cmath>

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
