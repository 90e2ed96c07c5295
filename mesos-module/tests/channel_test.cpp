#include "session/channel.hpp"

#include <string>

#include <gtest/gtest.h>

namespace allocator {
namespace session {
namespace {

std::string errorOf(const ChannelOptions& options)
{
  std::string error;
  Channels channels(options, &error);
  return error;
}


std::string errorOf(const std::string& target)
{
  ChannelOptions options;
  options.target = target;
  return errorOf(options);
}


TEST(ChannelTest, TargetsAreTaken)
{
  for (const char* target :
       {"127.0.0.1:5056",
        "sidecar.example.com:1",
        "[::1]:65535",
        "unix:/run/mesos-allocator/session.sock"}) {
    EXPECT_EQ("", errorOf(std::string(target))) << target;
  }
}


TEST(ChannelTest, OtherTextsAreNoTargets)
{
  for (const char* target :
       {"",
        ":5056",
        "localhost",
        "localhost:",
        "localhost:http",
        "localhost:123456",
        "::1:5056",
        "unix:",
        "unix:/",
        "unix:relative.sock"}) {
    EXPECT_NE(std::string::npos, errorOf(std::string(target)).find("target"))
        << target;
  }

  EXPECT_EQ(
      "'localhost:0' has port 0; give one from 1 to 65535",
      errorOf(std::string("localhost:0")));
  EXPECT_NE("", errorOf(std::string("localhost:65536")));
}


TEST(ChannelTest, FilesForTlsMustFitTogether)
{
  ChannelOptions options;
  options.target = "127.0.0.1:5056";
  options.tlsCert = "cert.pem";
  EXPECT_EQ(
      "a certificate and its key for TLS are given both, or neither",
      errorOf(options));

  options.tlsKey = "key.pem";
  EXPECT_NE(std::string::npos, errorOf(options).find("authorities"));

  options.tlsCa = "/nowhere/ca.pem";
  EXPECT_NE("", errorOf(options));
}

} // namespace {
} // namespace session {
} // namespace allocator {
