#include "adapter/ledger.hpp"

#include "adapter_world.hpp"

using std::vector;

namespace allocator {
namespace adapter {
namespace {

const FrameworkID ONE = frameworkId("one");
const FrameworkID TWO = frameworkId("two");
const AgentID AGENT = agentId("agent");


class LedgerTest : public ::testing::Test
{
protected:
  void SetUp() override
  {
    ledger.addAgent(AGENT, parse("cpus:8;mem:1024;ports:[1-10]"));
  }

  const Resources& available() { return ledger.find(AGENT)->available(); }

  Ledger ledger;
};


TEST_F(LedgerTest, WhatIsHeldIsNotFree)
{
  ledger.hold(ONE, AGENT, allocated("cpus:2;ports:[1-4]", "a"));
  EXPECT_EQ(parse("cpus:6;mem:1024;ports:[5-10]"), available());

  ledger.hold(TWO, AGENT, allocated("cpus:6;mem:24", "b"));
  EXPECT_EQ(parse("mem:1000;ports:[5-10]"), available());
}


TEST_F(LedgerTest, WhatComesBackIsFree)
{
  const Resources all = allocated("cpus:8;mem:1024;ports:[1-10]", "a");
  ledger.hold(ONE, AGENT, all);
  EXPECT_TRUE(available().empty());

  const Resources part = allocated("cpus:3", "a");
  EXPECT_EQ(part, ledger.release(ONE, AGENT, part));
  EXPECT_EQ(parse("cpus:3"), available());

  ledger.release(ONE, AGENT, all - part);
  EXPECT_EQ(ledger.find(AGENT)->total, available());
  EXPECT_TRUE(ledger.find(AGENT)->held.empty());
}


TEST_F(LedgerTest, NoMoreComesBackThanIsHeld)
{
  ledger.hold(ONE, AGENT, allocated("cpus:2", "a"));

  EXPECT_EQ(
      allocated("cpus:2", "a"),
      ledger.release(ONE, AGENT, allocated("cpus:5;mem:100", "a")));
  EXPECT_TRUE(ledger.release(ONE, AGENT, allocated("cpus:1", "a")).empty());
  EXPECT_TRUE(
      ledger.release(ONE, agentId("none"), allocated("cpus:1", "a")).empty());
  EXPECT_EQ(ledger.find(AGENT)->total, available());
}


TEST_F(LedgerTest, AnotherRoleHoldsNothing)
{
  ledger.hold(ONE, AGENT, allocated("cpus:2", "a"));
  EXPECT_TRUE(ledger.release(ONE, AGENT, allocated("cpus:2", "b")).empty());
  EXPECT_EQ(6, available().get<mesos::Value::Scalar>("cpus")->value());
}


// An agent whose total shrinks below what is held has nothing free, and
// the rest becomes free only as enough comes back.
TEST_F(LedgerTest, AnAgentMayShrinkBelowWhatIsHeld)
{
  ledger.hold(ONE, AGENT, allocated("cpus:6", "a"));
  ledger.setTotal(AGENT, parse("cpus:4"));
  EXPECT_TRUE(available().empty());

  ledger.release(ONE, AGENT, allocated("cpus:3", "a"));
  EXPECT_EQ(parse("cpus:1"), available());
}


TEST_F(LedgerTest, AFrameworkThatGoesFreesAll)
{
  ledger.hold(ONE, AGENT, allocated("cpus:2", "a"));
  ledger.hold(TWO, AGENT, allocated("cpus:1", "b"));
  ledger.removeFramework(ONE);
  EXPECT_EQ(parse("cpus:7;mem:1024;ports:[1-10]"), available());
}


Resources reserved(const std::string& text, const std::string& role)
{
  Resource::ReservationInfo reservation;
  reservation.set_type(Resource::ReservationInfo::DYNAMIC);
  reservation.set_role(role);
  return parse(text).pushReservation(reservation);
}


TEST_F(LedgerTest, AReservationOfAnOfferChangesTheTotal)
{
  const Resources offer = allocated("cpus:2;mem:100", "a");
  ledger.hold(ONE, AGENT, offer);

  Resources after = reserved("cpus:2", "a");
  after.allocate("a");
  const vector<ResourceConversion> conversions = {
      ResourceConversion(allocated("cpus:2", "a"), after)};

  ASSERT_TRUE(ledger.convertHeld(ONE, AGENT, offer, conversions).isSome());
  EXPECT_EQ(
      reserved("cpus:2", "a") + parse("cpus:6;mem:1024;ports:[1-10]"),
      ledger.find(AGENT)->total);
  EXPECT_EQ(
      allocated("mem:100", "a") + after, ledger.find(AGENT)->held.at(ONE));
  EXPECT_EQ(parse("cpus:6;mem:924;ports:[1-10]"), available());
}


TEST_F(LedgerTest, WhatIsNotHeldIsNotConverted)
{
  const Resources offer = allocated("cpus:2", "a");
  Resources after = reserved("cpus:2", "a");
  after.allocate("a");

  EXPECT_TRUE(
      ledger.convertHeld(ONE, AGENT, offer, {ResourceConversion(offer, after)})
          .isError());
  EXPECT_EQ(parse("cpus:8;mem:1024;ports:[1-10]"), available());
}


mesos::Offer::Operation reserve(const Resources& resources)
{
  mesos::Offer::Operation operation;
  operation.set_type(mesos::Offer::Operation::RESERVE);
  operation.mutable_reserve()->mutable_resources()->CopyFrom(resources);
  return operation;
}


TEST_F(LedgerTest, AnOperatorConvertsOnlyWhatIsFree)
{
  ledger.hold(ONE, AGENT, allocated("cpus:6", "a"));

  EXPECT_TRUE(
      ledger.convertFree(AGENT, {reserve(reserved("cpus:3", "b"))}).isError());
  ASSERT_TRUE(
      ledger.convertFree(AGENT, {reserve(reserved("cpus:2", "b"))}).isSome());
  EXPECT_EQ(
      reserved("cpus:2", "b") + parse("mem:1024;ports:[1-10]"), available());
}

} // namespace {
} // namespace adapter {
} // namespace allocator {
