#ifndef __ALLOCATOR_SESSION_CHANNEL_HPP__
#define __ALLOCATOR_SESSION_CHANNEL_HPP__

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>

#include "session/clock.hpp"

namespace allocator {
namespace session {

// Where the sidecar is and how to talk to it.
struct ChannelOptions
{
  // host:port, [IPv6]:port or unix:/path.
  std::string target;

  // Paths of PEM files. With `tlsCa` the sidecar must prove that it is
  // whom one of these authorities knows under the target's name, or under
  // `tlsName` where that is given. With the other two the module proves
  // who it is.
  std::string tlsCa;
  std::string tlsCert;
  std::string tlsKey;
  std::string tlsName;

  // A file with the token that says to the sidecar that this is the master.
  // It is read anew for each session.
  std::string tokenFile;

  // A peer that does not answer a ping is gone, whatever TCP believes.
  Duration keepaliveInterval{10000};
  Duration keepaliveTimeout{5000};

  // No larger message is read.
  size_t receiveBytesMax = 8 << 20;
};


// Makes channels. Each has a connection of its own, so that the delays of
// one are not those of the next: when to try again is for the keeper.
class Channels
{
public:
  // Reads the files. What is wrong with the options is put into `error`,
  // which is empty where nothing is.
  Channels(const ChannelOptions& options, std::string* error);

  std::shared_ptr<grpc::Channel> create();

  // What is in the file of the token; empty without one. What is wrong with
  // it is put into `error`.
  std::string token(std::string* error) const;

private:
  const ChannelOptions options;
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  int made = 0;
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_CHANNEL_HPP__
