#ifndef __ALLOCATOR_SESSION_TRANSPORT_HPP__
#define __ALLOCATOR_SESSION_TRANSPORT_HPP__

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "session/channel.hpp"
#include "session/link.hpp"

namespace allocator {
namespace session {

class Stream;

struct TransportOptions
{
  ChannelOptions channel;

  // Bounds of the outgoing queue; a snapshot does not count.
  size_t queueMessagesMax = 1024;
  size_t queueBytesMax = 64 << 20;

  // Messages of the sidecar that may wait for the owner. If there are more, the
  // transport stops reading, and flow control makes the sidecar wait.
  size_t incomingMax = 16;

  // How long an orderly end waits for the sidecar.
  Duration grace{500};

  // Starts a thread; tests may replace it.
  std::function<std::thread(std::function<void()>)> newThread =
      [](std::function<void()> function) {
        return std::thread(std::move(function));
      };
};


// A link over gRPC.
//
// The worker thread starts streams, writes, reads and checks deadlines. The
// poller only passes gRPC's completions to the worker, because one
// thread cannot wait for both gRPC and the owner. Neither thread calls the
// owner or its executor while it holds the lock. An exception in the worker
// ends the open stream; the poller throws nothing.
class Transport : public Link
{
public:
  // `error` is empty if the options are valid; use the transport only then.
  // Throws if a thread cannot be started.
  Transport(
      const TransportOptions& options,
      const Executor& executor,
      std::string* error);

  // Ends the stream and the threads; waits for the sidecar at most for `grace`.
  ~Transport() override;

  void listen(Listener* listener) override;
  void open() override;
  bool send(wire::SessionRequest&& request, size_t bytes) override;
  void sendSnapshot(wire::SessionRequest&& request) override;
  void close(bool orderly) override;
  void wakeAt(TimePoint time) override;
  Depth depth() const override;

  size_t receiveBytesMax() const override
  {
    return options.channel.receiveBytesMax;
  }

private:
  struct Shared;

  static void deliver(const std::shared_ptr<Shared>& shared);

  void poll();
  void run();

  // The rest is for the worker only.

  bool step(TimePoint now);
  bool complete(TimePoint now);
  void follow(TimePoint now);
  void begin(uint64_t number);
  void advance(Stream* stream);
  void report(Stream* stream);
  void lose(uint64_t number, const std::string& reason, bool garbage);
  void recover(const char* why);
  TimePoint nextDeadline() const;
  void post();

  const TransportOptions options;
  const Executor executor;
  const std::shared_ptr<Shared> shared;

  Channels channels;
  grpc::CompletionQueue completions;
  std::list<std::unique_ptr<Stream>> streams;
  uint64_t begun = 0;                   // Number of the last stream begun.
  TimePoint retryAt = TimePoint::max(); // Retry after an exception.

  std::thread poller;
  std::thread worker;
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_TRANSPORT_HPP__
