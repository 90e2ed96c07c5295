#include "adapter/convert.hpp"
#include "adapter/holdings.hpp"

#include "adapter_world.hpp"

namespace allocator {
namespace adapter {
namespace {

const FrameworkID ONE = frameworkId("one");
const AgentID AGENT = agentId("agent");


TEST(ConvertTest, AnAgentIsTold)
{
  AgentInfo info;
  info.set_hostname("host");
  mesos::Attribute* attribute = info.add_attributes();
  attribute->set_name("zone");
  attribute->set_type(mesos::Value::TEXT);
  attribute->mutable_text()->set_value("a");

  Agent agent;
  describeAgent(info, std::vector<AgentInfo::Capability>(), &agent);
  agent.active = false;

  Handles handles;
  const wire::Agent sent =
      toAgent(AGENT, agent, parse("cpus:2;ports:[1-3]"), &handles);

  EXPECT_EQ(1u, sent.agent());
  EXPECT_EQ("agent", sent.agent_id());
  EXPECT_EQ("host", sent.hostname());
  EXPECT_TRUE(sent.deactivated());
  ASSERT_EQ(1, sent.attributes_size());
  EXPECT_EQ("a", sent.attributes(0).value());
  ASSERT_EQ(2, sent.capacity().amount_size());
  EXPECT_EQ(2000, sent.capacity().amount(0));
  EXPECT_EQ(3000, sent.capacity().amount(1));
  EXPECT_EQ(2u, handles.kinds.takeNew().size());
}


TEST(ConvertTest, AFrameworkIsTold)
{
  FrameworkInfo info;
  info.set_user("user");
  info.set_name("name");
  info.add_roles("eng/ads");
  info.add_roles("ops");
  info.add_capabilities()->set_type(FrameworkInfo::Capability::MULTI_ROLE);
  info.add_capabilities()->set_type(FrameworkInfo::Capability::GPU_RESOURCES);
  mesos::Label* label = info.mutable_labels()->add_labels();
  label->set_key("demand");
  label->set_value("cpus:1");

  Framework framework;
  describeFramework(info, &framework);
  framework.suppressed = {"ops", "gone"};

  Handles handles;
  const wire::Framework sent = toFramework(ONE, framework, &handles);

  EXPECT_EQ(2, sent.roles_size());
  ASSERT_EQ(1, sent.suppressed_roles_size());
  EXPECT_EQ(handles.roles.find("ops"), sent.suppressed_roles(0));
  EXPECT_EQ(2, sent.capabilities_size());
  EXPECT_EQ("cpus:1", sent.labels().at("demand"));
  EXPECT_TRUE(sent.inactive());
  EXPECT_EQ(3u, handles.roles.takeNew().size());
}


TEST(ConvertTest, RowsOfTheSameKindsShareColumns)
{
  Handles handles;
  handles.agents.bind(AGENT);
  handles.agents.bind(agentId("other"));

  HoldingsWriter writer(&handles);
  writer.add(ONE, AGENT, allocated("cpus:1;mem:5", "a"));
  writer.add(ONE, agentId("other"), allocated("cpus:2;mem:6", "a"));
  writer.add(ONE, AGENT, allocated("cpus:3", "a") + allocated("cpus:4", "b"));

  ASSERT_EQ(2u, writer.groups().size());
  int rows = 0;
  int64_t sum = 0;
  for (const auto& group : writer.groups()) {
    rows += group.second.framework_size();
    EXPECT_EQ(
        group.second.framework_size() * group.second.kind_size(),
        group.second.amount_size());
    for (int64_t amount : group.second.amount()) {
      sum += amount;
    }
  }
  EXPECT_EQ(4, rows);
  EXPECT_EQ((1 + 5 + 2 + 6 + 3 + 4) * 1000, sum);
}


TEST(ConvertTest, WhatIsNotAllocatedHasNoRole)
{
  EXPECT_TRUE(byRole(parse("cpus:1")).empty());
  EXPECT_EQ(1u, byRole(allocated("cpus:1;mem:1", "a")).size());
}

} // namespace {
} // namespace adapter {
} // namespace allocator {
