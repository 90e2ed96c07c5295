#include <string>

#include <gtest/gtest.h>

#include "brain/brain.hpp"
#include "tests/brain/mirror.hpp"

// Thousands of roles come and go: unused ones are removed, and those in use are
// unaffected.

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
    offers.insert(offers.end(), ready.offers.begin(), ready.offers.end());

    for (const Message& message : ready.messages) {
      starts += message.kind == Message::Kind::START ? 1 : 0;
      for (const wire::SnapshotChunk& chunk : message.chunks) {
        mirror.take(chunk);
        for (const wire::Agent& agent : chunk.agents()) {
          agents[agent.agent_id()] = agent;
        }
      }
      if (message.kind == Message::Kind::EVENT) {
        mirror.take(message.event);
        if (message.event.has_add_agent()) {
          agents[message.event.add_agent().agent_id()] =
              message.event.add_agent();
        }
      }
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

  void connect()
  {
    mirror.begin();
    step(Welcomed());
    settle();
    step(Connected{"sidecar", "1"});
    settle();
  }

  void interval()
  {
    nowMs += INTERVAL_MS;
    step(Wake());
    settle();
  }

  static std::string deep(const std::string& top)
  {
    std::string path = top;
    for (size_t level = 1; level < ROLE_DEPTH_MAX; ++level) {
      path += "/x";
    }
    return path;
  }

  // Adds an agent with `roles` roles in use and as many in reservations, of
  // various depths.
  void addGreedyAgent(int number, int roles)
  {
    AddAgent agent;
    agent.agent = "greedy" + std::to_string(number);
    agent.total = {Part{0, 4000, {}}};

    for (int i = 0; i < roles; ++i) {
      const std::string top =
          "g" + std::to_string(number) + "-" + std::to_string(i);
      DefineResourceClass event;
      event.resourceClass = 100 + number * roles + i;
      event.traits.name = "disk";
      event.traits.depth = 1;
      event.traits.reservedRole = deep("r" + top);
      brain.step(event, nowMs); // Unused, it would be forgotten.
      agent.total.push_back(Part{event.resourceClass, 1000, {}});
      agent.used.push_back(
          Use{"unknown", i % 2 == 0 ? deep(top) : top, {Part{0, 1, {}}}});
    }

    step(agent);
    settle();
  }

  size_t reservedTo(const std::string& role)
  {
    const uint32_t number = brain.cluster().roles.find(role);
    size_t result = 0;
    for (const Offer& offer : offers) {
      for (const Part& part : offer.parts) {
        const Traits& traits =
            brain.cluster().classes.traits(part.resourceClass);
        result += offer.role == number && traits.depth > 0 ? 1 : 0;
      }
    }
    return result;
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

  // Adds and removes frameworks, at most ten at a time, each with a separate
  // role. Sets quotas and removes them at once.
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
  Mirror mirror;
  std::vector<Offer> offers;
  std::map<std::string, wire::Agent> agents; // As reported to the sidecar.
};


// Unused roles are removed, without a new session.
TEST_F(RolesTest, ThoseThatNobodyNamesAreGivenUp)
{
  churn();
  EXPECT_GT(300u, most);
  EXPECT_EQ(1, starts);
  expectUnchanged();
}


// A filter may last a year, but once dropped it must not keep its role in the
// tree.
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


// A session cannot forget a role, so roles are freed when the session ends.
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


// Roles that agents report as reserved or in use do not count against the limit
// on roles of frameworks.
TEST_F(RolesTest, AgentsTakeNoRoomFromFrameworks)
{
  constexpr int GREEDY = 70;
  constexpr int EACH = 200;
  const Roles& roles = brain.cluster().roles;
  connect();

  for (int i = 0; i < GREEDY; ++i) {
    addGreedyAgent(i, EACH);
    EXPECT_GE(USED_ROLES_MAX, roles.count(Standing::USED));
  }
  EXPECT_GT(10u, roles.count(Standing::SOUGHT));
  EXPECT_GE(USED_ROLES_MAX + 10, roles.countHandles());

  // Only the reported roles and their top-level roles are added.
  EXPECT_GE(3u * GREEDY * EACH + USED_ROLES_MAX, roles.count());

  // The sidecar's data on the agent report the excess.
  ASSERT_LE(1, agents["greedy0"].set_aside_size());
  EXPECT_EQ("roles", agents["greedy0"].set_aside(0).field());
  EXPECT_EQ("", mirror.fault);

  AddFramework honest;
  honest.framework = "honest";
  honest.info.add_capabilities(wire::FRAMEWORK_CAPABILITY_MULTI_ROLE);
  honest.roles = {"production"};
  for (int i = 0; i < 1000; ++i) {
    honest.roles.insert("production/team" + std::to_string(i));
  }
  step(honest);
  EXPECT_EQ(
      1001u,
      brain.cluster()
          .frameworks.find(brain.cluster().frameworkHandles.find("honest"))
          ->roles.size());

  // The agent neither ends a session nor causes one to be replaced.
  const int before = starts;
  for (int i = 0; i < 200; ++i) {
    interval();
  }
  EXPECT_EQ(before, starts);
  EXPECT_EQ("", mirror.compare(&brain));

  connect();
  EXPECT_GE(USED_ROLES_MAX + 1100, roles.countHandles());
  EXPECT_EQ("", mirror.compare(&brain));
  EXPECT_EQ("", brain.check());
}


// Frameworks and their agents are served whatever a greedy agent reports.
TEST_F(RolesTest, WhatIsReservedReachesItsRoleBesideGreedyAgents)
{
  for (int i = 0; i < 4; ++i) {
    addGreedyAgent(i, 800);
  }

  AddAgent agent;
  agent.agent = "honest";
  agent.info.add_capabilities(wire::AGENT_CAPABILITY_MULTI_ROLE);
  agent.info.add_capabilities(wire::AGENT_CAPABILITY_HIERARCHICAL_ROLE);
  for (uint32_t i : {1, 2}) {
    DefineResourceClass event;
    event.resourceClass = i;
    event.traits.name = "disk";
    event.traits.depth = 1;
    event.traits.reservedRole = i == 1 ? "production/db" : "producti";
    brain.step(event, nowMs);
    agent.total.push_back(Part{i, 1000, {}});
  }
  step(agent);
  subscribe("below", "production/db/replica");
  subscribe("beside", "production/dbs");
  interval();

  EXPECT_EQ(1u, reservedTo("production/db/replica"));
  EXPECT_EQ(0u, reservedTo("production/dbs"));

  // For quotas, the reservation counts for the top-level role.
  const Cluster& cluster = brain.cluster();
  EXPECT_EQ(
      1000,
      amountOf(
          cluster.sums.consumed(cluster.roles.find("production")),
          cluster.classes.row(1).name));
}


// Once a framework names a role that was folded, the sidecar learns of the
// role's holdings under its own handle.
TEST_F(RolesTest, ARoleGetsItsPlaceWhenAFrameworkSeeksIt)
{
  connect();
  addGreedyAgent(0, 800);

  AddAgent agent;
  agent.agent = "more";
  agent.total = {Part{0, 4000, {}}};
  for (size_t i = 0; i < LEVELS_OF_AGENT_MAX; ++i) {
    agent.used.push_back(
        Use{"unknown", "more" + std::to_string(i), {Part{0, 1, {}}}});
  }
  agent.used.push_back(Use{"unknown", "late/a/b/c", {Part{0, 100, {}}}});
  agent.used.push_back(Use{"unknown", "late/a/d/e", {Part{0, 20, {}}}});
  step(agent);
  ASSERT_EQ("", mirror.compare(&brain));

  const Roles& roles = brain.cluster().roles;
  const uint32_t role = roles.find("late/a/b/c");
  EXPECT_EQ(Standing::FOLDED, roles.standing(role));
  EXPECT_EQ(roles.find("late"), roles.parent(role));

  subscribe("late", "late/a/b/c");
  EXPECT_EQ(Standing::SOUGHT, roles.standing(role));
  EXPECT_EQ(roles.find("late/a/b"), roles.parent(role));
  EXPECT_EQ(role, roles.ofHandle(roles.knownHandle(role)));
  EXPECT_EQ(100, amountOf(brain.cluster().sums.ofRole(role), 0));
  EXPECT_EQ(
      120, amountOf(brain.cluster().sums.ofRole(roles.find("late/a")), 0));
  EXPECT_EQ("", mirror.compare(&brain));

  // The sidecar also learns of a release.
  Release release;
  release.agent = "more";
  release.framework = "unknown";
  release.parts = {{"late/a/b/c", {Part{0, 100, {}}}}};
  release.allocated = true;
  step(release);
  settle();
  EXPECT_EQ("", mirror.compare(&brain));
}


// Only unused roles cause a session to be replaced.
TEST_F(RolesTest, NoSessionIsLeftForRolesThatAreInUse)
{
  connect();
  const int before = starts;
  for (int i = 0; i < 30; ++i) {
    AddFramework event;
    event.framework = "of many" + std::to_string(i);
    event.info.set_principal(event.framework);
    for (int k = 0; k < 1000; ++k) {
      event.roles.insert("role" + std::to_string(i) + "-" + std::to_string(k));
    }
    step(event);
    interval();
  }

  for (int i = 0; i < 200; ++i) {
    interval();
  }
  EXPECT_EQ(before, starts);
}

} // namespace {
} // namespace brain {
} // namespace allocator {
