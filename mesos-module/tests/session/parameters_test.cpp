#include "session/parameters.hpp"

#include <gtest/gtest.h>

namespace allocator {
namespace session {
namespace {

using Given = std::vector<std::pair<std::string, std::string>>;


std::string wrongWith(const Given& given)
{
  std::string error;
  parseParameters(given, &error);
  return error;
}


Parameters parsed(const Given& given)
{
  std::string error;
  const Parameters parameters = parseParameters(given, &error);
  EXPECT_EQ("", error);
  return parameters;
}


TEST(ParametersTest, NothingNeedBeGiven)
{
  const Parameters parameters = parsed({});
  EXPECT_TRUE(parameters.fallback);
  EXPECT_EQ("127.0.0.1:5056", parameters.transport.channel.target);
}


TEST(ParametersTest, WhatIsGivenCounts)
{
  const Parameters parameters = parsed(
      {{"target", "unix:/run/a.sock"},
       {"fallback", "false"},
       {"answer_deadline_ms", "250"},
       {"inverse_offers_within_ms", "604800000"},
       {"session_token_file", "/etc/mesos/session-token"},
       {"barren_intervals_max", "0"}});

  EXPECT_EQ("unix:/run/a.sock", parameters.transport.channel.target);
  EXPECT_FALSE(parameters.fallback);
  EXPECT_EQ(250, parameters.deadlines.answer.count());
  EXPECT_EQ(604800000, parameters.inverseOffersWithin.count());
  EXPECT_EQ("/etc/mesos/session-token", parameters.transport.channel.tokenFile);
  EXPECT_EQ(0u, parameters.barrenIntervalsMax);
}


TEST(ParametersTest, SortersAreForTheShadow)
{
  EXPECT_NE("", wrongWith({{"role_sorter", "random"}}));

  const Parameters parameters =
      parsed({{"role_sorter", "random"}, {"shadow", "true"}});
  EXPECT_TRUE(parameters.shadow);
  EXPECT_EQ("random", parameters.roleSorter);
  EXPECT_EQ("drf", parameters.frameworkSorter);

  EXPECT_EQ(
      "'framework_sorter' is 'fair'; it must be 'drf' or 'random'",
      wrongWith({{"framework_sorter", "fair"}, {"shadow", "true"}}));
}


TEST(ParametersTest, EveryMistakeIsNamed)
{
  EXPECT_EQ(
      "'targte' is not a parameter of this module; "
      "'fallback' is 'yes'; it must be 'true' or 'false'; "
      "'answer_deadline_ms' is '1e9'; it must be a whole number from 10 to "
      "3600000; "
      "'queue_messages_max' is '0'; it must be a whole number from 1 to "
      "1048576; "
      "'tls_ca' is ''; it must not be empty; "
      "'target' is given twice",
      wrongWith(
          {{"targte", "x"},
           {"fallback", "yes"},
           {"answer_deadline_ms", "1e9"},
           {"queue_messages_max", "0"},
           {"tls_ca", ""},
           {"target", "a:1"},
           {"target", "b:1"}}));
}

} // namespace {
} // namespace session {
} // namespace allocator {
