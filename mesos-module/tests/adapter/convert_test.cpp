#include "adapter/convert.hpp"

#include <cmath>

#include "adapter/objects.hpp"

#include "tests/adapter/world.hpp"

#include "brain/user_input/bounds.hpp"

namespace allocator {
namespace adapter {
namespace {

TEST(ConvertTest, AnAgentIsDescribed)
{
  AgentInfo info;
  info.set_hostname("host");
  mesos::Attribute* attribute = info.add_attributes();
  attribute->set_name("zone");
  attribute->set_type(mesos::Value::TEXT);
  attribute->mutable_text()->set_value("a");

  std::vector<AgentInfo::Capability> capabilities(1);
  capabilities[0].set_type(AgentInfo::Capability::MULTI_ROLE);
  const wire::Agent agent = toAgent(info, capabilities);

  EXPECT_EQ("host", agent.hostname());
  ASSERT_EQ(1, agent.attributes_size());
  EXPECT_EQ("a", agent.attributes(0).value());
  EXPECT_FALSE(agent.has_domain());
  ASSERT_EQ(1, agent.capabilities_size());
  EXPECT_EQ(wire::AGENT_CAPABILITY_MULTI_ROLE, agent.capabilities(0));
}


TEST(ConvertTest, AFrameworkIsDescribed)
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
  (*info.mutable_offer_filters())["ops"]
      .mutable_min_allocatable_resources()
      ->add_quantities();

  brain::AddFramework event;
  describe(info, {"ops", "gone"}, &event);

  EXPECT_EQ((std::set<std::string>{"eng/ads", "ops"}), event.roles);
  EXPECT_EQ((std::set<std::string>{"gone", "ops"}), event.suppressed);
  EXPECT_EQ(2, event.info.capabilities_size());
  EXPECT_EQ("cpus:1", event.info.labels().at("demand"));
  ASSERT_EQ(1u, event.minimum.size());
  EXPECT_EQ("ops", event.minimum[0].first);
}


// Input is passed on unchanged: the brain decides what is accepted.
TEST(ConvertTest, WordsAreHandedOnAsTheyAreSaid)
{
  FrameworkInfo info;
  info.set_user("a\xFF");
  info.set_name(std::string(10000, 'n'));
  info.add_roles("eng");
  info.add_capabilities()->set_type(FrameworkInfo::Capability::MULTI_ROLE);
  mesos::Label* label = info.mutable_labels()->add_labels();
  label->set_key("");
  label->set_value("\xFF");
  auto* quantities = (*info.mutable_offer_filters())["a//b"]
                         .mutable_min_allocatable_resources()
                         ->add_quantities()
                         ->mutable_quantities();
  (*quantities)[""].set_value(1);

  brain::AddFramework event;
  describe(info, {}, &event);
  EXPECT_EQ("a\xFF", event.info.user());
  EXPECT_EQ(10000u, event.info.name().size());
  EXPECT_EQ("\xFF", event.info.labels().at(""));
  ASSERT_EQ(1u, event.minimum.size());
  EXPECT_EQ("", event.minimum[0].second.at(0).at(0).first);

  mesos::Request request;
  Resource* resource = request.add_resources();
  resource->set_name("");
  resource->set_type(mesos::Value::SCALAR);
  resource->mutable_scalar()->set_value(1e300);
  const wire::ResourceRequest requests = toRequest({request});
  EXPECT_EQ("", requests.requests(0).name(0));
  EXPECT_EQ("", requests.agent_id(0));
  EXPECT_EQ(int64_t(brain::OBJECT_AMOUNT_MAX), requests.requests(0).amount(0));
}


TEST(ConvertTest, AFrameworkOfOldHasOneRole)
{
  FrameworkInfo info;
  info.set_role("eng");
  info.add_roles("ops");

  brain::AddFramework event;
  describe(info, {}, &event);
  EXPECT_EQ((std::set<std::string>{"eng"}), event.roles);
}


// A limit of 0 is kept; a missing limit is not a limit.
TEST(ConvertTest, AQuotaKeepsItsZeros)
{
  mesos::quota::QuotaConfig config;
  config.set_role("eng");
  (*config.mutable_limits())["cpus"].set_value(0);
  const brain::SetQuota quota = toQuota("eng", mesos::Quota(config));

  EXPECT_TRUE(quota.guarantees.empty());
  EXPECT_EQ((brain::Quantities{{"cpus", 0}}), quota.limits);
  EXPECT_TRUE(toQuota("eng", mesos::Quota()).limits.empty());
}


TEST(ConvertTest, ARefusalLastsByMesosRules)
{
  mesos::Filters filters;
  EXPECT_EQ(-1, filterMs(None()));
  EXPECT_EQ(5000, filterMs(filters));

  for (double odd : {-1.0, std::nan("")}) {
    filters.set_refuse_seconds(odd);
    EXPECT_EQ(5000, filterMs(filters));
  }

  filters.set_refuse_seconds(0);
  EXPECT_EQ(0, filterMs(filters));
  filters.set_refuse_seconds(0.0001);
  EXPECT_EQ(1, filterMs(filters));
  filters.set_refuse_seconds(1e300);
  EXPECT_EQ(int64_t(365) * 24 * 3600 * 1000, filterMs(filters));
}


// Amounts that are negative, infinite or not a number become valid ones.
TEST(ConvertTest, NoNumberOfAFrameworkIsTaken)
{
  mesos::Value::Scalar scalar;
  for (double value : {-1.0, std::nan(""), -double(INFINITY)}) {
    scalar.set_value(value);
    EXPECT_EQ(0, thousandths(scalar));
  }
  scalar.set_value(INFINITY);
  EXPECT_EQ(session::AMOUNT_MAX + 0, thousandths(scalar));
}

} // namespace {
} // namespace adapter {
} // namespace allocator {
