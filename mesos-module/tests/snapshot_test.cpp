#include "session/snapshot.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace allocator {
namespace session {
namespace {

// Takes the eight bytes that an amount may take.
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


// Puts chunks together again, as the sidecar does.
wire::SnapshotChunk merged(const std::vector<wire::SnapshotChunk>& chunks)
{
  wire::SnapshotChunk whole;

  for (wire::SnapshotChunk chunk : chunks) {
    // The kinds are those of the piece before; do not list them again.
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
  writer.setPaused(true);
  const auto chunks = writer.finish(17, 4000);

  ASSERT_EQ(1u, chunks.size());
  EXPECT_TRUE(chunks[0].last());
  EXPECT_TRUE(chunks[0].paused());
  EXPECT_EQ(17u, chunks[0].sequence());
  EXPECT_EQ(4000, chunks[0].clock_ms());
}


TEST(SnapshotTest, FieldsInOrderShareAChunk)
{
  SnapshotWriter writer;
  writer.add(wire::Kind());
  writer.add(wire::Role());
  writer.add(wire::Weight());
  writer.add(wire::Quota());
  writer.add(wire::Framework());
  writer.add(agentOf(1));
  writer.add(holdingsOf(2, 2));
  writer.add(wire::Whitelist());

  EXPECT_EQ(1u, writer.finish(0, 0).size());
}


// Within a chunk the fields apply in the order of their numbers, so a
// role that comes after an agent needs a chunk of its own; so do holdings
// of other kinds.
TEST(SnapshotTest, WhatComesOutOfOrderBeginsAChunk)
{
  SnapshotWriter writer;
  writer.add(agentOf(1));
  writer.add(wire::Role());
  writer.add(agentOf(2));
  writer.add(holdingsOf(1, 1));
  writer.add(holdingsOf(1, 2));
  const auto chunks = writer.finish(0, 0);

  ASSERT_EQ(3u, chunks.size());
  EXPECT_EQ(1, chunks[0].agents_size());
  EXPECT_EQ(1, chunks[1].roles_size());
  EXPECT_EQ(2u, chunks[1].agents(0).agent());
  EXPECT_EQ(1, chunks[1].holdings().framework_size());
  EXPECT_EQ(1, chunks[2].holdings().framework_size());
  EXPECT_FALSE(chunks[0].last());
  EXPECT_TRUE(chunks[2].last());
}


// Whatever is added in whatever order: no chunk is larger than the bound
// (a single noun apart), and nothing is lost, changed or reordered.
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
      writer.add(agentOf(i, random() % 200));
    }

    writer.add(holdings);
    writer.add(filters);
    const auto chunks = writer.finish(9, 1);

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


// A million refusals that come one by one are as few chunks as if they came
// in one table: 1,000,000 rows take some 40 bytes each.
TEST(SnapshotTest, RowsOfTheSameKindsShareAChunkHoweverTheyCome)
{
  wire::OfferFilters one;
  *one.mutable_refused() = holdingsOf(1, 2, 8192000);
  one.add_expires_ms(int64_t(1) << 40);

  SnapshotWriter writer;

  for (int i = 0; i < 1000000; ++i) {
    writer.add(one);
  }

  const auto chunks = writer.finish(0, 0);
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

  for (uint32_t row = 1; row <= 1000; ++row) {
    exclusions.add_framework(row);
    exclusions.add_role(1);
    exclusions.add_agent(row % 7 + 1);
    exclusions.add_excluded(row % 3 == 0);
  }

  SnapshotWriter writer(1024);
  writer.add(exclusions);
  const auto chunks = writer.finish(0, 0);

  // 1,000 rows of 4 or 5 bytes.
  EXPECT_EQ(6u, chunks.size());
  EXPECT_EQ(
      exclusions.SerializeAsString(),
      merged(chunks).exclusions().SerializeAsString());
}


TEST(SnapshotTest, ANounLargerThanTheBoundGoesAlone)
{
  SnapshotWriter writer(100);
  writer.add(agentOf(1));
  writer.add(agentOf(2, 500));
  writer.add(agentOf(3));
  const auto chunks = writer.finish(0, 0);

  ASSERT_EQ(3u, chunks.size());
  EXPECT_EQ(2u, chunks[1].agents(0).agent());
}


TEST(SnapshotTest, UnequalColumnsSpoilIt)
{
  SnapshotWriter good;
  good.add(holdingsOf(2, 2));
  EXPECT_EQ("", good.error());

  wire::Holdings holdings = holdingsOf(2, 2);
  holdings.add_role(1);
  SnapshotWriter first;
  first.add(holdings);
  EXPECT_NE("", first.error());

  wire::OfferFilters filters;
  *filters.mutable_refused() = holdingsOf(2, 1);
  SnapshotWriter second;
  second.add(filters);
  EXPECT_NE("", second.error());

  wire::Exclusions exclusions;
  exclusions.add_framework(1);
  SnapshotWriter third;
  third.add(exclusions);
  EXPECT_NE("", third.error());
}


// What 50,000 agents come to: some chunks of a megabyte.
TEST(SnapshotTest, FiftyThousandAgents)
{
  SnapshotWriter writer;

  for (uint32_t i = 1; i <= 50000; ++i) {
    writer.add(agentOf(i, 40));
  }

  writer.add(holdingsOf(50000, 3));
  const auto chunks = writer.finish(0, 0);

  EXPECT_GE(chunks.size(), 3u);
  EXPECT_LE(chunks.size(), 12u);
  EXPECT_EQ(50000, merged(chunks).agents_size());
  EXPECT_EQ(50000, merged(chunks).holdings().agent_size());
}

} // namespace {
} // namespace session {
} // namespace allocator {
