#include "brain/user_input/user_input.hpp"

#include <string>

#include <gtest/gtest.h>

#include "brain/brain.hpp"
#include "brain/user_input/text.hpp"

// Tests input of extreme length or depth, empty input, and unusual input.

using std::string;

namespace allocator {
namespace brain {
namespace {

string path(size_t parts, const string& name = "a")
{
  string result = name;
  for (size_t i = 1; i < parts; ++i) {
    result += "/" + name;
  }
  return result;
}


// The reason why a sidecar would refuse these quantities, or an empty string.
string refused(const wire::Quantities& quantities)
{
  std::set<string> names;
  for (const string& name : quantities.name()) {
    if (name.empty() || !isText(name) || !names.insert(name).second) {
      return "a name is empty, no text or there twice";
    }
  }
  return quantities.name_size() != quantities.amount_size() ? "columns" : "";
}


class WordsTest : public ::testing::Test
{
protected:
  WordsTest()
  {
    step(Initialize());
    step(Recover());
    step(Welcomed());
    settle();
  }

  template <typename Event>
  void step(const Event& event)
  {
    brain.step(event, nowMs);
    const Ready ready = brain.ready();
    soon = ready.soon;
    for (const Log& log : ready.logs) {
      lines += log.level == Log::Level::WARNING ? 1 : 0;
    }
    for (const Message& message : ready.messages) {
      isLeft = isLeft || message.kind == Message::Kind::STOP;
      if (message.kind == Message::Kind::EVENT) {
        note(message.event);
      }
      for (const wire::SnapshotChunk& chunk : message.chunks) {
        largest = std::max(largest, chunk.ByteSizeLong());
        for (const wire::Framework& framework : chunk.frameworks()) {
          reported = framework;
        }
        for (const wire::Role& role : chunk.roles()) {
          note(role);
        }
      }
    }
  }

  void note(const wire::Event& event)
  {
    largest = std::max(largest, event.ByteSizeLong());
    rows += event.exclusions().framework_size();
    string bytes;
    EXPECT_TRUE(event.SerializeToString(&bytes));
    if (event.has_add_framework()) {
      reported = event.add_framework();
    }
    if (event.has_update_framework()) {
      reported = event.update_framework();
    }
    if (event.has_add_agent()) {
      agent = event.add_agent();
    }
    if (event.has_request()) {
      request = event.request();
      requests.push_back(request);
    }
    silenced += event.suppress().roles_size();
    revived += event.revive().roles_size();
    for (const wire::Role& role : event.define().roles()) {
      note(role);
    }
  }

  // Checks that a sidecar accepts the role: each path once, after its parent.
  void note(const wire::Role& role)
  {
    const size_t slash = role.path().rfind('/');
    EXPECT_TRUE(Roles::isPath(role.path()) && isText(role.path()));
    EXPECT_TRUE(
        slash == string::npos || paths.count(role.path().substr(0, slash)) > 0)
        << role.path();
    EXPECT_TRUE(paths.insert(role.path()).second) << role.path();
    deepest = std::max<size_t>(
        deepest, 1 + std::count(role.path().begin(), role.path().end(), '/'));
  }

  void settle()
  {
    while (soon) {
      step(Wake());
    }
  }

  // Advances one allocation interval.
  void interval()
  {
    nowMs += 1000;
    step(Wake());
  }

  AddFramework framework(const string& id = "one")
  {
    AddFramework event;
    event.framework = id;
    event.roles = {"eng"};
    event.info.set_name(id);
    event.info.add_capabilities(wire::FRAMEWORK_CAPABILITY_MULTI_ROLE);
    return event;
  }

  const Framework& known(const string& id = "one")
  {
    const Cluster& cluster = brain.cluster();
    return *cluster.frameworks.find(cluster.frameworkHandles.find(id));
  }

  Brain brain;
  int64_t nowMs = 0;
  int silenced = 0; // Suppressed roles, as reported.
  int revived = 0;
  bool soon = false;
  bool isLeft = false; // A session was replaced.
  int lines = 0;
  int rows = 0; // Of exclusions.
  size_t largest = 0;
  size_t deepest = 0;
  std::set<string> paths;
  wire::Framework reported;
  wire::Agent agent;
  wire::ResourceRequest request;
  std::vector<wire::ResourceRequest> requests; // All of them, in order.
};


// A minimum of offers for a role that the framework does not have adds no role.
TEST_F(WordsTest, AFilterOfNoRoleOfTheFrameworkBindsNone)
{
  AddFramework event = framework();
  event.minimum = {
      {path(100000), {{{"cpus", 1}}}},
      {"", {{{"cpus", 1}}}},
      {"eng//ads", {{{"cpus", 1}}}},
      {"eng", {{{"cpus", 1000}}}}};
  step(event);

  EXPECT_EQ(1u, brain.cluster().roles.count());
  ASSERT_EQ(1, reported.minimum_size());
  EXPECT_EQ(1000, reported.minimum(0).any_of(0).amount(0));
  ASSERT_EQ(1, reported.set_aside_size());
  EXPECT_EQ("offer_filters", reported.set_aside(0).field());
  EXPECT_EQ(wire::SET_ASIDE_REASON_UNKNOWN, reported.set_aside(0).reason());
  EXPECT_EQ(3u, brain.stats().setAside);
  EXPECT_EQ(1, lines);
}


// Alternatives with invalid names are ignored.
TEST_F(WordsTest, AnAlternativeWithoutANameIsAsIfItHadNotBeenGiven)
{
  AddFramework event = framework();
  event.roles = {"eng", "ops", "free"};
  event.minimum = {
      {"eng", {{{"", 1}}, {{"cpus", 1}}}},
      {"ops", {{{"a\xFF", 1}, {"cpus", 2}}}},
      {"free", {}}};
  step(event);

  ASSERT_EQ(2, reported.minimum_size());
  for (const wire::MinimumResources& minimum : reported.minimum()) {
    for (const wire::Quantities& each : minimum.any_of()) {
      EXPECT_EQ("", refused(each));
    }
  }

  const Roles& roles = brain.cluster().roles;
  EXPECT_EQ(1u, known().minimum.at(roles.find("eng")).size());
  EXPECT_TRUE(known().minimum.at(roles.find("free")).empty());
  EXPECT_EQ(0u, known().minimum.count(roles.find("ops")));
}


TEST_F(WordsTest, MinimumsAreBounded)
{
  AddFramework event = framework();
  event.roles.clear();
  for (int role = 0; role < 300; ++role) {
    const string name = "role" + std::to_string(role);
    event.roles.insert(name);
    std::vector<Quantities> anyOf;
    for (int i = 0; i < 100; ++i) {
      anyOf.push_back(Quantities(16, {string(200, 'n'), 1}));
      for (int k = 0; k < 16; ++k) {
        anyOf.back()[k].first += std::to_string(k);
      }
    }
    event.minimum.emplace_back(name, anyOf);
  }
  step(event);

  size_t names = 0;
  for (const wire::MinimumResources& minimum : reported.minimum()) {
    EXPECT_GE(ALTERNATIVES_MAX, size_t(minimum.any_of_size()));
    for (const wire::Quantities& each : minimum.any_of()) {
      names += each.name_size();
    }
  }
  EXPECT_GE(MINIMUM_NAMES_MAX, names);
  EXPECT_LT(0u, names);
}


// A role that is too deep keeps its path, and competes at level 64.
TEST_F(WordsTest, ADeepRoleIsOfferedInAndCompetesAtTheBound)
{
  const string deep = path(1000);
  AddFramework event = framework();
  event.roles = {deep, path(63)};
  step(event);

  const Roles& roles = brain.cluster().roles;
  EXPECT_EQ(64u, roles.count());
  EXPECT_EQ(64u, deepest);
  EXPECT_EQ(deep, roles.path(roles.find(deep)));
  EXPECT_EQ(roles.find(path(63)), roles.parent(roles.find(deep)));
  EXPECT_EQ(2, reported.roles_size());
  EXPECT_EQ(wire::SET_ASIDE_REASON_TOO_DEEP, reported.set_aside(0).reason());

  // It counts as a descendant of its ancestors, wherever they are in the tree.
  const uint32_t role = roles.find(deep);
  for (size_t parts : {1, 63, 64, 999}) {
    step(DefineResourceClass{uint32_t(parts), [&]() {
                               Traits traits;
                               traits.name = "cpus";
                               traits.depth = 1;
                               traits.reservedRole = path(parts);
                               return traits;
                             }()});
  }
  EXPECT_TRUE(roles.isWithin(role, "a"));
  EXPECT_TRUE(roles.isWithin(role, path(63)));
}


// A role in use may be as long as a message allows.
TEST_F(WordsTest, ARoleOfAnyDepthCostsWhatItsPathDoes)
{
  const string deep = path(200000);
  Roles roles;
  const uint32_t role = roles.number(deep);
  EXPECT_EQ(64u, roles.count());
  EXPECT_EQ(deep, roles.path(role));
  EXPECT_GT(300u, roles.reportedPath(role).size());

  // Takes an ancestor that is itself below the last level of the tree.
  const uint32_t above = roles.number(path(150000));
  EXPECT_EQ(roles.parent(role), roles.parent(above));
  EXPECT_TRUE(roles.isWithin(role, path(150000)));
  EXPECT_FALSE(roles.isWithin(above, deep));
  EXPECT_NE(roles.reportedPath(role), roles.reportedPath(above));

  AddFramework event = framework();
  event.roles = {deep, "eng"};
  step(event);
  EXPECT_EQ(1u, known().roles.size());
  EXPECT_EQ(wire::SET_ASIDE_REASON_TOO_LONG, reported.set_aside(0).reason());
}


// Roles that cannot be reported by their path, and those below them, get
// substitute names.
TEST_F(WordsTest, OddRolesAreToldByNamesOfTheirOwn)
{
  AddFramework event = framework();
  event.roles = {
      "a\xFF",
      "a\xFF/below",
      "a\xFE/below",
      toText("a\xFF"),
      path(70),
      path(71),
      path(70) + "/b"};
  step(event);
  EXPECT_EQ(7, reported.roles_size());
  EXPECT_EQ(64u, deepest);
}


TEST_F(WordsTest, RolesOfAFrameworkAreBounded)
{
  AddFramework event = framework();
  event.roles.clear();
  for (int i = 0; i < 5000; ++i) {
    event.roles.insert(path(40, "r" + std::to_string(i)));
  }
  event.suppressed = event.roles;
  step(event);

  EXPECT_EQ(ROLES_OF_FRAMEWORK_MAX, known().roles.size());
  EXPECT_EQ(known().roles, known().suppressed);
  EXPECT_GE(
      LEVELS_OF_FRAMEWORK_MAX + 2 * ROLES_OF_FRAMEWORK_MAX,
      brain.cluster().roles.count());

  for (uint32_t role : known().roles) {
    EXPECT_TRUE(brain.cluster().roles.nested(role));
  }
}


// A principal's frameworks together leave room for those of others.
TEST_F(WordsTest, NoPrincipalTakesTheRoomForRolesOfAllOthers)
{
  for (int i = 0; i < 60; ++i) {
    // At most 16,000 new ones fit into an interval.
    if (i % 10 == 0) {
      interval();
    }
    AddFramework event = framework("greedy" + std::to_string(i));
    event.info.set_principal("greedy");
    event.roles.clear();
    for (int k = 0; k < 1000; ++k) {
      event.roles.insert("r" + std::to_string(1000 * i + k));
    }
    step(event);
  }
  interval();
  EXPECT_EQ(LEVELS_OF_PRINCIPAL_MAX, brain.cluster().roles.count());
  ASSERT_EQ(1, reported.set_aside_size());
  EXPECT_EQ("roles", reported.set_aside(0).field());
  EXPECT_EQ(wire::SET_ASIDE_REASON_TOO_MANY, reported.set_aside(0).reason());

  AddFramework honest = framework("honest");
  honest.info.set_principal("honest");
  for (int k = 0; k < 500; ++k) {
    honest.roles.insert("h" + std::to_string(k));
  }
  step(honest);
  EXPECT_EQ(501u, known("honest").roles.size());

  // Room that it frees is available to its other frameworks.
  EXPECT_EQ(0u, known("greedy30").roles.size());
  for (int i = 0; i < 10; ++i) {
    step(RemoveFramework{"greedy" + std::to_string(i)});
  }
  paths.clear();
  step(Welcomed());
  settle();
  EXPECT_EQ(1000u, known("greedy30").roles.size());
}


// A role that exists already takes no new level, but the pair of framework and
// role counts.
TEST_F(WordsTest, PairsOfAUserAreBounded)
{
  Footprint others;
  others.levels = LEVELS_OF_PRINCIPAL_MAX;
  others.pairs = PAIRS_OF_PRINCIPAL_MAX - 1;
  AddFramework event = framework();
  event.roles = {"eng", "new", "ops"};
  Roles roles;
  roles.number("eng");
  roles.number("ops");
  Aside aside;
  const FrameworkInput input =
      takeFramework(event, roles, others, Newcomers{{}, true}, &aside);
  EXPECT_EQ(1u, input.roles.size());
  EXPECT_EQ(1u, input.roles.count("eng"));
  EXPECT_TRUE(input.crowded);
  EXPECT_EQ(2u, aside.count());

  wire::Framework one;
  one.set_user("root");
  EXPECT_EQ("user root", payerOf(one));
  one.set_principal("ops");
  EXPECT_EQ("principal ops", payerOf(one));
}


// Frameworks that take thousands of names do not lock others out for long.
TEST_F(WordsTest, WhoFindsNoRoomForARoleGetsItLater)
{
  for (int i = 0; i < 60; ++i) {
    // At most 16,000 new ones fit into an interval.
    if (i % 10 == 0) {
      interval();
    }
    AddFramework event = framework("greedy" + std::to_string(i));
    event.roles.clear();
    for (int role = 0; role < 1000; ++role) {
      event.roles.insert(std::to_string(i) + "-" + std::to_string(role));
    }
    step(event);
  }
  interval();
  step(framework());
  EXPECT_GE(ROLES_MAX, brain.cluster().roles.count());
  EXPECT_TRUE(known().roles.empty());

  for (int i = 0; i < 60; ++i) {
    step(RemoveFramework{"greedy" + std::to_string(i)});
  }
  nowMs += 1000;
  step(Wake());
  paths.clear();
  step(Welcomed());
  EXPECT_EQ(1u, known().roles.size());
  EXPECT_GE(2u, brain.cluster().roles.count());
}


// A session is replaced at most once a minute, however fast roles change.
TEST_F(WordsTest, NoSessionIsLeftOverAndOverForRoles)
{
  int left = 0;
  for (int i = 0; i < 100; ++i) {
    AddFramework event = framework("churn");
    event.roles.clear();
    for (int role = 0; role < 1000; ++role) {
      event.roles.insert(std::to_string(i) + "-" + std::to_string(role));
    }
    step(event);
    step(RemoveFramework{"churn"});
    nowMs += 1000;
    step(Wake());
    if (isLeft) {
      ++left;
      isLeft = false;
      paths.clear();
      step(Welcomed());
      settle();
    }
  }
  EXPECT_EQ(2, left);
  EXPECT_GE(ROLES_MAX, brain.cluster().roles.count());
}


TEST_F(WordsTest, LabelsAreTakenWholeOrNotAtAll)
{
  AddFramework event = framework();
  auto& labels = *event.info.mutable_labels();
  labels["good"] = "cpus:1";
  labels["long"] = string(70000, 'x');
  labels["odd"] = "a\xFF";
  labels["a\xFF"] = "odd";
  labels["allocator.demand"] = "cpus:1";
  labels["zone"] = "last in order";
  for (int i = 0; i < 10000; ++i) {
    labels["label" + std::to_string(i)] = string(100, 'x');
  }
  step(event);

  EXPECT_EQ(0u, reported.labels().count("long"));
  EXPECT_EQ(0u, reported.labels().count("odd"));
  EXPECT_EQ(1u, reported.labels().count("allocator.demand"));
  EXPECT_EQ(1u, reported.labels().count("good"));
  EXPECT_EQ(0u, reported.labels().count("zone"));
  EXPECT_EQ(LABELS_MAX, reported.labels().size());
  EXPECT_GT(LABEL_BYTES_MAX + 100000, reported.ByteSizeLong());
  EXPECT_EQ(3, reported.set_aside_size());
}


TEST_F(WordsTest, ARequestIsBounded)
{
  step(framework());
  Request event;
  event.framework = "one";
  for (int i = 0; i < 1000; ++i) {
    wire::Quantities* each = event.request.add_requests();
    for (const char* name : {"", "cpus", "cpus", "a\xFF"}) {
      each->add_name(name);
      each->add_amount(INT64_MAX);
    }
  }
  for (int i = 0; i < 1000; ++i) {
    event.request.mutable_requests(1)->add_name("n" + std::to_string(i));
    event.request.mutable_requests(1)->add_amount(1);
  }
  step(event);

  EXPECT_EQ(REQUESTS_MAX, size_t(request.requests_size()));
  for (const wire::Quantities& each : request.requests()) {
    EXPECT_EQ("", refused(each));
    ASSERT_EQ(1, each.name_size());
    EXPECT_EQ(session::AMOUNT_MAX + 0, each.amount(0));
  }
  EXPECT_EQ(2, request.set_aside_size());
}


TEST_F(WordsTest, ARequestOfManyShortNamesIsBounded)
{
  step(framework());
  Request event;
  event.framework = "one";
  for (size_t i = 0; i < REQUESTS_MAX; ++i) {
    wire::Quantities* each = event.request.add_requests();
    for (size_t j = 0; j < REQUEST_RESOURCES_MAX; ++j) {
      each->add_name(std::to_string(j));
      each->add_amount(1000);
    }
  }
  step(event);

  size_t amounts = 0;
  for (const wire::Quantities& each : request.requests()) {
    amounts += each.amount_size();
  }
  EXPECT_LT(0u, amounts);
  EXPECT_GE(REQUEST_BYTES_MAX, amounts * sizeof(int64_t));
  EXPECT_EQ(1, request.set_aside_size());
}


// A row is left out if its agent id is not valid.
TEST_F(WordsTest, ARequestKeepsTheAgentsOfItsRows)
{
  step(framework());
  Request event;
  event.framework = "one";
  for (const string& agent :
       {string("S1"), string("a\xFF"), string(), string(5000, 'x')}) {
    wire::Quantities* each = event.request.add_requests();
    each->add_name("cpus");
    each->add_amount(event.request.requests_size());
    event.request.add_agent_id(agent);
  }
  step(event);

  ASSERT_EQ(2, request.requests_size());
  EXPECT_EQ(3, request.requests(1).amount(0));
  ASSERT_EQ(2, request.agent_id_size());
  EXPECT_EQ("S1", request.agent_id(0));
  EXPECT_EQ("", request.agent_id(1));
  EXPECT_EQ(1, request.set_aside_size());

  event.request.clear_agent_id();
  step(event);
  EXPECT_EQ(4, request.requests_size());
  EXPECT_EQ(0, request.agent_id_size());
}


// A snapshot contains no requests, so they follow it.
TEST_F(WordsTest, AnotherSessionHearsOfRequestsAfterItsSnapshot)
{
  for (const char* id : {"one", "two", "three"}) {
    step(framework(id));
    wire::ResourceRequest each;
    each.add_requests()->add_name("cpus");
    each.mutable_requests(0)->add_amount(1000);
    step(Request{id, each});
  }
  step(RemoveFramework{"two"});
  step(Request{"three", wire::ResourceRequest()});
  requests.clear();
  paths.clear();
  step(Ended{true, "gone", 0});
  step(Welcomed());
  settle();

  ASSERT_EQ(1u, requests.size());
  EXPECT_EQ(
      brain.cluster().frameworkHandles.find("one"), requests[0].framework());
  EXPECT_EQ(1000, requests[0].requests(0).amount(0));
}


TEST_F(WordsTest, AttributesAreBounded)
{
  AddAgent event;
  event.agent = "agent";
  event.info.set_hostname("a\xFF");
  event.info.add_attributes()->set_value("no name");
  for (int i = 0; i < 100000; ++i) {
    wire::Attribute* each = event.info.add_attributes();
    each->set_name("n" + std::to_string(i));
    each->set_value(string(i % 100, 'v'));
    each->set_type(wire::VALUE_TYPE_TEXT);
    event.info.add_capabilities(wire::AGENT_CAPABILITY_MULTI_ROLE);
  }
  step(event);

  EXPECT_GE(ATTRIBUTES_MAX, size_t(agent.attributes_size()));
  EXPECT_LT(100, agent.attributes_size());
  EXPECT_EQ(1, agent.capabilities_size());
  EXPECT_EQ(3, agent.set_aside_size());
}


// Reports of ignored input are UTF-8, of bounded length, and without line
// breaks.
TEST_F(WordsTest, WhatIsToldFitsTheRows)
{
  AddFramework event = framework();
  event.info.set_user(string(100000, '\xFF'));
  event.roles = {string(10000, '\n') + "//", "eng"};
  event.minimum = {{string(10000, '\n'), {}}};
  step(event);

  EXPECT_LT(0, reported.set_aside_size());
  for (const wire::SetAside& row : reported.set_aside()) {
    EXPECT_GE(ASIDE_TEXT_BYTES_MAX, row.text().size());
    EXPECT_TRUE(isText(row.text()));
    EXPECT_EQ(string::npos, row.text().find('\n'));
  }
}


// The log has one line per change, and a limited number of lines per interval.
TEST_F(WordsTest, TheLogTellsLittleOfThem)
{
  AddFramework event = framework();
  event.suppressed = {"other"};
  step(event);
  EXPECT_EQ(1, lines);

  UpdateFramework update;
  static_cast<AddFramework&>(update) = event;
  step(update);
  EXPECT_EQ(1, lines);
  EXPECT_EQ(1u, brain.stats().setAside);

  for (int i = 0; i < 1000; ++i) {
    update.suppressed = {"other" + std::to_string(i)};
    step(update);
  }
  EXPECT_EQ(17, lines);
  EXPECT_EQ(1001u, brain.stats().setAside);

  nowMs += 1000;
  step(Wake());
  step(event);
  update.suppressed = {"another"};
  step(update);
  EXPECT_LT(17, lines);
}


// Any input fits the messages of a sidecar that reads only 64 KiB.
TEST_F(WordsTest, WhateverIsSaidASnapshotCanBeTaken)
{
  AddFramework event = framework();
  for (int i = 0; i < 3000; ++i) {
    (*event.info.mutable_labels())["label" + std::to_string(i)] =
        string(60, 'x');
    const string role = "role" + std::to_string(i);
    event.roles.insert(role);
    event.minimum.emplace_back(
        role, std::vector<Quantities>{{{string(250, 'n'), 1}}});
  }
  event.suppressed = event.roles;
  event.info.set_principal(string(4000, 'p'));
  step(event);

  AddAgent more;
  more.agent = "agent";
  for (int i = 0; i < 1000; ++i) {
    more.info.add_attributes()->set_name(string(60, 'n'));
  }
  step(more);

  largest = 0;
  paths.clear();
  Welcomed welcomed;
  welcomed.chunkBytesMax = 32 << 10;
  step(welcomed);
  settle();
  UpdateFramework update;
  static_cast<AddFramework&>(update) = event;
  step(update);
  UpdateAgent again;
  again.agent = "agent";
  again.info = more.info;
  again.newInfo = true;
  step(again);
  EXPECT_GT(size_t(64 << 10) - 2048, largest);
  EXPECT_EQ(1024, reported.roles_size());
}


// An update makes the sidecar recompute each role of the framework.
class LateTest : public WordsTest
{
protected:
  LateTest()
  {
    AddFramework event = framework();
    event.roles.clear();
    for (int i = 0; i < 100; ++i) {
      event.roles.insert("role-" + std::to_string(i));
    }
    step(event);
    static_cast<AddFramework&>(update) = event;

    // Use up the interval's budget.
    for (size_t i = 2; i <= WORKED_OUT_MAX / event.roles.size(); ++i) {
      EXPECT_TRUE(say(std::to_string(i)));
    }
  }

  // Returns whether the sidecar received the update.
  bool say(const string& name)
  {
    update.info.set_name(name);
    step(update);
    return reported.name() == name;
  }

  UpdateFramework update;
};


TEST_F(LateTest, UpdatesWithoutEndAreToldABoundedNumberOfTimes)
{
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(say("more-" + std::to_string(i)));
  }

  // Suppressed roles affect correctness: they are sent at once, but only once.
  for (int i = 0; i < 10; ++i) {
    update.suppressed = {"role-1"};
    EXPECT_FALSE(say("suppressed"));
    step(Suppress{"one", {"role-3"}});
    EXPECT_EQ(2, silenced);
    step(Revive{"one", {"role-1", "role-3"}});
    EXPECT_EQ(0, revived);
  }
  update.roles.erase("role-2");
  EXPECT_FALSE(say("fewer"));
  EXPECT_EQ(3, silenced);

  // Roles that the framework joins wait, even if it had them before.
  update.roles.insert("role-2");
  update.roles.insert("new");
  EXPECT_FALSE(say("last"));
  EXPECT_EQ(99u, known().roles.size());

  // The next interval sends the current state.
  interval();
  EXPECT_EQ("last", reported.name());
  EXPECT_EQ(101u, known().roles.size());
  EXPECT_EQ(101, reported.roles_size());
  EXPECT_EQ(1, reported.suppressed_roles_size());
  EXPECT_EQ(0, reported.set_aside_size());
  EXPECT_TRUE(say("anew"));
  step(Revive{"one", {"role-1"}});
  EXPECT_EQ(1, revived);
}


// A sidecar ends a session that names a role it does not know.
TEST_F(LateTest, NoRoleIsTakenThatCannotBeToldAtOnce)
{
  for (int i = 0; i < 200; ++i) {
    update.roles.insert("new-" + std::to_string(i));
  }
  update.suppressed = {"new-0"};
  EXPECT_FALSE(say("more"));
  EXPECT_EQ(100u, known().roles.size());
  step(Suppress{"one", {"new-0", "new-1"}});
  step(Suppress{"one", {}});
  EXPECT_EQ(100, silenced);
  step(Revive{"one", {"new-2", "role-2"}});

  interval();
  EXPECT_EQ(300, reported.roles_size());
  EXPECT_EQ(298, reported.suppressed_roles_size());
}


TEST_F(LateTest, CallsForOneRoleAreToldHoweverManyThereAre)
{
  for (size_t i = 0; i < 2 * WORKED_OUT_MAX; ++i) {
    step(Suppress{"one", {"role-1"}});
    step(Revive{"one", {"role-1"}});
  }
  EXPECT_EQ(2 * WORKED_OUT_MAX, size_t(silenced));
  EXPECT_EQ(2 * WORKED_OUT_MAX, size_t(revived));

  // Calls for many roles are sent until the budget is used up.
  for (size_t i = 0; i < 1000; ++i) {
    step(Suppress{"one", {}});
    step(Revive{"one", {}});
  }
  EXPECT_GT(2 * WORKED_OUT_MAX + 1000, size_t(silenced));
}


TEST_F(LateTest, OtherFrameworksOfThePrincipalWaitAndThoseOfOthersDoNot)
{
  // Use up the budget of the principal.
  say("more");
  step(framework("two"));
  EXPECT_EQ(0, reported.roles_size());
  AddFramework other = framework("other");
  other.info.set_principal("other");
  step(other);
  EXPECT_EQ(1, reported.roles_size());

  interval();
  const Cluster& cluster = brain.cluster();
  const uint32_t two = cluster.frameworkHandles.find("two");
  EXPECT_EQ(1u, cluster.frameworks.find(two)->roles.size());
}


TEST_F(LateTest, TheLastRequestIsToldLater)
{
  say("more");
  for (int i = 1; i < 10; ++i) {
    wire::ResourceRequest each;
    wire::Quantities* needs = each.add_requests();
    needs->add_name("cpus");
    needs->add_amount(i);
    step(Request{"one", each});
    EXPECT_EQ(0, request.requests_size());
  }
  interval();
  ASSERT_EQ(1, request.requests_size());
  EXPECT_EQ(9, request.requests(0).amount(0));
}


// Reading a message costs the sidecar time, whatever its subject.
TEST_F(WordsTest, WhatIsLongOrAboutNoRoleIsToldABoundedNumberOfTimes)
{
  UpdateFramework wordy;
  static_cast<AddFramework&>(wordy) = framework();
  for (int i = 0; i < 64; ++i) {
    wordy.info.mutable_labels()->insert(
        {"label" + std::to_string(i), string(2000, 'x')});
  }
  step(framework());
  int heard = 0;
  for (int i = 0; i < 1000; ++i) {
    wordy.info.set_name(std::to_string(i));
    step(wordy);
    heard += reported.name() == wordy.info.name() ? 1 : 0;
  }
  EXPECT_LT(10, heard);
  EXPECT_GT(100, heard);

  // A new framework is reported at once, its labels later.
  AddFramework second = framework("two");
  second.info = wordy.info;
  step(second);
  EXPECT_EQ("two", reported.framework_id());
  EXPECT_EQ(0, reported.labels_size());
  paths.clear();
  interval();
  EXPECT_EQ(64, reported.labels_size());

  AddFramework none = framework("none");
  none.roles.clear();
  none.info.set_principal("another");
  step(none);
  heard = 0;
  for (size_t i = 0; i < 2 * WORKED_OUT_MAX; ++i) {
    request.Clear();
    wire::ResourceRequest each;
    each.add_requests()->add_name("cpus");
    each.mutable_requests(0)->add_amount(1);
    step(Request{"none", each});
    heard += request.requests_size();
  }
  EXPECT_GE(WORKED_OUT_MAX, size_t(heard));
}


// Pending updates of a removed framework are dropped.
TEST_F(LateTest, OfWhoeverGoesNothingIsToldLater)
{
  EXPECT_FALSE(say("before it goes"));
  step(Request{"one", wire::ResourceRequest()});
  step(RemoveFramework{"one"});
  reported.Clear();
  interval();
  EXPECT_EQ("", reported.name());
}


// A new session gets the current state, so nothing remains pending.
TEST_F(LateTest, AnotherSessionHearsOfAllAtOnce)
{
  EXPECT_FALSE(say("last"));
  update.suppressed = {"role-1"};
  say("last");
  paths.clear();
  step(Ended{true, "gone", 0});
  step(Welcomed());
  settle();
  EXPECT_EQ("last", reported.name());
  silenced = 0;
  step(Revive{"one", {"role-1"}});
  step(Suppress{"one", {"role-1"}});
  EXPECT_EQ(1, revived);
  EXPECT_EQ(1, silenced);
}


// Roles beyond the limit on evaluated roles exclude no agent.
TEST_F(WordsTest, ConstraintsOfTooManyRolesExcludeNobody)
{
  EXPECT_EQ(26u, constrainedRoles(10000));
  EXPECT_EQ(1u, constrainedRoles(10000000));
  EXPECT_LT(ROLES_OF_FRAMEWORK_MAX, constrainedRoles(100));

  AddFramework event = framework();
  event.roles = {"eng", "ops"};
  step(event);
  AddAgent agent;
  agent.agent = "agent";
  step(agent);

  Exclude exclude;
  exclude.rows = {{"one", "eng", "agent", true}, {"one", "ops", "agent", true}};
  step(exclude);
  EXPECT_EQ(2, rows);

  step(IgnoreConstraints{"one", {"ops"}});
  EXPECT_EQ(3, rows);
  const Roles& roles = brain.cluster().roles;
  EXPECT_TRUE(known().excluded.at(roles.find("eng"))[1]);
  EXPECT_FALSE(known().excluded.at(roles.find("ops"))[1]);
  ASSERT_EQ(1, reported.set_aside_size());
  EXPECT_EQ("offer_constraints", reported.set_aside(0).field());
}


// A decision does not count as bad if its framework's number has been assigned
// to another framework since.
TEST_F(WordsTest, ADecisionForTheLastBearerOfANumberIsNotBad)
{
  step(Connected{"sidecar", "1"});
  step(framework());
  AddAgent first;
  first.agent = "first";
  step(first);
  const uint64_t known = 1000;
  step(RemoveFramework{"one"});

  Traits cpus;
  cpus.name = "cpus";
  brain.step(DefineResourceClass{0, cpus}, nowMs);
  AddAgent second;
  second.agent = "second";
  second.total = {Part{0, 4000, {}}};
  second.used = {Use{"two", "eng", {Part{0, 1000, {}}}}};
  step(second);

  EXPECT_EQ(1u, brain.cluster().frameworkHandles.find("two"));
  EXPECT_LT(1u, brain.cluster().frameworkHandles.revision(1));
  EXPECT_TRUE(brain.cluster().frameworkHandles.changedSince(1, 1));
  EXPECT_FALSE(brain.cluster().frameworkHandles.changedSince(1, known));
}

} // namespace {
} // namespace brain {
} // namespace allocator {
