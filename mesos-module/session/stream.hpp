#ifndef __ALLOCATOR_SESSION_STREAM_HPP__
#define __ALLOCATOR_SESSION_STREAM_HPP__

#include <cstdint>
#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>

#include "allocator/v1/session.grpc.pb.h"

#include "session/clock.hpp"

namespace allocator {
namespace session {

namespace wire = ::allocator::v1;

// One gRPC call: which of its operations are under way, which may begin.
// It belongs to one thread, which tells it of the completions that the
// queue gives.
class Stream
{
public:
  enum class Operation
  {
    START,
    READ,
    WRITE,
    WRITES_DONE,
    FINISH,
  };

  // What a completion is tagged with. One at most is under way for each
  // operation, so that completions can be handed on in a list of their tags.
  struct Tag
  {
    Stream* stream;
    Operation operation;
    bool ok;
    Tag* next;
  };

  // Begins the call. A token that is not empty goes with it.
  Stream(
      uint64_t number,
      const std::shared_ptr<grpc::Channel>& channel,
      const std::string& token,
      grpc::CompletionQueue* queue);

  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const uint64_t number;

  bool canWrite() const;
  void write(const wire::SessionRequest& request);

  bool canRead() const;
  void read();

  // Tells the sidecar that nothing more comes, and lets it take leave
  // until `until`; a call that is not answered yet is cut.
  void leave(TimePoint until);

  void cut();

  // Takes a completion. Where it brought a message, this is moved to
  // `response` and the result is true.
  bool complete(
      Operation operation,
      bool ok,
      TimePoint now,
      wire::SessionResponse* response);

  // When to call `expire`.
  TimePoint deadline() const { return cutAt; }
  void expire(TimePoint now);

  // No operation is under way and none may begin: it can be destroyed.
  bool finished() const { return finished_; }

  // Why the call is over, once it finished.
  std::string reason() const;

  // The sidecar sent bytes that are no SessionResponse: reading failed
  // though it had not ended the call.
  bool garbage() const { return garbage_; }

private:
  void proceed();

  Tag tags[5];

  grpc::ClientContext context;
  std::unique_ptr<wire::SessionService::Stub> stub;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<
      wire::SessionRequest,
      wire::SessionResponse>>
      call;

  wire::SessionResponse incoming;
  grpc::Status status;

  bool starting = true;
  bool reading = false;
  bool writing = false;
  bool finishing = false;
  bool finished_ = false;

  bool readable = false;
  bool writable = false;
  bool leaving = false;
  bool over = false; // Nothing more can be read.
  bool isCut = false;
  bool garbage_ = false;

  TimePoint cutAt = TimePoint::max();
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_STREAM_HPP__
