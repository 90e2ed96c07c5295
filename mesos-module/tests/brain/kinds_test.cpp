#include "brain/books/kinds.hpp"

#include <string>

#include <gtest/gtest.h>

#include "brain/brain.hpp"

using std::string;

namespace allocator {
namespace brain {
namespace {

Traits traitsOf(const string& name, const string& role = "")
{
  Traits traits;
  traits.name = name;
  traits.reservedRole = role;
  traits.depth = role.empty() ? 0 : 1;
  return traits;
}


// Resources reported by many reporters.
class KindsTest : public ::testing::Test
{
protected:
  // Whether the sidecar distinguishes a resource with these traits.
  bool isApart(const Traits& traits, Reporter reporter = 0)
  {
    classes.define(next, traits, 1, traits.reservedRole);
    classes.setReporter({Part{next, 1000, {}}}, reporter);
    const uint32_t kind = kinds.bind(next, classes);
    EXPECT_NE(Kinds::NONE, kind);
    return !kinds.isOverflow(next++);
  }

  // How many of `count` resources with different names or roles are
  // distinguished.
  size_t apart(size_t count, bool reserved, Reporter reporter)
  {
    size_t result = 0;
    for (size_t i = 0; i < count; ++i) {
      const string name = "x" + std::to_string(next);
      result +=
          isApart(reserved ? traitsOf("cpus", name) : traitsOf(name), reporter);
    }
    return result;
  }

  ResourceClasses classes;
  Kinds kinds{512};
  uint32_t next = 0;
};


TEST_F(KindsTest, NobodyTakesTheRoomOfAllOthers)
{
  // A name also takes room for its overflow kind.
  EXPECT_EQ(22u, apart(2000, false, 1));
  EXPECT_EQ(107u, apart(2000, true, 2));

  // Later reporters still find room.
  EXPECT_TRUE(isApart(traitsOf("fpga"), 3));
  EXPECT_TRUE(isApart(traitsOf("cpus", "eng"), 3));
  for (Reporter reporter = 4; reporter < 9; ++reporter) {
    EXPECT_LT(0u, apart(100, false, reporter));
    EXPECT_LT(0u, apart(100, true, reporter));
  }
  EXPECT_TRUE(isApart(traitsOf("tpu"), 9));
  EXPECT_TRUE(isApart(traitsOf("cpus", "ops"), 9));

  // Mesos's own names are always distinguished.
  for (const char* name : {"cpus", "mem", "disk", "gpus"}) {
    EXPECT_TRUE(isApart(traitsOf(name), 1));
  }
  EXPECT_GE(512u, kinds.size());
  EXPECT_TRUE(kinds.isOver(1));
  EXPECT_TRUE(kinds.isOver(2));
  EXPECT_FALSE(kinds.isOver(3));
  EXPECT_EQ(1u, kinds.takeNewlyOver().front());
}


// A principal is one reporter, even if several frameworks or agents (after a
// failover) report its reservations. Other principals are unaffected.
TEST_F(KindsTest, APrincipalIsOneReporter)
{
  size_t all = 0;
  for (Reporter reporter = 1; reporter <= 1000; ++reporter) {
    Traits traits = traitsOf("cpus", "role" + std::to_string(reporter));
    traits.principal = "greedy";
    all += isApart(traits, reporter) ? 1 : 0;
  }
  EXPECT_EQ(107u, all);

  Traits honest = traitsOf("cpus", "eng");
  honest.principal = "honest";
  EXPECT_TRUE(isApart(honest, 1));
}


// Operators' reservations count against the top-level role.
TEST_F(KindsTest, WhatNobodyTellsIsCountedByTheRole)
{
  size_t all = 0;
  for (int i = 0; i < 1000; ++i) {
    all += isApart(traitsOf("cpus", "eng/" + std::to_string(i))) ? 1 : 0;
  }
  EXPECT_EQ(107u, all);
  EXPECT_TRUE(isApart(traitsOf("cpus", "ops/a")));
}


// A kind that is beyond one reporter's share may be within another's.
TEST_F(KindsTest, WhatWasBeyondASharesEndIsKeptApartForWhoHasRoom)
{
  apart(2000, true, 1);
  EXPECT_FALSE(isApart(traitsOf("mem", "eng"), 1));
  EXPECT_TRUE(isApart(traitsOf("mem", "eng"), 2));
}


// New names beyond a reporter's share have one overflow kind.
TEST_F(KindsTest, NamesBeyondTheirShareAreOneRest)
{
  const size_t all = apart(2000, false, 1);
  EXPECT_EQ(all + 1, kinds.size());
  EXPECT_EQ(Kinds::OTHERS, kinds.name(kinds.find(next - 1)));
  EXPECT_EQ(kinds.find(next - 1), kinds.find(next - 2));

  // Resources of this kind are only given as a whole, so their amounts are
  // added up.
  const Amounts both =
      kinds.toAmounts({Part{next - 2, 1, {}}, Part{next - 1, 2, {}}}, classes);
  EXPECT_EQ((Amounts{{kinds.find(next - 1), 3}}), both);
}


TEST_F(KindsTest, WhatNobodyHasAnyMoreIsCounted)
{
  // The unused kinds of one agent alone are not too many.
  apart(2000, false, 1);
  for (uint32_t resourceClass = 0; resourceClass < next; ++resourceClass) {
    kinds.forget(resourceClass);
  }
  EXPECT_FALSE(kinds.hasManyUnused());

  for (Reporter reporter = 2; reporter < 4; ++reporter) {
    apart(2000, false, reporter);
  }
  EXPECT_FALSE(kinds.hasManyUnused());
  for (uint32_t resourceClass = 0; resourceClass < next; ++resourceClass) {
    kinds.forget(resourceClass);
  }
  EXPECT_TRUE(kinds.hasManyUnused());
}


// Numbers of unused names are reused.
TEST(NamesTest, NumbersOfNamesThatNobodyUsesNameOthers)
{
  ResourceClasses classes;
  const uint32_t quota = classes.names.use("cpus");
  for (int round = 0; round < 1000; ++round) {
    for (uint32_t i = 0; i < 10; ++i) {
      const string name = i == 0 ? "cpus" : std::to_string(10 * round + i);
      classes.define(i, traitsOf(name), 0, "");
      EXPECT_EQ(name, classes.names.name(classes.row(i).name));
    }
    EXPECT_EQ(10u, classes.takeUnused().size());
  }
  EXPECT_EQ(quota, classes.names.use("cpus"));
  EXPECT_EQ(10u, classes.names.size());
}


// The sidecar distinguishes a limited number of kinds. Further resource classes
// belong to the overflow kind of their name, and stay there.
TEST_F(KindsTest, WhatIsBeyondTheSidecarsKindsIsTheRestOfItsName)
{
  for (size_t most : {1, 2, 7, 20}) {
    ResourceClasses classes;
    Kinds kinds(most);
    for (uint32_t i = 0; i < 200; ++i) {
      Traits traits;
      traits.name = i % 2 == 0 ? "cpus" : "mem";
      traits.depth = 1;
      traits.reservedRole = "role-" + std::to_string(i);
      classes.define(i, traits, 1, "eng");
    }

    for (int round = 0; round < 2; ++round) {
      for (uint32_t i = 0; i < 200; ++i) {
        const uint32_t before = kinds.find(i);
        const uint32_t kind = kinds.bind(i, classes);
        EXPECT_TRUE(round == 0 || before == kind);
      }
    }
    EXPECT_LE(kinds.size(), most);

    for (const wire::Kind& kind : kinds.takeNew()) {
      EXPECT_EQ(kind.rest(), kinds.whole(kind.kind()));
    }
    EXPECT_TRUE(kinds.takeNew().empty());
  }
}


// An agent that endlessly returns with new names, and the reports about it.
class ReportersTest : public ::testing::Test
{
protected:
  ReportersTest()
  {
    step(Initialize());
    step(Recover());
    step(Welcomed());
    settle();
    step(Connected{"sidecar", "1"});
  }

  template <typename Event>
  void step(const Event& event)
  {
    brain.step(event, nowMs);
    const Ready ready = brain.ready();
    soon = ready.soon;
    forgotten.insert(
        forgotten.end(), ready.forgotten.begin(), ready.forgotten.end());
    for (const Message& message : ready.messages) {
      sessions += message.kind == Message::Kind::START ? 1 : 0;
      if (message.event.has_add_agent()) {
        aside = message.event.add_agent().set_aside();
      }
      if (message.event.has_update_agent()) {
        aside = message.event.update_agent().set_aside();
      }
      if (message.event.has_update_framework()) {
        aside = message.event.update_framework().set_aside();
      }
    }
  }

  void settle()
  {
    while (soon) {
      step(Wake());
    }
  }

  // Numbers resource classes like the adapter: forgotten numbers are reused.
  Part define(const Traits& traits, int64_t amount = 1000)
  {
    uint32_t resourceClass = classes;
    if (forgotten.empty()) {
      ++classes;
    } else {
      resourceClass = forgotten.back();
      forgotten.pop_back();
    }
    brain.step(DefineResourceClass{resourceClass, traits}, nowMs);
    return Part{resourceClass, amount, {}};
  }

  Parts names(size_t count)
  {
    Parts result;
    for (size_t i = 0; i < count; ++i) {
      result.push_back(define(traitsOf("x" + std::to_string(made++))));
    }
    normalize(&result);
    return result;
  }

  bool isApart(const Part& part) const
  {
    const Kinds& kinds = brain.cluster().kinds;
    return kinds.find(part.resourceClass) != Kinds::NONE &&
        !kinds.isOverflow(part.resourceClass);
  }

  Brain brain;
  int64_t nowMs = 0;
  bool soon = false;
  int sessions = 0;
  uint32_t classes = 0;
  size_t made = 0;
  std::vector<uint32_t> forgotten;
  Aside::Rows aside;
};


TEST_F(ReportersTest, AnAgentThatMakesUpNamesIsToldOfIt)
{
  AddAgent agent;
  agent.agent = "greedy";
  agent.total = names(2000);
  step(agent);
  ASSERT_EQ(1, aside.size());
  EXPECT_EQ("resources", aside.Get(0).field());
  EXPECT_EQ(wire::SET_ASIDE_REASON_TOO_MANY, aside.Get(0).reason());
  EXPECT_NE(string::npos, aside.Get(0).text().find("1978 in all"));
  EXPECT_EQ(1u, brain.stats().setAside);

  // A later agent keeps its share, and is not reported.
  AddAgent honest;
  honest.agent = "honest";
  const Part mine = define(traitsOf("cpus", "eng"));
  const Part other = define(traitsOf("fpga"));
  honest.total = {mine, other};
  step(honest);
  EXPECT_EQ(0, aside.size());
  EXPECT_TRUE(isApart(mine));
  EXPECT_TRUE(isApart(other));
}


TEST_F(ReportersTest, AFrameworkThatReservesForAThousandRolesIsToldOfIt)
{
  AddFramework one;
  one.framework = "one";
  one.roles = {"eng"};
  step(one);
  AddAgent agent;
  agent.agent = "agent";
  const Part cpus = define(traitsOf("cpus"), 2000);
  agent.total = {cpus};
  agent.used = {Use{"one", "eng", {cpus}}};
  step(agent);

  Part part = cpus;
  for (int i = 0; i < 1000; ++i) {
    part = define(traitsOf("cpus", "role" + std::to_string(i)), 1);
    Part less = cpus;
    less.amount = 1;
    ConvertHeld event;
    event.agent = "agent";
    event.framework = "one";
    event.role = "eng";
    event.offered = {less};
    event.conversions = {Conversion{{less}, {part}}};
    step(event);
  }
  EXPECT_FALSE(isApart(part));
  ASSERT_EQ(1, aside.size());
  EXPECT_EQ("reservations", aside.Get(0).field());

  // Another framework's reservation on the same agent is distinguished.
  AddFramework two;
  two.framework = "two";
  two.roles = {"ops"};
  step(two);
  AddAgent more;
  more.agent = "more";
  more.total = {cpus};
  more.used = {Use{"two", "ops", {cpus}}};
  step(more);
  Part less = cpus;
  less.amount = 5;
  part = define(traitsOf("cpus", "ops"), 5);
  ConvertHeld event;
  event.agent = "more";
  event.framework = "two";
  event.role = "ops";
  event.offered = {less};
  event.conversions = {Conversion{{less}, {part}}};
  step(event);
  EXPECT_TRUE(isApart(part));
  EXPECT_EQ("", brain.check());
}


// Handles are freed with the session, which is replaced for that purpose at
// most once a minute. Nothing grows meanwhile.
TEST_F(ReportersTest, NamesThatNobodyHasAnyMoreGiveTheirHandlesBack)
{
  for (int i = 0; i < 400; ++i) {
    AddAgent agent;
    agent.agent = "agent" + std::to_string(i);
    agent.total = names(50);
    step(agent);
    step(RemoveAgent{agent.agent});
    nowMs += 1000;
    step(Wake());
    if (sessions > 0 && !brain.stats().following) {
      step(Welcomed());
    }
    settle();
  }
  // The first session, and at most one for each of the seven minutes.
  EXPECT_LE(5, sessions);
  EXPECT_GE(8, sessions);
  EXPECT_GE(512u, brain.cluster().kinds.size());
  EXPECT_GE(200u, brain.cluster().classes.names.size());

  // After that, an agent that stays gets kinds of its own.
  AddAgent agent;
  agent.agent = "honest";
  nowMs += 61000;
  step(Wake());
  step(Welcomed());
  settle();
  const Part other = define(traitsOf("fpga"));
  agent.total = {other};
  step(agent);
  EXPECT_TRUE(isApart(other));
}

} // namespace {
} // namespace brain {
} // namespace allocator {
