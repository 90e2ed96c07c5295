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

// One gRPC call: tracks which operations are in progress and which may begin.
// Used by one thread, which passes the completions to `complete`.
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

  // Tag of a completion. A stream has one tag per operation, since no operation
  // is in progress twice. `next` links completed tags into a list.
  struct Tag
  {
    Stream* stream;
    Operation operation;
    bool ok;
    Tag* next;
  };

  // Begins the call, with the token unless it is empty.
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

  // `leave` half-closes the stream and lets the sidecar finish until `until`; a
  // call that has not started is cut.
  void leave(TimePoint until);

  void cut();

  // Handles a completion. Returns true if it brought a message, which is moved
  // to `response`.
  bool complete(
      Operation operation,
      bool ok,
      TimePoint now,
      wire::SessionResponse* response);

  // When to call `expire`.
  TimePoint deadline() const { return cutAt; }
  void expire(TimePoint now);

  // Whether the stream can be destroyed: no operation is in progress, and none
  // may begin.
  bool finished() const { return finished_; }

  // Why the call ended; valid when finished.
  std::string reason() const;

  // Whether the sidecar sent bytes that are not a SessionResponse: a read
  // failed although the sidecar had not ended the call.
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
  bool over = false; // Reading has ended.
  bool isCut = false;
  bool garbage_ = false;

  TimePoint cutAt = TimePoint::max();
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_STREAM_HPP__
