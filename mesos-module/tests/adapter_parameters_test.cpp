#include "adapter/parameters.hpp"

#include <gtest/gtest.h>

namespace allocator {
namespace adapter {
namespace {

void add(const char* key, const char* value, mesos::Parameters* parameters)
{
  mesos::Parameter* parameter = parameters->add_parameter();
  parameter->set_key(key);
  parameter->set_value(value);
}


TEST(ParametersTest, NothingNeedBeGiven)
{
  const Try<Parameters> parameters = parseParameters(mesos::Parameters());
  ASSERT_TRUE(parameters.isSome());
  EXPECT_TRUE(parameters->fallback);
  EXPECT_EQ("127.0.0.1:5056", parameters->transport.channel.target);
}


TEST(ParametersTest, WhatIsGivenCounts)
{
  mesos::Parameters given;
  add("target", "unix:/run/a.sock", &given);
  add("fallback", "false", &given);
  add("answer_deadline_ms", "250", &given);
  add("inverse_offers_within_ms", "604800000", &given);
  add("session_token_file", "/etc/mesos/session-token", &given);
  add("barren_intervals_max", "0", &given);

  const Try<Parameters> parameters = parseParameters(given);
  ASSERT_TRUE(parameters.isSome());
  EXPECT_EQ("unix:/run/a.sock", parameters->transport.channel.target);
  EXPECT_FALSE(parameters->fallback);
  EXPECT_EQ(250, parameters->deadlines.answer.count());
  EXPECT_EQ(604800000, parameters->inverseOffersWithin.count());
  EXPECT_EQ(
      "/etc/mesos/session-token", parameters->transport.channel.tokenFile);
  EXPECT_EQ(0u, parameters->barrenIntervalsMax);
}


TEST(ParametersTest, SortersAreForTheShadow)
{
  mesos::Parameters given;
  add("role_sorter", "random", &given);
  EXPECT_TRUE(parseParameters(given).isError());

  add("shadow", "true", &given);
  const Try<Parameters> parameters = parseParameters(given);
  ASSERT_TRUE(parameters.isSome());
  EXPECT_TRUE(parameters->shadow);
  EXPECT_EQ("random", parameters->roleSorter);
  EXPECT_EQ("drf", parameters->frameworkSorter);

  add("framework_sorter", "fair", &given);
  EXPECT_TRUE(parseParameters(given).isError());
}


TEST(ParametersTest, EveryMistakeIsNamed)
{
  mesos::Parameters given;
  add("targte", "x", &given);
  add("fallback", "yes", &given);
  add("answer_deadline_ms", "1e9", &given);
  add("queue_messages_max", "0", &given);
  add("target", "a:1", &given);
  add("target", "b:1", &given);

  const Try<Parameters> parameters = parseParameters(given);
  ASSERT_TRUE(parameters.isError());
  for (const char* key :
       {"targte",
        "fallback",
        "answer_deadline_ms",
        "queue_messages_max",
        "'target' is given twice"}) {
    EXPECT_NE(std::string::npos, parameters.error().find(key)) << key;
  }
}

} // namespace {
} // namespace adapter {
} // namespace allocator {
