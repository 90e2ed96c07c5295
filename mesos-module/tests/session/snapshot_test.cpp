#include "session/snapshot.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace allocator {
namespace session {
namespace {

// An amount of the longest encoding, eight bytes.
constexpr int64_t AMOUNT = (int64_t(1) << 53) - 1;


wire::Agent agentOf(uint32_t handle, size_t idBytes = 20)
{
  wire::Agent agent;
  agent.set_agent(handle);
  agent.set_agent_id(std::string(idBytes, 'a'));
  return agent;
}


wire::Holdings holdingsOf(int rows, int kinds, int64_t amount = AMOUNT)
{
  wire::Holdings holdings;

  for (int kind = 0; kind < kinds; ++kind) {
    holdings.add_kind(kind);
  }

  for (int row = 0; row < rows; ++row) {
    holdings.add_framework(row + 1);
    holdings.add_role(UINT32_MAX);
    holdings.add_agent(row + 2);

    for (int kind = 0; kind < kinds; ++kind) {
      holdings.add_amount(amount - row);
    }
  }

  return holdings;
}


Place placeOf(const wire::Holdings& holdings, int row)
{
  return Place{
      holdings.framework(row), holdings.role(row), holdings.agent(row)};
}


Amounts amountsOf(const wire::Holdings& holdings, int row)
{
  Amounts amounts;
  for (int kind = 0; kind < holdings.kind_size(); ++kind) {
    amounts.emplace_back(
        holdings.kind(kind),
        holdings.amount(row * holdings.kind_size() + kind));
  }
  return amounts;
}


void add(const wire::Agent& agent, SnapshotWriter* writer)
{
  *writer->nouns()->add_agents() = agent;
}


void add(const wire::Holdings& holdings, SnapshotWriter* writer)
{
  for (int row = 0; row < holdings.framework_size(); ++row) {
    writer->addHolding(placeOf(holdings, row), amountsOf(holdings, row));
  }
}


void add(const wire::OfferFilters& filters, SnapshotWriter* writer)
{
  for (int row = 0; row < filters.expires_ms_size(); ++row) {
    writer->addFilter(
        placeOf(filters.refused(), row),
        amountsOf(filters.refused(), row),
        filters.expires_ms(row));
  }
}


// Merges chunks as the sidecar does.
wire::SnapshotChunk merged(const std::vector<wire::SnapshotChunk>& chunks)
{
  wire::SnapshotChunk whole;

  for (wire::SnapshotChunk chunk : chunks) {
    // Do not repeat the kinds, which are those of the chunk before.
    if (whole.has_holdings()) {
      chunk.mutable_holdings()->clear_kind();
    }

    if (whole.has_filters()) {
      chunk.mutable_filters()->mutable_refused()->clear_kind();
    }

    whole.MergeFrom(chunk);
  }

  return whole;
}


TEST(SnapshotTest, AnEmptyStateIsOneChunk)
{
  SnapshotWriter writer;
  writer.nouns()->set_paused(true);
  const auto chunks = writer.take(true);

  ASSERT_EQ(1u, chunks.size());
  EXPECT_TRUE(chunks[0].last());
  EXPECT_TRUE(chunks[0].paused());
  EXPECT_TRUE(SnapshotWriter().take(false).empty());
}


// Within and across chunks, definitions precede uses.
TEST(SnapshotTest, WhateverTheOrderNounsComeFirst)
{
  SnapshotWriter writer;
  writer.nouns()->mutable_whitelist()->add_hostnames("host");
  add(holdingsOf(2, 2), &writer);
  writer.addHolding(Place{1, 1, 1}, {}); // Ignored.
  writer.addExclusion(Place{1, 1, 1});
  add(agentOf(1), &writer);
  writer.nouns()->add_frameworks();
  writer.nouns()->add_quotas();
  writer.nouns()->add_weights();
  writer.nouns()->add_roles();
  writer.nouns()->add_kinds();
  const auto chunks = writer.take(true);

  ASSERT_EQ(1u, chunks.size());
  EXPECT_EQ(1, chunks[0].agents_size());
  EXPECT_EQ(1, chunks[0].roles_size());
  EXPECT_EQ(2, chunks[0].holdings().framework_size());
  EXPECT_EQ(1, chunks[0].exclusions().framework_size());
  EXPECT_EQ(1, chunks[0].whitelist().hostnames_size());
}


TEST(SnapshotTest, RowsOfOtherKindsBeginAChunk)
{
  SnapshotWriter writer;
  add(agentOf(1), &writer);
  add(holdingsOf(1, 1), &writer);
  add(holdingsOf(1, 2), &writer);
  const auto chunks = writer.take(true);

  ASSERT_EQ(2u, chunks.size());
  EXPECT_EQ(1, chunks[0].agents_size());
  EXPECT_EQ(1, chunks[0].holdings().kind_size());
  EXPECT_EQ(2, chunks[1].holdings().kind_size());
  EXPECT_FALSE(chunks[0].last());
  EXPECT_TRUE(chunks[1].last());
}


// For any items in any order, chunks stay within the bound (except a single
// item), and nothing is lost, changed or reordered.
TEST(SnapshotTest, ChunksAreBoundedAndAddUp)
{
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    const size_t bound = 300 + random() % 2000;
    const int agents = random() % 200;
    const int kinds = 1 + random() % 4;
    const wire::Holdings holdings = holdingsOf(random() % 300, kinds);

    wire::OfferFilters filters;
    *filters.mutable_refused() = holdingsOf(random() % 100, kinds);

    for (int i = 0; i < filters.refused().framework_size(); ++i) {
      filters.add_expires_ms(int64_t(1) << (random() % 53));
    }

    SnapshotWriter writer(bound);

    for (int i = 1; i <= agents; ++i) {
      add(agentOf(i, random() % 200), &writer);
    }

    add(holdings, &writer);
    add(filters, &writer);
    const auto chunks = writer.take(true);

    for (const wire::SnapshotChunk& chunk : chunks) {
      ASSERT_LE(chunk.ByteSizeLong(), bound + 24) << "seed " << seed;
    }

    const wire::SnapshotChunk whole = merged(chunks);
    ASSERT_EQ(agents, whole.agents_size());

    for (int i = 0; i < agents; ++i) {
      ASSERT_EQ(uint32_t(i + 1), whole.agents(i).agent()) << "seed " << seed;
    }

    if (holdings.framework_size() > 0) {
      ASSERT_EQ(
          holdings.SerializeAsString(), whole.holdings().SerializeAsString());
    }

    if (filters.expires_ms_size() > 0) {
      ASSERT_EQ(
          filters.SerializeAsString(), whole.filters().SerializeAsString());
    }
  }
}


// A million filters added one by one need as few chunks as a single table:
// 1,000,000 rows of some 40 bytes.
TEST(SnapshotTest, RowsOfTheSameKindsShareAChunkHoweverTheyCome)
{
  wire::OfferFilters one;
  *one.mutable_refused() = holdingsOf(1, 2, 8192000);
  one.add_expires_ms(int64_t(1) << 40);

  SnapshotWriter writer;

  for (int i = 0; i < 1000000; ++i) {
    add(one, &writer);
  }

  const auto chunks = writer.take(true);
  int64_t rows = 0;

  for (const wire::SnapshotChunk& chunk : chunks) {
    const wire::OfferFilters& filters = chunk.filters();
    rows += filters.expires_ms_size();
    ASSERT_EQ(2, filters.refused().kind_size());
    ASSERT_EQ(2 * filters.expires_ms_size(), filters.refused().amount_size());
    ASSERT_LE(chunk.ByteSizeLong(), CHUNK_BYTES_MAX + 24);
  }

  EXPECT_EQ(1000000, rows);
  EXPECT_LE(chunks.size(), 64u);
}


TEST(SnapshotTest, ExclusionsAreCut)
{
  wire::Exclusions exclusions;
  SnapshotWriter writer(1024);

  for (uint32_t row = 1; row <= 1000; ++row) {
    exclusions.add_framework(row);
    exclusions.add_role(1);
    exclusions.add_agent(row % 7 + 1);
    exclusions.add_excluded(true);
    writer.addExclusion(Place{row, 1, row % 7 + 1});
  }

  const auto chunks = writer.take(true);

  // 1,000 rows of 4 or 5 bytes.
  EXPECT_LE(chunks.size(), 25u);
  for (const wire::SnapshotChunk& chunk : chunks) {
    EXPECT_LE(chunk.ByteSizeLong(), 1024u + 24);
  }
  EXPECT_EQ(
      exclusions.SerializeAsString(),
      merged(chunks).exclusions().SerializeAsString());
}


TEST(SnapshotTest, ANounLargerThanTheBoundGoesAlone)
{
  SnapshotWriter writer(100);
  add(agentOf(1), &writer);
  add(agentOf(2, 500), &writer);
  add(agentOf(3), &writer);
  const auto chunks = writer.take(true);

  ASSERT_EQ(3u, chunks.size());
  EXPECT_EQ(2u, chunks[1].agents(0).agent());
}


// 50,000 agents need a few chunks of a megabyte.
TEST(SnapshotTest, FiftyThousandAgents)
{
  SnapshotWriter writer;

  for (uint32_t i = 1; i <= 50000; ++i) {
    add(agentOf(i, 40), &writer);
  }

  add(holdingsOf(50000, 3), &writer);
  const auto chunks = writer.take(true);

  EXPECT_GE(chunks.size(), 3u);
  EXPECT_LE(chunks.size(), 12u);
  EXPECT_EQ(50000, merged(chunks).agents_size());
  EXPECT_EQ(50000, merged(chunks).holdings().agent_size());
}

} // namespace {
} // namespace session {
} // namespace allocator {
