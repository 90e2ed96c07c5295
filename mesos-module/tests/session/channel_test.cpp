#include "session/channel.hpp"

#include <unistd.h>

#include <fstream>
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
      "give both a certificate and its key for TLS, or neither",
      errorOf(options));

  options.tlsKey = "key.pem";
  EXPECT_NE(std::string::npos, errorOf(options).find("authorities"));

  options.tlsCa = "/nowhere/ca.pem";
  EXPECT_NE("", errorOf(options));
}

TEST(ChannelTest, ATokenGoesNowhereInClear)
{
  ChannelOptions options;
  options.tokenFile = "/etc/mesos/session-token";

  for (const char* target :
       {"127.0.0.1:5056",
        "127.1.2.3:5056",
        "localhost:5056",
        "[::1]:5056",
        "unix:/run/mesos-allocator/session.sock"}) {
    options.target = target;
    EXPECT_EQ("", errorOf(options)) << target;
  }

  for (const char* target :
       {"sidecar.example.com:5056",
        "127.0.0.1.example.com:5056",
        "localhost.example.com:5056",
        "[2001:db8::1]:5056",
        "10.0.0.1:5056"}) {
    options.target = target;
    EXPECT_EQ(
        "a session token would be sent unencrypted to '" + options.target +
            "'; give a Unix socket or a loopback address, or use TLS",
        errorOf(options));
  }

  options.tlsCa = "/nowhere/ca.pem";
  EXPECT_EQ(std::string::npos, errorOf(options).find("unencrypted"));
}


// A token must be a valid header value, because gRPC aborts the process on an
// invalid one.
TEST(ChannelTest, OnlyWhatCanBeAHeaderIsAToken)
{
  ChannelOptions options;
  options.target = "127.0.0.1:5056";
  options.tokenFile = "/tmp/channel-test-token-" + std::to_string(getpid());
  std::string error;
  const Channels channels(options, &error);
  ASSERT_EQ("", error);

  const auto read = [&](const std::string& content) {
    std::ofstream(options.tokenFile) << content;
    error.clear();
    return channels.token(&error);
  };

  EXPECT_EQ("s3cret", read("s3cret"));
  EXPECT_EQ("s3cret", read(" s3cret \r\n\n"));
  EXPECT_EQ("", error);

  for (const std::string& wrong :
       {std::string("two words"),
        std::string("two\nlines"),
        std::string("nul\0byte", 8),
        std::string("\xc3\xa9"),
        std::string("\n"),
        std::string(4097, 'x')}) {
    EXPECT_EQ("", read(wrong));
    EXPECT_NE(std::string::npos, error.find("visible ASCII")) << error;
  }

  EXPECT_EQ("", read(""));
  EXPECT_NE(std::string::npos, error.find("cannot be read, or is empty"));
  unlink(options.tokenFile.c_str());
  error.clear();
  EXPECT_EQ("", channels.token(&error));
  EXPECT_EQ(
      "the file with the session token '" + options.tokenFile +
          "' cannot be read, or is empty",
      error);
}

} // namespace {
} // namespace session {
} // namespace allocator {
