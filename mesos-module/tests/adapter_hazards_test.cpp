#include <cmath>
#include <limits>

#include "adapter/fallback.hpp"
#include "adapter/gates.hpp"

#include "adapter_world.hpp"

// What an allocator can do to make a master abort, one test each: the
// checks of Mesos that stand behind them are in `Slave::apply`,
// `Framework::trackUnderRole`, `convertResourceFormat` and their like.

namespace allocator {
namespace adapter {
namespace {

const FrameworkID ONE = frameworkId("one");
const FrameworkID TWO = frameworkId("two");
const AgentID AGENT = agentId("agent");


class HazardsTest : public ::testing::Test
{
protected:
  void SetUp() override
  {
    addFramework(ONE, "eng");
    addFramework(TWO, "ops");
    state.ledger.addAgent(AGENT, parse("cpus:4;mem:512;ports:[1-9]"));
    describeAgent(AgentInfo(), capabilities(true), &state.agents[AGENT]);
    cpus = state.handles.kinds.intern(*parse("cpus:1").begin());
  }

  void addFramework(const FrameworkID& id, const std::string& role)
  {
    FrameworkInfo info;
    info.add_roles(role);
    info.add_capabilities()->set_type(FrameworkInfo::Capability::MULTI_ROLE);
    describeFramework(info, &state.frameworks[id]);
    state.frameworks[id].active = true;
  }

  static std::vector<AgentInfo::Capability> capabilities(bool multiRole)
  {
    std::vector<AgentInfo::Capability> result(multiRole ? 2 : 0);
    if (multiRole) {
      result[0].set_type(AgentInfo::Capability::MULTI_ROLE);
      result[1].set_type(AgentInfo::Capability::HIERARCHICAL_ROLE);
    }
    return result;
  }

  Verdict
  ask(const FrameworkID& id, const std::string& role, const Amounts& wanted)
  {
    return judge(state, Pair{id, role, AGENT}, wanted, QuotaBook(state), 0);
  }

  Cluster state;
  uint32_t cpus;
};


TEST_F(HazardsTest, NothingIsOfferedTwiceHoweverOftenItIsDecided)
{
  Resources out;
  for (int i = 0; i < 10; ++i) {
    const FrameworkID& id = i % 2 == 0 ? ONE : TWO;
    const std::string role = i % 2 == 0 ? "eng" : "ops";
    const Verdict verdict = ask(id, role, {{cpus, 3000}});
    Resources offered =
        state.ledger.offer(id, AGENT, role, verdict.given, verdict.all);
    offered.unallocate();
    out += offered;
  }

  EXPECT_EQ(parse("cpus:4"), out);
}


TEST_F(HazardsTest, AnOperatorCannotConvertWhatIsOnOffer)
{
  state.ledger.hold(ONE, AGENT, allocated("cpus:3", "eng"));
  mesos::Offer::Operation operation;
  operation.set_type(mesos::Offer::Operation::RESERVE);
  for (const Resource& resource : parse("cpus:2").pushReservation([]() {
         Resource::ReservationInfo info;
         info.set_type(Resource::ReservationInfo::DYNAMIC);
         info.set_role("eng");
         return info;
       }())) {
    *operation.mutable_reserve()->add_resources() = resource;
  }

  EXPECT_TRUE(state.ledger.convertFree(AGENT, {operation}).isError());
  EXPECT_EQ(
      parse("cpus:4;mem:512;ports:[1-9]"), state.ledger.find(AGENT)->total);
}


TEST_F(HazardsTest, RefinedReservationsNeedTheCapability)
{
  Resource refined = *parse("cpus:1").begin();
  for (const char* role : {"eng", "eng/ads"}) {
    Resource::ReservationInfo* info = refined.add_reservations();
    info->set_type(Resource::ReservationInfo::DYNAMIC);
    info->set_role(role);
  }

  state.ledger.setTotal(AGENT, refined);
  addFramework(TWO, "eng/ads");
  const uint32_t kind = state.handles.kinds.intern(refined);
  EXPECT_EQ(
      wire::OUTCOME_REASON_NOTHING_AVAILABLE,
      ask(TWO, "eng/ads", {{kind, 1000}}).reason);

  state.frameworks[TWO].refinement = true;
  const Verdict verdict = ask(TWO, "eng/ads", {{kind, 1000}});
  EXPECT_EQ(Resources(refined), verdict.given);
}


TEST_F(HazardsTest, OffersKeepTheFormOfTheAgentsOwnObjects)
{
  const Verdict verdict = ask(ONE, "eng", {{cpus, 1500}});
  ASSERT_EQ(1u, verdict.given.size());
  const Resource& resource = *verdict.given.begin();
  EXPECT_FALSE(resource.has_role());
  EXPECT_FALSE(resource.has_reservation());
}


TEST_F(HazardsTest, ARoleMustBeTheFrameworksOwn)
{
  EXPECT_EQ(
      wire::OUTCOME_REASON_BAD_ROLE, ask(ONE, "ops", {{cpus, 1000}}).reason);
  state.frameworks[ONE].roles = {"other"};
  EXPECT_EQ(
      wire::OUTCOME_REASON_BAD_ROLE, ask(ONE, "eng", {{cpus, 1000}}).reason);
}


TEST_F(HazardsTest, AnAgentWithoutRolesTakesNoFrameworkOfSeveral)
{
  describeAgent(AgentInfo(), capabilities(false), &state.agents[AGENT]);
  EXPECT_EQ(
      wire::OUTCOME_REASON_CAPABILITY, ask(ONE, "eng", {{cpus, 1000}}).reason);
}


TEST_F(HazardsTest, EveryObjectIsAllocatedToTheRoleOfTheOffer)
{
  for (const Amounts& wanted : {Amounts{{cpus, 1000}}, Amounts{{cpus, 4000}}}) {
    const Verdict verdict = ask(ONE, "eng", wanted);
    for (const Resource& resource :
         state.ledger.offer(ONE, AGENT, "eng", verdict.given, verdict.all)) {
      EXPECT_EQ("eng", resource.allocation_info().role());
    }
  }
}


TEST_F(HazardsTest, NoNumberOfAFrameworkIsTaken)
{
  mesos::Value::Scalar scalar;
  for (double value : {-1.0, std::nan(""), -double(INFINITY)}) {
    scalar.set_value(value);
    EXPECT_EQ(0, thousandths(scalar));
  }
  scalar.set_value(INFINITY);
  EXPECT_EQ(int64_t(1) << 53, thousandths(scalar));
  EXPECT_EQ(
      wire::OUTCOME_REASON_MALFORMED, ask(ONE, "eng", {{cpus, -1}}).reason);
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(parse("cpus:4"), ask(ONE, "eng", {{cpus, most}}).given);
}


TEST_F(HazardsTest, PortsAreCountedNotShrunk)
{
  const uint32_t ports =
      state.handles.kinds.intern(*parse("ports:[1-1]").begin());
  EXPECT_EQ(parse("ports:[1-3]"), ask(ONE, "eng", {{ports, 3500}}).given);
}


TEST_F(HazardsTest, WhoeverIsUnknownChangesNothing)
{
  const AgentID nowhere = agentId("nowhere");
  state.ledger.hold(ONE, nowhere, allocated("cpus:1", "eng"));
  EXPECT_TRUE(
      state.ledger.release(ONE, nowhere, allocated("cpus:1", "eng")).empty());
  EXPECT_TRUE(
      state.ledger.release(TWO, AGENT, allocated("cpus:1", "eng")).empty());
  state.ledger.removeAgent(nowhere);
  state.ledger.removeFramework(frameworkId("nobody"));
  EXPECT_EQ(
      parse("cpus:4;mem:512;ports:[1-9]"),
      state.ledger.find(AGENT)->available());
}


TEST_F(HazardsTest, TheFallbackGivesEachAgentOnceToThePoorest)
{
  for (int i = 0; i < 9; ++i) {
    const AgentID id = agentId("more" + std::to_string(i));
    state.ledger.addAgent(id, parse("cpus:4;mem:512;ports:[1-9]"));
    describeAgent(AgentInfo(), capabilities(true), &state.agents[id]);
  }

  std::vector<AgentID> agents;
  for (const auto& entry : state.agents) {
    agents.push_back(entry.first);
  }

  state.weights["ops"] = 4;
  Fallback fallback(7);
  QuotaBook quotas(state);
  hashmap<FrameworkID, Offers> offers;
  fallback.allocate(&state, agents, &quotas, 0, &offers);

  // Ten agents between weights of 1 and 4.
  EXPECT_EQ(2u, offers[ONE]["eng"].size());
  EXPECT_EQ(8u, offers[TWO]["ops"].size());
  for (const AgentID& id : agents) {
    EXPECT_TRUE(state.ledger.find(id)->available().empty());
  }
}

} // namespace {
} // namespace adapter {
} // namespace allocator {
