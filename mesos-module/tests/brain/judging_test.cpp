#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "brain/brain.hpp"

// Limits of the slices in which answers are judged. The tests use no clock: the
// number of rows in a slice follows from their cost.

namespace allocator {
namespace brain {
namespace {

// One framework in eng, and one agent for the sidecar's decisions.
class JudgingTest : public ::testing::Test
{
protected:
  void begin(size_t sliceParts, uint64_t badDecisionsMax = 1000)
  {
    Initialize initialize;
    initialize.options.fallback = false;
    initialize.options.sliceParts = sliceParts;
    initialize.options.badDecisionsMax = badDecisionsMax;
    brain.step(initialize, 0);

    AddFramework framework;
    framework.framework = "one";
    framework.roles = {"eng"};
    brain.step(framework, 0);
  }

  void define(uint32_t resourceClass, const std::string& name, Type type)
  {
    DefineResourceClass event;
    event.resourceClass = resourceClass;
    event.traits.name = name;
    event.traits.type = type;
    brain.step(event, 0);
  }

  void connect(const Parts& total)
  {
    AddAgent event;
    event.agent = "agent";
    event.info.add_capabilities(wire::AGENT_CAPABILITY_MULTI_ROLE);
    event.total = total;
    ASSERT_EQ("", brain.step(event, 0));
    brain.step(Welcomed{0, 1 << 20}, 0);
    while (brain.ready().soon) {
      brain.step(Wake{}, 0);
    }
    brain.step(Connected(), 0);
  }

  // An agent with `classes` resource classes of one kind.
  void connectClasses(uint32_t classes)
  {
    Parts total;
    for (uint32_t each = 0; each < classes; ++each) {
      define(each, "cpus", Type::SCALAR);
      total.push_back(Part{each, 1000, Spans()});
    }
    connect(total);
  }

  static Decided answer(int rows, uint32_t kinds, int64_t amount)
  {
    Decided event;
    event.decisions.first = 1;
    event.decisions.revision = UINT64_MAX;
    wire::Holdings* group = event.decisions.grants.Add();
    for (uint32_t kind = 0; kind < kinds; ++kind) {
      group->add_kind(kind);
    }
    for (int row = 0; row < rows; ++row) {
      group->add_framework(1);
      group->add_role(1);
      group->add_agent(1);
    }
    group->mutable_amount()->Resize(rows * int(kinds), amount);
    return event;
  }

  // Judges an answer; returns the number of rows judged in each slice.
  std::vector<int> judge(Decided event)
  {
    std::vector<int> result;
    brain.step(std::move(event), 0);

    for (Ready ready = brain.ready();; ready = brain.ready()) {
      offers += ready.offers.size();
      for (const Message& message : ready.messages) {
        if (message.kind == Message::Kind::OUTCOMES) {
          result.push_back(int(message.outcomes->size()));
          for (const wire::Outcomes& each : message.outcomes->messages) {
            reasons.insert(each.reason().begin(), each.reason().end());
            inOrder.insert(
                inOrder.end(), each.reason().begin(), each.reason().end());
          }
        }
      }
      if (!ready.soon) {
        return result;
      }
      brain.step(Wake{}, 0);
    }
  }

  Brain brain;
  std::set<int> reasons;
  std::vector<int> inOrder;
  size_t offers = 0;
};


TEST_F(JudgingTest, ASliceIsBoundedByResourceClasses)
{
  begin(100);
  connectClasses(40);

  // Judging a row costs 40 resource classes and one kind, so a slice has three
  // rows.
  EXPECT_EQ((std::vector<int>{3, 3, 3, 1}), judge(answer(10, 1, 100)));
  EXPECT_EQ(std::set<int>{wire::OUTCOME_REASON_OFFERED}, reasons);
  EXPECT_EQ("", brain.check());
}


TEST_F(JudgingTest, ASliceIsBoundedByKinds)
{
  begin(100);
  Parts total;
  for (uint32_t each = 0; each < 20; ++each) {
    define(each, "r" + std::to_string(each), Type::SCALAR);
    total.push_back(Part{each, 1000, Spans()});
  }
  connect(total);

  // Judging a row costs 20 resource classes and 20 kinds.
  EXPECT_EQ((std::vector<int>{3, 3, 1}), judge(answer(7, 20, 10)));
  EXPECT_EQ(std::set<int>{wire::OUTCOME_REASON_OFFERED}, reasons);
}


// Each row takes one of 640 single ports. A row costs about 40 because of the
// 640 free spans, less those taken before.
TEST_F(JudgingTest, ASliceIsBoundedBySpans)
{
  begin(100);
  define(0, "ports", Type::RANGES);
  std::vector<Span> spans;
  for (uint64_t number = 0; number < 640; ++number) {
    spans.push_back(Span{2 * number, 2 * number});
  }
  const Spans all{std::move(spans)};
  connect({Part{0, amountOf(all), all}});

  EXPECT_EQ((std::vector<int>{3, 3, 3}), judge(answer(9, 1, 1000)));
  EXPECT_EQ(std::set<int>{wire::OUTCOME_REASON_OFFERED}, reasons);
  EXPECT_EQ("", brain.check());
}


TEST_F(JudgingTest, ASliceAlwaysGoesOn)
{
  begin(1);
  connectClasses(4);
  EXPECT_EQ((std::vector<int>{1, 1, 1}), judge(answer(3, 1, 100)));
}


// The agent has 1,000 units of a kind. The limit on a slice is the smallest.
TEST_F(JudgingTest, AGangIsOfferedWholeInOneSlice)
{
  begin(1);
  connectClasses(1);

  Decided event = answer(4, 1, 200);
  event.decisions.gangs.add_first(1);
  event.decisions.gangs.add_count(3);
  EXPECT_EQ((std::vector<int>{1, 3}), judge(std::move(event)));
  EXPECT_EQ(std::set<int>{wire::OUTCOME_REASON_OFFERED}, reasons);
  EXPECT_EQ(4u, offers);
  EXPECT_EQ("", brain.check());
}


TEST_F(JudgingTest, AGangThatDoesNotPassWholeIsNotOffered)
{
  begin(100000);
  connectClasses(1);

  // The last of the gang's decisions asks for 500, of which 400 are left.
  Decided event = answer(5, 1, 200);
  event.decisions.grants.Mutable(0)->set_amount(3, 500);
  event.decisions.gangs.add_first(1);
  event.decisions.gangs.add_count(3);
  EXPECT_EQ(std::vector<int>{5}, judge(std::move(event)));
  EXPECT_EQ(2u, offers);
  EXPECT_EQ(
      (std::vector<int>{
          wire::OUTCOME_REASON_OFFERED,
          wire::OUTCOME_REASON_INCOMPLETE_GANG,
          wire::OUTCOME_REASON_INCOMPLETE_GANG,
          wire::OUTCOME_REASON_INCOMPLETE_GANG,
          wire::OUTCOME_REASON_OFFERED}),
      inOrder);
  EXPECT_EQ("", brain.check());

  // The 600 that the gang did not get are free.
  event = answer(1, 1, 600);
  event.decisions.first = 6;
  judge(std::move(event));
  EXPECT_EQ(3u, offers);
  EXPECT_EQ(wire::OUTCOME_REASON_OFFERED, inOrder.back());
}


// A row with more kinds than there are costs 1, because its kinds are not read.
// It is malformed, although the framework also suppresses offers.
TEST_F(JudgingTest, MoreKindsThanThereAreAreMalformed)
{
  begin(100, 40);
  connectClasses(4);
  Suppress suppress;
  suppress.framework = "one";
  suppress.roles = {"eng"};
  brain.step(suppress, 0);

  EXPECT_EQ(std::vector<int>{50}, judge(answer(50, 2000, 0)));
  EXPECT_EQ(std::set<int>{wire::OUTCOME_REASON_MALFORMED}, reasons);
  EXPECT_EQ(1u, brain.stats().breakerTrips);
}

} // namespace {
} // namespace brain {
} // namespace allocator {
