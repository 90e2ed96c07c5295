#include "session/decisions.hpp"

#include <functional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace allocator {
namespace session {
namespace {

wire::Holdings goodGrants()
{
  wire::Holdings grants;

  for (uint32_t row = 1; row <= 2; ++row) {
    grants.add_framework(row);
    grants.add_role(row + 10);
    grants.add_agent(row + 20);
    grants.add_amount(1000 * row);
    grants.add_amount(0);
  }

  grants.add_kind(0);
  grants.add_kind(7);
  return grants;
}


std::string check(const wire::Holdings& group)
{
  Decisions::Groups grants;
  *grants.Add() = group;
  return checkGrants(grants, DecisionLimits());
}


TEST(DecisionsTest, GoodGrantsAreTaken)
{
  EXPECT_EQ("", check(goodGrants()));
  EXPECT_EQ("", checkGrants(Decisions::Groups(), DecisionLimits()));

  wire::Holdings most = goodGrants();
  most.set_amount(3, AMOUNT_MAX);
  most.set_agent(0, UINT32_MAX);
  EXPECT_EQ("", check(most));

  // Decisions without kinds are accepted here; the brain judges them as
  // malformed.
  wire::Holdings none = goodGrants();
  none.clear_kind();
  none.clear_amount();
  EXPECT_EQ("", check(none));
}


// Each change breaks one rule; the error names the column.
TEST(DecisionsTest, ABrokenRuleIsNamed)
{
  using Change = std::function<void(wire::Holdings*)>;

  const std::vector<std::pair<std::string, Change>> changes = {
      {"grants[0].role: has 3", [](wire::Holdings* g) { g->add_role(1); }},
      {"grants[0].agent: has 1",
       [](wire::Holdings* g) { g->mutable_agent()->RemoveLast(); }},
      {"grants[0].role: has 2",
       [](wire::Holdings* g) { g->mutable_framework()->RemoveLast(); }},
      {"grants[0].framework: has no entries",
       [](wire::Holdings* g) { g->Clear(); }},
      {"grants[0].amount: has 5", [](wire::Holdings* g) { g->add_amount(1); }},
      {"grants[0].amount: has 4", [](wire::Holdings* g) { g->add_kind(9); }},
      {"grants[0].amount: has 0",
       [](wire::Holdings* g) { g->mutable_amount()->Clear(); }},
      {"grants[0].kind: holds 7 more than once",
       [](wire::Holdings* g) { g->set_kind(0, 7); }},
      {"grants[0].framework[1]: is 0",
       [](wire::Holdings* g) { g->set_framework(1, 0); }},
      {"grants[0].role[0]: is 0", [](wire::Holdings* g) { g->set_role(0, 0); }},
      {"grants[0].agent[1]: is 0",
       [](wire::Holdings* g) { g->set_agent(1, 0); }},
      {"grants[0].amount[2]: is -1",
       [](wire::Holdings* g) { g->set_amount(2, -1); }},
      {"grants[0].amount[3]: is 9007199254740993",
       [](wire::Holdings* g) { g->set_amount(3, AMOUNT_MAX + 1); }},
      {"grants[0].amount[0]: is -9223372036854775808",
       [](wire::Holdings* g) { g->set_amount(0, INT64_MIN); }},
  };

  for (const auto& change : changes) {
    wire::Holdings grants = goodGrants();
    change.second(&grants);
    const std::string wrong = check(grants);
    EXPECT_EQ(0u, wrong.find(change.first)) << wrong;
  }
}


// Kinds are limited per group, decisions over all groups.
TEST(DecisionsTest, CountsAreBounded)
{
  Decisions::Groups grants;
  *grants.Add() = goodGrants();
  *grants.Add() = goodGrants();
  DecisionLimits limits;

  limits.decisionsMax = 4;
  EXPECT_EQ("", checkGrants(grants, limits));
  limits.decisionsMax = 3;
  EXPECT_EQ(
      "grants: has 4 entries; at most 3 are taken",
      checkGrants(grants, limits));

  limits.kindsMax = 1;
  EXPECT_EQ(
      "grants[0].kind: has 2 entries; at most 1 are taken",
      checkGrants(grants, limits));
}


// Amounts are limited over all groups. The limit is checked before any group is
// read.
TEST(DecisionsTest, AmountsAreBounded)
{
  Decisions decisions;
  *decisions.grants.Add() = goodGrants();
  *decisions.grants.Add() = goodGrants();
  EXPECT_EQ(8u, decisions.amounts());

  DecisionLimits limits;
  limits.amountsMax = 8;
  EXPECT_EQ("", checkGrants(decisions.grants, limits));
  limits.amountsMax = 7;
  EXPECT_EQ(
      "grants.amount: has 8 entries in all groups; at most 7 are taken",
      checkGrants(decisions.grants, limits));
}


TEST(DecisionsTest, EveryGroupIsLookedAt)
{
  Decisions::Groups grants;
  *grants.Add() = goodGrants();
  *grants.Add() = goodGrants();
  grants.Mutable(1)->set_agent(0, 0);
  EXPECT_EQ(
      0u,
      checkGrants(grants, DecisionLimits()).find("grants[1].agent[0]: is 0"));
}


// Two groups: two decisions on kinds 0 and 7, one on kind 3.
Decisions twoGroups()
{
  Decisions decisions;
  decisions.session = 4;
  decisions.first = 30;
  *decisions.grants.Add() = goodGrants();

  wire::Holdings* group = decisions.grants.Add();
  group->add_framework(5);
  group->add_role(15);
  group->add_agent(25);
  group->add_kind(3);
  group->add_amount(9);
  return decisions;
}


std::vector<Decision> all(const Decisions& decisions)
{
  std::vector<Decision> result;
  decisions.each([&](const Decision& each) { result.push_back(each); });
  return result;
}


TEST(DecisionsTest, DecisionsAreReadThroughTheGroupsInOrder)
{
  const Decisions decisions = twoGroups();
  const std::vector<Decision> each = all(decisions);

  ASSERT_EQ(3u, decisions.size());
  ASSERT_EQ(3u, each.size());
  ASSERT_EQ(2u, each[1].kinds());
  EXPECT_EQ(2u, each[1].framework());
  EXPECT_EQ(12u, each[1].role());
  EXPECT_EQ(22u, each[1].agent());
  EXPECT_EQ(7u, each[1].kind(1));
  EXPECT_EQ(1000, each[0].amount(0));
  EXPECT_EQ(2000, each[1].amount(0));

  ASSERT_EQ(1u, each[2].kinds());
  EXPECT_EQ(25u, each[2].agent());
  EXPECT_EQ(3u, each[2].kind(0));
  EXPECT_EQ(9, each[2].amount(0));
}


TEST(DecisionsTest, OutcomesGiveAmountsOfPartialOffersOnly)
{
  const Decisions decisions = twoGroups();
  const Decision decision = all(decisions)[0];

  Outcomes outcomes(decisions);
  outcomes.offered();
  outcomes.refused(wire::OUTCOME_REASON_FILTERED);

  ASSERT_EQ(1u, outcomes.messages.size());
  EXPECT_EQ(4u, outcomes.session);
  EXPECT_EQ(30u, outcomes.messages[0].first_decision());
  EXPECT_EQ(2, outcomes.messages[0].reason_size());
  EXPECT_EQ(0, outcomes.messages[0].kind_size());

  outcomes.partial(decision, {500, 1});
  outcomes.partial(decision, {1, 2, 3}); // Wrong number of amounts.
  outcomes.partial(decision, {0, 9});

  ASSERT_EQ(5u, outcomes.size());
  ASSERT_EQ(1u, outcomes.messages.size());
  const wire::Outcomes& message = outcomes.messages[0];
  EXPECT_EQ(wire::OUTCOME_REASON_PARTIAL, message.reason(2));
  EXPECT_EQ(wire::OUTCOME_REASON_MALFORMED, message.reason(3));
  EXPECT_EQ(wire::OUTCOME_REASON_PARTIAL, message.reason(4));
  ASSERT_EQ(2, message.kind_size());
  ASSERT_EQ(4, message.amount_size());
  EXPECT_EQ(500, message.amount(0));
  EXPECT_EQ(9, message.amount(3));
}


// All amounts of a message are of the same kinds, and its size is bounded.
TEST(DecisionsTest, OutcomesOfOtherKindsBeginAMessage)
{
  const Decisions decisions = twoGroups();
  const std::vector<Decision> each = all(decisions);

  Outcomes outcomes(decisions);
  outcomes.partial(each[0], {1, 0});
  outcomes.offered();
  outcomes.partial(each[2], {2});
  outcomes.offered();

  ASSERT_EQ(2u, outcomes.messages.size());
  EXPECT_EQ(30u, outcomes.messages[0].first_decision());
  EXPECT_EQ(2, outcomes.messages[0].reason_size());
  EXPECT_EQ(32u, outcomes.messages[1].first_decision());
  EXPECT_EQ(2, outcomes.messages[1].reason_size());
  ASSERT_EQ(1, outcomes.messages[1].kind_size());
  EXPECT_EQ(3u, outcomes.messages[1].kind(0));
}


TEST(DecisionsTest, OutcomesAreBoundedByRowsAndCells)
{
  const int cells = Outcomes::CELLS_MAX;
  const int rows = Outcomes::ROWS_MAX;
  wire::Holdings wide;
  wide.add_framework(1);
  wide.add_role(1);
  wide.add_agent(1);
  for (int kind = 0; kind < 500; ++kind) {
    wide.add_kind(kind);
    wide.add_amount(1);
  }

  Outcomes partial((Decisions()));
  for (int i = 0; i < 1000; ++i) {
    partial.partial(Decision(wide, 0), std::vector<int64_t>(500, 1));
  }

  uint64_t next = 0;
  for (const wire::Outcomes& message : partial.messages) {
    EXPECT_LE(message.amount_size(), cells);
    EXPECT_EQ(message.amount_size(), 500 * message.reason_size());
    EXPECT_EQ(next, message.first_decision());
    next += message.reason_size();
  }
  EXPECT_EQ(1000u, next);

  Outcomes offered((Decisions()));
  for (int i = 0; i <= rows; ++i) {
    offered.offered();
  }
  EXPECT_EQ(2u, offered.messages.size());
  EXPECT_EQ(size_t(rows) + 1, offered.size());
}

} // namespace {
} // namespace session {
} // namespace allocator {
