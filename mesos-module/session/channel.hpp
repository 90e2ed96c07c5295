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

// The sidecar's address and how to connect to it.
struct ChannelOptions
{
  // host:port, [IPv6]:port or unix:/path.
  std::string target;

  // Paths of PEM files. With `tlsCa` the sidecar's certificate must be signed
  // by one of these authorities for the target's name, or for `tlsName` if set.
  // `tlsCert` and `tlsKey` authenticate the module.
  std::string tlsCa;
  std::string tlsCert;
  std::string tlsKey;
  std::string tlsName;

  // File with the token that authenticates the master; read for each session.
  std::string tokenFile;

  // HTTP/2 pings: if the sidecar does not answer a ping in time, the connection
  // counts as broken, even if TCP still considers it up.
  Duration keepaliveInterval{10000};
  Duration keepaliveTimeout{5000};

  // A larger message from the sidecar breaks the stream.
  size_t receiveBytesMax = 8 << 20;
};


// Creates channels. Each has a connection of its own, so that gRPC's
// reconnection delays do not apply: the keeper decides when to retry.
class Channels
{
public:
  // Reads the files. `error` is empty if the options are valid.
  Channels(const ChannelOptions& options, std::string* error);

  std::shared_ptr<grpc::Channel> create();

  // The content of the token file; empty without one. `error` is empty on
  // success.
  std::string token(std::string* error) const;

private:
  const ChannelOptions options;
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  int made = 0;
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_CHANNEL_HPP__
