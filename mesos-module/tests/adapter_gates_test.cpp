#include "adapter/gates.hpp"

#include <random>

#include "adapter/holdings.hpp"

#include "adapter_world.hpp"

using std::string;
using std::vector;

namespace allocator {
namespace adapter {
namespace {

const FrameworkID ONE = frameworkId("one");
const AgentID AGENT = agentId("agent");


class GatesTest : public ::testing::Test
{
protected:
  void SetUp() override
  {
    state.options.minAllocatableResources = vector<mesos::ResourceQuantities>{
        quantities("cpus:0.01"), quantities("mem:32")};

    addAgent("cpus:8;mem:1024");

    FrameworkInfo info;
    info.set_user("user");
    info.set_name("name");
    info.add_roles("eng");
    info.add_capabilities()->set_type(FrameworkInfo::Capability::MULTI_ROLE);
    describeFramework(info, &state.frameworks[ONE]);
    state.frameworks[ONE].active = true;

    cpus = state.handles.kinds.intern(*parse("cpus:1").begin());
    mem = state.handles.kinds.intern(*parse("mem:1").begin());
  }

  void addAgent(const string& total)
  {
    AgentInfo info;
    info.set_hostname("host");
    vector<AgentInfo::Capability> capabilities(2);
    capabilities[0].set_type(AgentInfo::Capability::MULTI_ROLE);
    capabilities[1].set_type(AgentInfo::Capability::HIERARCHICAL_ROLE);
    describeAgent(info, capabilities, &state.agents[AGENT]);
    state.ledger.addAgent(AGENT, parse(total));
  }

  Verdict ask(const Amounts& wanted)
  {
    const QuotaBook quotas(state);
    return judge(state, Pair{ONE, "eng", AGENT}, wanted, quotas, 0);
  }

  wire::OutcomeReason reason() { return ask({{cpus, 1000}}).reason; }

  Cluster state;
  uint32_t cpus;
  uint32_t mem;
};


TEST_F(GatesTest, WhatIsFreeIsOffered)
{
  const Verdict verdict = ask({{cpus, 2000}, {mem, 64000}});
  EXPECT_EQ(wire::OUTCOME_REASON_OFFERED, verdict.reason);
  EXPECT_EQ(parse("cpus:2;mem:64"), verdict.given);
}


TEST_F(GatesTest, MoreThanIsFreeIsOfferedInPart)
{
  state.ledger.hold(ONE, AGENT, allocated("cpus:7", "eng"));
  const Verdict verdict = ask({{cpus, 2000}});
  EXPECT_EQ(wire::OUTCOME_REASON_PARTIAL, verdict.reason);
  EXPECT_EQ(parse("cpus:1"), verdict.given);
}


TEST_F(GatesTest, NothingIsOfferedTwice)
{
  state.ledger.hold(ONE, AGENT, allocated("cpus:8", "eng"));
  EXPECT_EQ(wire::OUTCOME_REASON_NOTHING_AVAILABLE, reason());
}


TEST_F(GatesTest, NonsenseIsMalformed)
{
  EXPECT_EQ(wire::OUTCOME_REASON_MALFORMED, ask({}).reason);
  EXPECT_EQ(wire::OUTCOME_REASON_MALFORMED, ask({{cpus, 0}}).reason);
  EXPECT_EQ(wire::OUTCOME_REASON_MALFORMED, ask({{cpus, -1}}).reason);
  EXPECT_EQ(wire::OUTCOME_REASON_MALFORMED, ask({{4711, 1000}}).reason);
}


TEST_F(GatesTest, NobodyIsOfferedAnythingDuringAPause)
{
  state.paused = true;
  EXPECT_EQ(wire::OUTCOME_REASON_PAUSED, reason());
  state.paused = false;
  state.recovering = true;
  EXPECT_EQ(wire::OUTCOME_REASON_PAUSED, reason());
}


TEST_F(GatesTest, TheFrameworkMustWantOffers)
{
  state.frameworks[ONE].suppressed = {"eng"};
  EXPECT_EQ(wire::OUTCOME_REASON_SUPPRESSED, reason());
  state.frameworks[ONE].roles = {"other"};
  EXPECT_EQ(wire::OUTCOME_REASON_BAD_ROLE, reason());
  state.frameworks[ONE].active = false;
  EXPECT_EQ(wire::OUTCOME_REASON_INACTIVE_FRAMEWORK, reason());
  state.frameworks.erase(ONE);
  EXPECT_EQ(wire::OUTCOME_REASON_UNKNOWN_FRAMEWORK, reason());
}


TEST_F(GatesTest, TheAgentMustBeThere)
{
  state.whitelist = hashset<string>{"another"};
  EXPECT_EQ(wire::OUTCOME_REASON_INACTIVE_AGENT, reason());
  state.whitelist = hashset<string>{"host"};
  EXPECT_EQ(wire::OUTCOME_REASON_OFFERED, reason());
  state.agents[AGENT].active = false;
  EXPECT_EQ(wire::OUTCOME_REASON_INACTIVE_AGENT, reason());
  state.agents.erase(AGENT);
  EXPECT_EQ(wire::OUTCOME_REASON_UNKNOWN_AGENT, reason());
}


TEST_F(GatesTest, ConstraintsKeepTheTwoApart)
{
  state.frameworks[ONE].excluded["eng"].insert(AGENT);
  EXPECT_EQ(wire::OUTCOME_REASON_CONSTRAINT, reason());
}


TEST_F(GatesTest, AnOldAgentIsNotForManyRoles)
{
  state.agents[AGENT].multiRole = false;
  EXPECT_EQ(wire::OUTCOME_REASON_CAPABILITY, reason());
}


TEST_F(GatesTest, GpusAreForThoseWhoAskForThem)
{
  addAgent("cpus:8;mem:1024;gpus:1");
  EXPECT_EQ(wire::OUTCOME_REASON_CAPABILITY, reason());
  state.frameworks[ONE].gpus = true;
  EXPECT_EQ(wire::OUTCOME_REASON_OFFERED, reason());
  state.frameworks[ONE].gpus = false;
  state.options.filterGpuResources = false;
  EXPECT_EQ(wire::OUTCOME_REASON_OFFERED, reason());
}


TEST_F(GatesTest, AnotherRolesReservationIsOutOfReach)
{
  addAgent("cpus(ops):8;cpus(eng):1");
  const uint32_t ops =
      state.handles.kinds.intern(*parse("cpus(ops):1").begin());
  const uint32_t eng =
      state.handles.kinds.intern(*parse("cpus(eng):1").begin());

  EXPECT_EQ(wire::OUTCOME_REASON_NOTHING_AVAILABLE, ask({{ops, 1000}}).reason);
  EXPECT_EQ(wire::OUTCOME_REASON_OFFERED, ask({{eng, 1000}}).reason);
}


TEST_F(GatesTest, AnOfferReachesTheMinimum)
{
  EXPECT_EQ(wire::OUTCOME_REASON_BELOW_MINIMUM, ask({{mem, 31000}}).reason);
  EXPECT_EQ(wire::OUTCOME_REASON_OFFERED, ask({{mem, 32000}}).reason);

  state.frameworks[ONE].minimum["eng"] = {quantities("mem:64")};
  EXPECT_EQ(wire::OUTCOME_REASON_BELOW_MINIMUM, ask({{mem, 32000}}).reason);
  state.frameworks[ONE].minimum["eng"] = {};
  EXPECT_EQ(wire::OUTCOME_REASON_OFFERED, ask({{mem, 1000}}).reason);
}


TEST_F(GatesTest, WhatWasRefusedIsNotOffered)
{
  state.filters.add(ONE, "eng", AGENT, parse("cpus:1"), 5000, 0);
  EXPECT_EQ(wire::OUTCOME_REASON_FILTERED, reason());
  EXPECT_EQ(wire::OUTCOME_REASON_OFFERED, ask({{cpus, 1001}}).reason);
}


TEST_F(GatesTest, ALimitHolds)
{
  mesos::quota::QuotaConfig config;
  config.set_role("eng");
  (*config.mutable_limits())["cpus"].set_value(3);
  state.quotas["eng"] = mesos::Quota(config);

  Verdict verdict = ask({{cpus, 8000}});
  EXPECT_EQ(wire::OUTCOME_REASON_PARTIAL, verdict.reason);
  EXPECT_EQ(parse("cpus:3"), verdict.given);

  state.ledger.hold(ONE, AGENT, allocated("cpus:3", "eng"));
  EXPECT_EQ(wire::OUTCOME_REASON_LIMIT, reason());
}


// An object of the agent's and one of a provider's are of one kind: the
// bound is for both together, and the verdict says what was given.
TEST_F(GatesTest, ALimitHoldsForAllObjectsOfANameTogether)
{
  Resource provided = *parse("cpus:3").begin();
  provided.mutable_provider_id()->set_value("provider");
  state.ledger.setTotal(AGENT, parse("cpus:3;mem:1024") + provided);
  state.handles.kinds.intern(provided);

  mesos::quota::QuotaConfig config;
  config.set_role("eng");
  (*config.mutable_limits())["cpus"].set_value(4);
  state.quotas["eng"] = mesos::Quota(config);

  const Verdict verdict = ask({{cpus, 6000}});
  EXPECT_EQ(wire::OUTCOME_REASON_PARTIAL, verdict.reason);
  EXPECT_EQ(
      (Amounts{{cpus, 4000}}), toAmounts(verdict.given, &state.handles.kinds));
  EXPECT_EQ(wire::OUTCOME_REASON_OFFERED, ask({{cpus, 4000}}).reason);
}


TEST_F(GatesTest, HeadroomHoldsForAllObjectsOfANameTogether)
{
  Resource provided = *parse("cpus:3").begin();
  provided.mutable_provider_id()->set_value("provider");
  state.ledger.setTotal(AGENT, parse("cpus:3;mem:1024") + provided);
  state.handles.kinds.intern(provided);

  mesos::quota::QuotaConfig config;
  config.set_role("ops");
  (*config.mutable_guarantees())["cpus"].set_value(2);
  state.quotas["ops"] = mesos::Quota(config);

  const Verdict verdict = ask({{cpus, 6000}});
  EXPECT_EQ(wire::OUTCOME_REASON_PARTIAL, verdict.reason);
  EXPECT_EQ(
      (Amounts{{cpus, 4000}}), toAmounts(verdict.given, &state.handles.kinds));
}


// Whatever there is on the agent, is wanted and is bounded: OFFERED means
// exactly that, and PARTIAL less.
TEST_F(GatesTest, TheVerdictSaysWhatIsGiven)
{
  std::mt19937 random(1);
  int offered = 0;
  int partial = 0;

  for (int round = 0; round < 2000; ++round) {
    Resources total;
    const int objects = random() % 5 + 1;
    for (int i = 0; i < objects; ++i) {
      const char* const names[] = {"cpus", "mem", "cpus(eng)", "mem(eng)"};
      Resource resource = *parse(
                               names[random() % 4] + std::string(":") +
                               std::to_string(random() % 40 + 1))
                               .begin();
      if (random() % 2 == 0) {
        resource.mutable_provider_id()->set_value(std::to_string(i));
      }
      total += resource;
    }

    state.handles.kinds = KindTable(random() % 3 == 0 ? 3 : 512);
    state.ledger.setTotal(AGENT, total);
    state.quotas.clear();
    mesos::quota::QuotaConfig config;
    config.set_role(random() % 2 == 0 ? "eng" : "ops");
    auto* bounds = config.role() == "eng" ? config.mutable_limits()
                                          : config.mutable_guarantees();
    (*bounds)["cpus"].set_value(random() % 40 + 1);
    state.quotas[config.role()] = mesos::Quota(config);
    state.frameworks[ONE].minimum["eng"] = {};

    Amounts wanted = toAmounts(total, &state.handles.kinds);
    for (auto& entry : wanted) {
      entry.second = random() % 2 == 0 ? entry.second : random() % 60000 + 1;
    }

    const Verdict verdict = ask(wanted);
    const Amounts given = toAmounts(verdict.given, &state.handles.kinds);
    EXPECT_TRUE(total.contains(verdict.given));

    if (verdict.reason == wire::OUTCOME_REASON_OFFERED) {
      ++offered;
      ASSERT_EQ(wanted, given) << "round " << round;
    } else if (verdict.reason == wire::OUTCOME_REASON_PARTIAL) {
      ++partial;
      ASSERT_NE(wanted, given) << "round " << round;
      ASSERT_FALSE(given.empty());
    } else {
      ASSERT_TRUE(given.empty());
    }
  }

  EXPECT_GT(offered, 200);
  EXPECT_GT(partial, 200);
}


// A framework gets of the rest what it may have, and is told how much.
TEST_F(GatesTest, OfTheRestAFrameworkGetsWhatItMayHave)
{
  state.handles.kinds = KindTable(1);
  const uint32_t rest =
      state.handles.kinds.intern(*parse("cpus(eng):1").begin());
  const Resources total = parse("cpus(eng):2;cpus(ops):5");
  state.ledger.setTotal(AGENT, total);
  ASSERT_EQ((Amounts{{rest, 7000}}), toAmounts(total, &state.handles.kinds));

  const Verdict verdict = ask({{rest, 7000}});
  EXPECT_EQ(wire::OUTCOME_REASON_PARTIAL, verdict.reason);
  EXPECT_EQ(parse("cpus(eng):2"), verdict.given);

  state.ledger.setTotal(AGENT, parse("cpus(ops):5"));
  EXPECT_EQ(wire::OUTCOME_REASON_NOTHING_AVAILABLE, ask({{rest, 5000}}).reason);
}


TEST_F(GatesTest, TheGuaranteesOfOthersAreLaidAside)
{
  mesos::quota::QuotaConfig config;
  config.set_role("ops");
  (*config.mutable_guarantees())["cpus"].set_value(6);
  state.quotas["ops"] = mesos::Quota(config);

  const Verdict verdict = ask({{cpus, 8000}});
  EXPECT_EQ(wire::OUTCOME_REASON_PARTIAL, verdict.reason);
  EXPECT_EQ(parse("cpus:2"), verdict.given);

  state.ledger.hold(ONE, AGENT, allocated("cpus:2", "eng"));
  EXPECT_EQ(wire::OUTCOME_REASON_HEADROOM, reason());
}

} // namespace {
} // namespace adapter {
} // namespace allocator {
