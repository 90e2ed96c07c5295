#include <string>

#include <gtest/gtest.h>

#include "brain/brain.hpp"

// Roles that come and go by the thousands: names that nobody needs are given
// up, and those that are in use stay what they are.

namespace allocator {
namespace brain {
namespace {

constexpr int64_t INTERVAL_MS = 1000;
constexpr int ROLES = 10000;


class RolesTest : public ::testing::Test
{
protected:
  RolesTest()
  {
    Initialize event;
    event.options.intervalMs = INTERVAL_MS;
    event.options.rolesSpare = 100;
    event.options.rolesSentMax = 500;
    step(event);
    step(Recover());
    subscribe("stays", "eng/ads", false);

    AddAgent agent;
    agent.agent = "agent";
    agent.info.add_capabilities(wire::AGENT_CAPABILITY_MULTI_ROLE);
    agent.info.add_capabilities(wire::AGENT_CAPABILITY_HIERARCHICAL_ROLE);
    brain.step(
        DefineResourceClass{0, cpus()},
        nowMs); // Unused, it would be forgotten.
    agent.total = {Part{0, 4000, {}}};
    agent.used = {Use{"stays", "eng/ads", {Part{0, 1000, {}}}}};
    step(agent);
  }

  static Traits cpus()
  {
    Traits traits;
    traits.name = "cpus";
    return traits;
  }

  template <typename Event>
  void step(const Event& event)
  {
    brain.step(event, nowMs);
    const Ready ready = brain.ready();
    soon = ready.soon;

    for (const Message& message : ready.messages) {
      starts += message.kind == Message::Kind::START ? 1 : 0;
      isWanted = message.kind == Message::Kind::START ||
          (isWanted && message.kind != Message::Kind::STOP);
    }
  }

  void settle()
  {
    while (soon) {
      step(Wake());
    }
  }

  void subscribe(
      const std::string& framework,
      const std::string& role,
      bool active = true)
  {
    AddFramework event;
    event.framework = framework;
    event.roles = {role};
    event.active = active;
    event.info.add_capabilities(wire::FRAMEWORK_CAPABILITY_MULTI_ROLE);
    step(event);
  }

  // Ten at a time are there; their quotas and weights go before them.
  void churn()
  {
    for (int i = 0; i < ROLES; ++i) {
      const std::string role = "role" + std::to_string(i) + "/below";
      subscribe(role, role);
      step(SetQuota{role, {}, {{"cpus", 1000}}});
      step(SetQuota{role, {}, {}});

      if (i >= 10) {
        step(RemoveFramework{"role" + std::to_string(i - 10) + "/below"});
        nowMs += INTERVAL_MS / 10;
        step(Wake());
      }

      settle();
      most = std::max(most, brain.cluster().roles.count());
      ASSERT_EQ("", brain.check());
    }
  }

  void expectUnchanged() const
  {
    const Roles& roles = brain.cluster().roles;
    const uint32_t role = roles.find("eng/ads");
    ASSERT_NE(0u, role);
    EXPECT_EQ("eng/ads", roles.path(role));
    EXPECT_EQ(roles.find("eng"), roles.parent(role));
    EXPECT_EQ(1000, amountOf(brain.cluster().sums.ofRole(role), 0));
  }

  Brain brain;
  int64_t nowMs = 0;
  bool soon = false;
  bool isWanted = false;
  int starts = 0;
  size_t most = 0;
};


TEST_F(RolesTest, ThoseThatNobodyNamesAreGivenUp)
{
  churn();
  EXPECT_GT(300u, most);
  EXPECT_EQ(1, starts);
  expectUnchanged();
}


// A filter may be meant to last for a year, and go with its role long before.
TEST_F(RolesTest, FiltersThatWereDroppedHoldNoRole)
{
  UpdateFramework moves;
  moves.framework = "moves";
  subscribe("moves", "role");
  for (int i = 0; i < ROLES; ++i) {
    const std::string role = "role" + std::to_string(i);
    moves.roles = {role};
    step(moves);
    Release refused;
    refused.agent = "agent";
    refused.framework = "moves";
    refused.refuseMs = int64_t(365) * 24 * 3600 * 1000;
    refused.parts = {RoleParts{role, {Part{0, 3000, {}}}}};
    step(refused);

    if (i % 10 == 0) {
      nowMs += INTERVAL_MS;
      step(Wake());
      settle();
      most = std::max(most, brain.cluster().roles.count());
      ASSERT_EQ("", brain.check());
    }
    ASSERT_EQ(1u, brain.cluster().filters.size());
    ASSERT_GT(2000u, brain.cluster().agents.find(1)->filters.size());
  }

  const Cluster& cluster = brain.cluster();
  const std::string last = "role" + std::to_string(ROLES - 1);
  EXPECT_EQ(1u, cluster.filters.countOf(cluster.roles.find(last)));
  EXPECT_GT(300u, most);
  step(RemoveFramework{"moves"});
  EXPECT_EQ(0u, cluster.filters.size());
  expectUnchanged();
}


// A session may hear of a role only once, so they go with the session.
TEST_F(RolesTest, ASessionThatHeardOfTooManyMakesRoomForAnother)
{
  for (int i = 0; i < 3; ++i) {
    step(Welcomed());
    settle();
    step(Connected{"sidecar", "1"});
    settle();
    const int before = starts;

    for (int role = 0; starts == before && role < ROLES; ++role) {
      const std::string name =
          "role" + std::to_string(i) + "-" + std::to_string(role);
      subscribe(name, name);
      step(RemoveFramework{name});
      nowMs += INTERVAL_MS;
      step(Wake());
      settle();
      most = std::max(most, brain.cluster().roles.count());
    }

    EXPECT_EQ(before + 1, starts);
    EXPECT_TRUE(isWanted);
    EXPECT_LT(500u, brain.cluster().roles.countHandles());
  }

  EXPECT_GT(1200u, most);
  step(Welcomed());
  settle();
  EXPECT_GT(10u, brain.cluster().roles.count());
  expectUnchanged();
}

} // namespace {
} // namespace brain {
} // namespace allocator {
