#include "client/decisions.hpp"

#include <functional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace allocator {
namespace client {
namespace {

// Two decisions of two kinds.
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


std::string check(const wire::Holdings& grants)
{
  return checkGrants(grants, DecisionLimits());
}


TEST(DecisionsTest, GoodGrantsAreTaken)
{
  EXPECT_EQ("", check(goodGrants()));
  EXPECT_EQ("", check(wire::Holdings()));

  wire::Holdings most = goodGrants();
  most.set_amount(3, AMOUNT_MAX);
  most.set_agent(0, UINT32_MAX);
  EXPECT_EQ("", check(most));
}


// Each change breaks one rule, and the error names the column.
TEST(DecisionsTest, ABrokenRuleIsNamed)
{
  using Change = std::function<void(wire::Holdings*)>;

  const std::vector<std::pair<std::string, Change>> changes = {
    {"grants.role: has 3", [](wire::Holdings* g) { g->add_role(1); }},
    {"grants.agent: has 1",
     [](wire::Holdings* g) { g->mutable_agent()->RemoveLast(); }},
    {"grants.role: has 2",
     [](wire::Holdings* g) { g->mutable_framework()->RemoveLast(); }},
    {"grants.amount: has 5", [](wire::Holdings* g) { g->add_amount(1); }},
    {"grants.amount: has 4", [](wire::Holdings* g) { g->add_kind(9); }},
    {"grants.amount: has 0",
     [](wire::Holdings* g) { g->mutable_amount()->Clear(); }},
    {"grants.kind: holds 7 more than once",
     [](wire::Holdings* g) { g->set_kind(0, 7); }},
    {"grants.framework[1]: is 0",
     [](wire::Holdings* g) { g->set_framework(1, 0); }},
    {"grants.role[0]: is 0", [](wire::Holdings* g) { g->set_role(0, 0); }},
    {"grants.agent[1]: is 0", [](wire::Holdings* g) { g->set_agent(1, 0); }},
    {"grants.amount[2]: is -1",
     [](wire::Holdings* g) { g->set_amount(2, -1); }},
    {"grants.amount[3]: is 9007199254740993",
     [](wire::Holdings* g) { g->set_amount(3, AMOUNT_MAX + 1); }},
    {"grants.amount[0]: is -9223372036854775808",
     [](wire::Holdings* g) { g->set_amount(0, INT64_MIN); }},
  };

  for (const auto& change : changes) {
    wire::Holdings grants = goodGrants();
    change.second(&grants);
    const std::string wrong = check(grants);
    EXPECT_EQ(0u, wrong.find(change.first)) << wrong;
  }
}


TEST(DecisionsTest, CountsAreBounded)
{
  const wire::Holdings grants = goodGrants();
  DecisionLimits limits;

  limits.decisionsMax = 1;
  EXPECT_EQ(
      "grants.framework: has 2 entries; at most 1 are taken",
      checkGrants(grants, limits));

  limits.decisionsMax = 2;
  limits.kindsMax = 1;
  EXPECT_EQ(
      "grants.kind: has 2 entries; at most 1 are taken",
      checkGrants(grants, limits));
}


TEST(DecisionsTest, RowsAndColumnsAreRead)
{
  Decisions decisions;
  decisions.grants = goodGrants();

  ASSERT_EQ(2u, decisions.size());
  ASSERT_EQ(2u, decisions.kinds());
  EXPECT_EQ(2u, decisions.framework(1));
  EXPECT_EQ(12u, decisions.role(1));
  EXPECT_EQ(22u, decisions.agent(1));
  EXPECT_EQ(7u, decisions.kind(1));
  EXPECT_EQ(1000, decisions.amount(0, 0));
  EXPECT_EQ(2000, decisions.amount(1, 0));
}


TEST(DecisionsTest, OutcomesGiveAmountsOfPartialOffersOnly)
{
  Decisions decisions;
  decisions.session = 4;
  decisions.first = 30;
  decisions.grants = goodGrants();

  Outcomes outcomes(decisions);
  outcomes.offered();
  outcomes.refused(wire::OUTCOME_REASON_FILTERED);

  EXPECT_EQ(4u, outcomes.session);
  EXPECT_EQ(30u, outcomes.message.first_decision());
  EXPECT_EQ(2, outcomes.message.reason_size());
  EXPECT_EQ(0, outcomes.message.kind_size());

  outcomes.partial({500, 1});
  outcomes.partial({1, 2, 3}); // Not one amount for each kind.
  outcomes.partial({0, 9});

  ASSERT_EQ(5u, outcomes.size());
  EXPECT_EQ(wire::OUTCOME_REASON_PARTIAL, outcomes.message.reason(2));
  EXPECT_EQ(wire::OUTCOME_REASON_MALFORMED, outcomes.message.reason(3));
  EXPECT_EQ(wire::OUTCOME_REASON_PARTIAL, outcomes.message.reason(4));
  ASSERT_EQ(2, outcomes.message.kind_size());
  ASSERT_EQ(4, outcomes.message.amount_size());
  EXPECT_EQ(500, outcomes.message.amount(0));
  EXPECT_EQ(9, outcomes.message.amount(3));
}

} // namespace {
} // namespace client {
} // namespace allocator {
