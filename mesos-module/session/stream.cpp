#include "session/stream.hpp"

#include <algorithm>
#include <utility>

namespace allocator {
namespace session {
namespace {

// How long to wait for the call's status after a failed read. A sidecar that
// ends the call sends its status at once; without a status, the read failed
// because the message could not be parsed.
constexpr Duration GOODBYE{250};

constexpr int START = static_cast<int>(Stream::Operation::START);
constexpr int READ = static_cast<int>(Stream::Operation::READ);
constexpr int WRITE = static_cast<int>(Stream::Operation::WRITE);
constexpr int WRITES_DONE = static_cast<int>(Stream::Operation::WRITES_DONE);
constexpr int FINISH = static_cast<int>(Stream::Operation::FINISH);

} // namespace {


Stream::Stream(
    uint64_t _number,
    const std::shared_ptr<grpc::Channel>& channel,
    const std::string& token,
    grpc::CompletionQueue* queue)
  : number(_number), stub(wire::SessionService::NewStub(channel))
{
  for (int i = START; i <= FINISH; ++i) {
    tags[i] = Tag{this, static_cast<Operation>(i), false, nullptr};
  }

  if (!token.empty()) {
    context.AddMetadata("authorization", "Bearer " + token);
  }

  call = stub->AsyncSession(&context, queue, &tags[START]);
}


bool Stream::canWrite() const
{
  return writable && !writing && !leaving && !over && !isCut;
}


void Stream::write(const wire::SessionRequest& request)
{
  writing = true;
  call->Write(request, &tags[WRITE]);
}


bool Stream::canRead() const
{
  return readable && !reading && !over;
}


void Stream::read()
{
  reading = true;
  incoming.Clear();
  call->Read(&incoming, &tags[READ]);
}


void Stream::leave(TimePoint until)
{
  if (starting) {
    cut();
    return;
  }

  leaving = true;
  cutAt = std::min(cutAt, until);
  proceed();
}


void Stream::cut()
{
  if (!isCut) {
    isCut = true;
    context.TryCancel();
  }
}


bool Stream::complete(
    Operation operation,
    bool ok,
    TimePoint now,
    wire::SessionResponse* response)
{
  bool received = false;

  switch (operation) {
    case Operation::START:
      starting = false;
      readable = writable = ok;
      over = !ok;
      break;
    case Operation::READ:
      reading = false;

      if (ok) {
        received = true;
        *response = std::move(incoming);
      } else {
        over = true;
        cutAt = std::min(cutAt, now + GOODBYE);
      }

      break;
    case Operation::WRITE:
    case Operation::WRITES_DONE:
      // A call that takes no more messages may still deliver one, such as the
      // error that ended it.
      writing = false;
      writable = writable && ok;
      break;
    case Operation::FINISH:
      finished_ = true;
      cutAt = TimePoint::max();
      break;
  }

  proceed();
  return received;
}


void Stream::proceed()
{
  if (starting || finishing || writing) {
    return;
  }

  if (over) {
    finishing = true;
    call->Finish(&status, &tags[FINISH]);
  } else if (leaving && writable) {
    writing = true;
    writable = false;
    call->WritesDone(&tags[WRITES_DONE]);
  }
}


void Stream::expire(TimePoint now)
{
  if (now < cutAt) {
    return;
  }

  cutAt = TimePoint::max();
  garbage_ = over && !leaving && !isCut;
  cut();
}


std::string Stream::reason() const
{
  if (garbage_) {
    return "the sidecar sent bytes that are not a SessionResponse";
  }

  if (status.ok()) {
    return "the sidecar ended the stream";
  }

  return "the stream ended: " + status.error_message() + " (gRPC status " +
      std::to_string(status.error_code()) + ")";
}

} // namespace session {
} // namespace allocator {
