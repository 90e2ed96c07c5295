#include "adapter/holdings.hpp"

#include "adapter_world.hpp"

namespace allocator {
namespace adapter {
namespace {

TEST(HoldingsTest, AmountsAreSortedAndAddedUp)
{
  KindTable kinds;
  const uint32_t mem = kinds.intern(*parse("mem:1").begin());
  const uint32_t cpus = kinds.intern(*parse("cpus:1").begin());

  const Amounts amounts = toAmounts(
      allocated("cpus:1", "a") + allocated("cpus:2;mem:3", "b"), &kinds);
  EXPECT_EQ((Amounts{{mem, 3000}, {cpus, 3000}}), amounts);
  EXPECT_TRUE(toAmounts(Resources(), &kinds).empty());
}


TEST(HoldingsTest, EachRoleHasItsOwn)
{
  const auto one = byRole(allocated("cpus:1;mem:2", "a"));
  ASSERT_EQ(1u, one.size());
  EXPECT_EQ(allocated("cpus:1;mem:2", "a"), one.at("a"));

  const auto two = byRole(
      allocated("cpus:1", "a") + allocated("cpus:2", "b") + parse("cpus:9"));
  ASSERT_EQ(2u, two.size());
  EXPECT_EQ(allocated("cpus:2", "b"), two.at("b"));
}


TEST(PendingTest, RowsOfOneKindShareAnEventAndTransitionsComeFirst)
{
  Pending pending;
  pending.release(1, 2, 3, {{0, 1000}, {1, 5000}}, -1, true);
  pending.release(1, 2, 4, {{0, 2000}, {1, 6000}}, 5000, false);
  pending.release(1, 2, 4, {{7, 1000}}, -1, false);
  pending.transition(9, 2, 5, {{0, 1}});
  EXPECT_EQ(4u, pending.size());

  const std::vector<wire::Event> events = pending.take();
  ASSERT_EQ(3u, events.size());
  EXPECT_EQ(9u, events[0].transition().framework(0));

  const wire::Release& release = events[1].release();
  EXPECT_EQ(2, release.released().agent_size());
  EXPECT_EQ(6000, release.released().amount(3));
  EXPECT_EQ(5000, release.refuse_ms(1));
  EXPECT_TRUE(release.allocated(0));
  EXPECT_FALSE(release.allocated(1));

  EXPECT_EQ(0u, pending.size());
  EXPECT_TRUE(pending.take().empty());
}


TEST(PendingTest, NoEventGrowsWithoutBound)
{
  Pending pending;
  for (int i = 0; i <= Pending::ROWS_MAX; ++i) {
    pending.release(1, 1, 1 + i, {{0, 1}}, -1, false);
  }

  const std::vector<wire::Event> events = pending.take();
  ASSERT_EQ(2u, events.size());
  EXPECT_EQ(1, events[1].release().released().agent_size());
}

// Rows of 500 kinds are few in an event, and rows of few kinds are not
// blown up by them.
TEST(PendingTest, NoEventIsADenseMonster)
{
  const size_t most = Pending::CELLS_MAX;
  Amounts wide;
  for (uint32_t kind = 0; kind < 500; ++kind) {
    wide.emplace_back(kind, 1);
  }

  Pending pending;
  for (int i = 1; i <= 1000; ++i) {
    pending.release(1, 1, i, i % 2 == 0 ? wide : Amounts{{7, 1}}, -1, false);
    pending.transition(1, 1, i, wide);
  }

  int rows = 0;
  size_t bytes = 0;
  for (const wire::Event& event : pending.take()) {
    const wire::Holdings& holdings =
        event.has_release() ? event.release().released() : event.transition();
    rows += holdings.framework_size();
    bytes += event.ByteSizeLong();
    EXPECT_LE(size_t(holdings.amount_size()), most);
    EXPECT_EQ(
        holdings.amount_size(),
        holdings.framework_size() * holdings.kind_size());
  }

  EXPECT_EQ(2000, rows);
  EXPECT_LT(bytes, 1000000u); // 1,500 rows of 500 small amounts.
}


TEST(PendingTest, WhatHasNoAmountIsNoRow)
{
  Pending pending;
  pending.release(1, 1, 1, {}, -1, false);
  pending.transition(1, 1, 1, {});
  EXPECT_EQ(0u, pending.size());
}


// 20,000 refusals of three sets of kinds are three tables.
TEST(FiltersWriterTest, RefusalsOfTheSameKindsShareATable)
{
  FiltersWriter writer;
  for (uint32_t i = 0; i < 20000; ++i) {
    const Amounts refused = i % 3 == 0 ? Amounts{{0, 1}}
        : i % 3 == 1                   ? Amounts{{0, 1}, {1, 2}}
                                       : Amounts{{1, 2}};
    writer.add(1, 2, i, refused, 1000 + i);
  }
  writer.add(1, 2, 3, {}, 1);

  ASSERT_EQ(3u, writer.groups().size());
  int rows = 0;
  for (const auto& group : writer.groups()) {
    const wire::OfferFilters& filters = group.second;
    const wire::Holdings& refused = filters.refused();
    rows += filters.expires_ms_size();
    EXPECT_EQ(filters.expires_ms_size(), refused.agent_size());
    EXPECT_EQ(
        refused.amount_size(), refused.agent_size() * refused.kind_size());
    for (int row = 0; row < refused.agent_size(); ++row) {
      EXPECT_EQ(1000 + refused.agent(row), filters.expires_ms(row));
    }
  }
  EXPECT_EQ(20000, rows);
}

} // namespace {
} // namespace adapter {
} // namespace allocator {
