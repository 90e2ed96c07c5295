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

  // What may wait to be sent, a snapshot apart.
  size_t queueMessagesMax = 1024;
  size_t queueBytesMax = 64 << 20;

  // So many messages of the sidecar may wait for the owner; then none is
  // read, and the sidecar has to wait.
  size_t incomingMax = 16;

  // The sidecar's time to take leave.
  Duration grace{500};

  // Starts a thread; a test may bring its own.
  std::function<std::thread(std::function<void()>)> newThread =
      [](std::function<void()> function) {
        return std::thread(std::move(function));
      };
};


// A link over gRPC.
//
// One thread does all the work: it starts streams, writes, reads, and
// watches the time. A second one only carries the completions of gRPC to
// the first, which could not wait for them and for the owner at once.
// Neither ever calls the owner or its executor while it holds the lock.
// What is thrown in the first costs the stream that is open; the second has
// nothing to throw.
class Transport : public Link
{
public:
  // Puts what is wrong with the options into `error`, which is empty
  // where nothing is; only then may the transport be used. Throws where a
  // thread cannot be started.
  Transport(
      const TransportOptions& options,
      const Executor& executor,
      std::string* error);

  // Ends the stream and the threads. It waits for a sidecar that takes
  // leave, and no longer than the grace.
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

  void pump();
  void run();

  // Everything below is for the thread that works.

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
  uint64_t begun = 0; // The number of the last stream that began.
  TimePoint retryAt = TimePoint::max(); // What could not be done.

  std::thread pumper;
  std::thread worker;
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_TRANSPORT_HPP__
