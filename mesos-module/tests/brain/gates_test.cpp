#include "brain/deciding/gates.hpp"

#include <gtest/gtest.h>

#include "brain/user_input/bounds.hpp"
#include "brain/brain.hpp"
#include "tests/script/script.hpp"

// Cases that transcripts cannot express, or only at length.

namespace allocator {
namespace brain {
namespace {

// One framework in eng, and one agent; the test calls the gates directly.
class GatesTest : public ::testing::Test
{
protected:
  void SetUp() override
  {
    AddFramework framework;
    framework.framework = "one";
    framework.roles = {"eng"};
    brain.step(framework, 0);
  }

  uint32_t
  define(uint32_t resourceClass, const std::string& name, int64_t unit = 0)
  {
    DefineResourceClass event;
    event.resourceClass = resourceClass;
    event.traits.name = name;
    event.traits.unit = unit;
    brain.step(event, 0);
    return resourceClass;
  }

  void add(const Parts& total)
  {
    AddAgent event;
    event.agent = "agent";
    event.info.add_capabilities(wire::AGENT_CAPABILITY_MULTI_ROLE);
    event.total = total;
    ASSERT_EQ("", brain.step(event, 0));
    brain.step(Welcomed{kindsMax, 1 << 20}, 0);
  }

  Admission ask(const Amounts& wanted)
  {
    const Cluster& cluster = brain.cluster();
    return judge(cluster, Pair{1, cluster.roles.find("eng"), 1}, wanted, 0);
  }

  static Part part(uint32_t resourceClass, int64_t amount)
  {
    return Part{resourceClass, amount, Spans()};
  }

  uint32_t kindsMax = 0;
  Brain brain;
};


TEST_F(GatesTest, ConstraintsKeepTheTwoApart)
{
  add({part(define(0, "cpus"), 8000)});
  EXPECT_EQ(wire::OUTCOME_REASON_OFFERED, ask({{0, 1000}}).reason);
  brain.step(Exclude{{{"one", "eng", "agent", true}}}, 0);
  EXPECT_EQ(wire::OUTCOME_REASON_CONSTRAINT, ask({{0, 1000}}).reason);
  brain.step(Exclude{{{"one", "eng", "agent", false}}}, 0);
  EXPECT_EQ(wire::OUTCOME_REASON_OFFERED, ask({{0, 1000}}).reason);
}


// Objects of an agent and of a provider are two resource classes of one kind;
// the limit applies to their sum.
TEST_F(GatesTest, ALimitHoldsForAllPiecesOfANameTogether)
{
  add({part(define(0, "cpus"), 3000), part(define(1, "cpus"), 3000)});
  brain.step(SetQuota{"eng", {}, {{"cpus", 4000}}}, 0);

  const Admission admission = ask({{0, 6000}});
  EXPECT_EQ(wire::OUTCOME_REASON_PARTIAL, admission.reason);
  EXPECT_EQ((Parts{part(0, 3000), part(1, 1000)}), admission.given);
  EXPECT_EQ(wire::OUTCOME_REASON_OFFERED, ask({{0, 4000}}).reason);
}


TEST_F(GatesTest, HeadroomHoldsForAllPiecesOfANameTogether)
{
  add({part(define(0, "cpus"), 3000), part(define(1, "cpus"), 3000)});
  brain.step(SetQuota{"ops", {{"cpus", 2000}}, {}}, 0);

  const Admission admission = ask({{0, 6000}});
  EXPECT_EQ(wire::OUTCOME_REASON_PARTIAL, admission.reason);
  EXPECT_EQ((Parts{part(0, 3000), part(1, 1000)}), admission.given);
}


// Whole objects are taken first; only divisible ones are split.
TEST_F(GatesTest, WhatCannotBeDividedIsGivenWhole)
{
  add({part(define(0, "disk", 8000), 24000), part(define(1, "disk"), 5000)});
  const uint32_t whole = brain.cluster().kinds.find(0);
  const uint32_t space = brain.cluster().kinds.find(1);
  ASSERT_NE(whole, space);

  EXPECT_EQ((Parts{part(0, 16000)}), ask({{whole, 23999}}).given);
  EXPECT_EQ((Parts{part(0, 24000)}), ask({{whole, 99000}}).given);
  EXPECT_EQ(
      wire::OUTCOME_REASON_NOTHING_AVAILABLE, ask({{whole, 7999}}).reason);
  EXPECT_EQ((Parts{part(1, 3000)}), ask({{space, 3000}}).given);
}


// Of an overflow kind, a framework gets the resources for which it is eligible,
// as whole objects.
TEST_F(GatesTest, TheRestIsGivenWhole)
{
  kindsMax = 1;
  add({part(define(0, "cpus"), 2000), part(define(1, "cpus", 3000), 3000)});
  ASSERT_EQ(brain.cluster().kinds.find(0), brain.cluster().kinds.find(1));

  EXPECT_EQ((Parts{part(0, 2000), part(1, 3000)}), ask({{0, 5000}}).given);
  const Admission admission = ask({{0, 4000}});
  EXPECT_EQ(wire::OUTCOME_REASON_PARTIAL, admission.reason);
  EXPECT_EQ((Parts{part(0, 2000)}), admission.given);
  EXPECT_EQ(wire::OUTCOME_REASON_NOTHING_AVAILABLE, ask({{0, 1500}}).reason);
}


TEST_F(GatesTest, NonsenseIsMalformed)
{
  add({part(define(0, "cpus"), 2000)});
  for (const Amounts& wanted :
       {Amounts(), Amounts{{0, 0}}, Amounts{{0, -1}}, Amounts{{99, 1000}}}) {
    EXPECT_EQ(wire::OUTCOME_REASON_MALFORMED, ask(wanted).reason);
  }
  EXPECT_EQ((Parts{part(0, 2000)}), ask({{0, INT64_MAX}}).given);
}


TEST(SpansTest, TheyAreSetsOfNumbers)
{
  Spans spans = {{5, 9}, {1, 2}, {3, 4}, {9, 8}, {20, 30}};
  normalize(&spans);
  EXPECT_EQ((Spans{{1, 9}, {20, 30}}), spans);
  EXPECT_EQ(20000, amountOf(spans));

  EXPECT_EQ((Spans{{1, 3}, {7, 9}}), subtract({{1, 9}}, {{4, 6}, {20, 30}}));
  EXPECT_EQ((Spans{{4, 6}}), intersect({{1, 6}}, {{4, 9}}));
  EXPECT_EQ((Spans{{1, 9}, {20, 21}}), lowest(spans, 11));
  EXPECT_TRUE(contains(spans, {{2, 5}, {21, 21}}));
  EXPECT_FALSE(contains(spans, {{9, 10}}));

  // The range of all numbers works like any other.
  const Spans all = {{0, UINT64_MAX}};
  EXPECT_EQ(
      (Spans{{0, UINT64_MAX - 1}}), subtract(all, {{UINT64_MAX, UINT64_MAX}}));
  EXPECT_TRUE(subtract(all, all).empty());
  EXPECT_EQ((Spans{{0, 0}}), lowest(all, 1));
  EXPECT_EQ(session::AMOUNT_MAX / 1000 * 1000, amountOf(all));
}


// Amounts of huge ranges are limited so that the parts of a range add up.
TEST(SpansTest, HoweverManyNumbersThereAreTheyAddUp)
{
  Spans all = {{5, UINT64_MAX - 5}};
  normalize(&all);
  EXPECT_LE(amountOf(all), int64_t(OBJECT_AMOUNT_MAX));

  Spans many = {{0, 9}, {UINT64_MAX - 5, UINT64_MAX}};
  normalize(&many);
  EXPECT_EQ((Spans{{0, 9}}), many);

  for (uint64_t cut : {uint64_t(6), uint64_t(1) << 30, uint64_t(1) << 60}) {
    Spans above = {{cut, UINT64_MAX}};
    normalize(&above);
    EXPECT_EQ(amountOf(all), amountOf(above) + amountOf(subtract(all, above)));
  }
}


TEST(ResourceClassesTest, SumsOverAMillionObjectsStayInSixtyFourBits)
{
  const int64_t most = countable(session::AMOUNT_MAX);
  EXPECT_EQ(int64_t(OBJECT_AMOUNT_MAX), most);
  EXPECT_GE(INT64_MAX / most, 1000000);
  EXPECT_EQ(6000, countable(2000, 3));
  EXPECT_LE(countable(session::AMOUNT_MAX, INT64_MAX), session::AMOUNT_MAX);
}


TEST(HandlesTest, TheLowestFreeNumberComesFirst)
{
  Handles handles;
  EXPECT_EQ(1u, handles.bind("a"));
  EXPECT_EQ(2u, handles.bind("b"));
  EXPECT_EQ(3u, handles.bind("c"));
  EXPECT_EQ(2u, handles.bind("b"));
  handles.sent(2, 5);
  EXPECT_EQ(5u, handles.revision(2));

  handles.release(2, 7);
  handles.release(1, 8);
  EXPECT_EQ(nullptr, handles.id(2));
  EXPECT_TRUE(handles.changedSince(2, 6));
  EXPECT_FALSE(handles.changedSince(2, 7));
  EXPECT_FALSE(handles.changedSince(0, 0));
  EXPECT_FALSE(handles.changedSince(9, 0));
  EXPECT_EQ(1u, handles.bind("d"));
  EXPECT_EQ(2u, handles.bind("e"));

  // The number keeps the revision of its last owner until the new owner is
  // sent.
  EXPECT_EQ(7u, handles.revision(2));
  handles.sent(2, 9);
  EXPECT_EQ(9u, handles.revision(2));
}


// An event contains few rows of 500 kinds, and rows of few kinds are not padded
// to them. Transitions come first.
TEST(EventCoalescerTest, NoEventIsADenseMonster)
{
  const int most = EventCoalescer::CELLS_MAX;
  Amounts wide;
  for (uint32_t kind = 0; kind < 500; ++kind) {
    wide.emplace_back(kind, 1);
  }

  EventCoalescer coalescer;
  for (uint32_t i = 1; i <= 5000; ++i) {
    coalescer.release(
        {1, 1, i}, i % 9 == 0 ? wide : Amounts{{7, 1}}, -1, false);
    coalescer.transition({1, 1, i}, {{7, 1}});
  }
  coalescer.release({1, 1, 1}, {}, -1, false);
  EXPECT_EQ(10000u, coalescer.size());

  int rows = 0;
  bool releases = false;
  for (const wire::Event& event : coalescer.take()) {
    EXPECT_FALSE(releases && event.has_transition());
    releases = releases || event.has_release();
    const wire::Holdings& holdings =
        event.has_release() ? event.release().released() : event.transition();
    rows += holdings.framework_size();
    EXPECT_LE(holdings.amount_size(), most);
    EXPECT_LE(holdings.framework_size(), EventCoalescer::ROWS_MAX + 0);
  }
  EXPECT_EQ(10000, rows);
  EXPECT_EQ(0u, coalescer.size());
}

} // namespace {
} // namespace brain {
} // namespace allocator {
