#include "session/transport.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include <grpc/grpc.h>

#include "session/queue.hpp"
#include "session/stream.hpp"

namespace allocator {
namespace session {
namespace {

// Keeps gRPC initialized. Otherwise the destructor of its last user would wait
// seconds for gRPC's threads.
void keepGrpc()
{
  static const bool kept = (grpc_init(), true);
  (void)kept;
}

} // namespace {


// State shared by the owner's executor and the two threads, guarded by `mutex`.
struct Transport::Shared
{
  explicit Shared(const TransportOptions& options)
    : outgoing(options.queueMessagesMax, options.queueBytesMax),
      incoming(options.incomingMax, SIZE_MAX)
  {
  }

  // Wakes the worker; needs the lock.
  void touch()
  {
    touched = true;
    changed.notify_one();
  }

  mutable std::mutex mutex;
  std::condition_variable changed;
  bool touched = false;

  // For the worker.
  uint64_t streams = 0; // Streams opened; the last one is current.
  bool open = false;    // Whether the current stream should continue.
  bool orderly = false; // How it should end otherwise.
  bool stopping = false;
  TimePoint alarm = TimePoint::max();
  BoundedQueue<wire::SessionRequest> outgoing;

  // Completions, in order.
  Stream::Tag* firstCompleted = nullptr;
  Stream::Tag* lastCompleted = nullptr;

  // For the owner.
  BoundedQueue<wire::SessionResponse> incoming;
  bool lost = false;
  std::string lostReason;
  bool lostGarbage = false;
  bool rung = false;
  bool posted = false; // A delivery is scheduled.

  // Used on the owner's executor only.
  Link::Listener* listener = nullptr;
};


Transport::Transport(
    const TransportOptions& _options,
    const Executor& _executor,
    std::string* error)
  : options(_options),
    executor(_executor),
    shared(std::make_shared<Shared>(_options)),
    channels(_options.channel, error)
{
  if (!error->empty()) {
    return;
  }

  keepGrpc();
  poller = options.newThread([this]() { poll(); });

  try {
    worker = options.newThread([this]() { run(); });
  } catch (...) {
    completions.Shutdown();
    poller.join();
    throw;
  }
}


Transport::~Transport()
{
  {
    std::lock_guard<std::mutex> lock(shared->mutex);
    shared->stopping = true;
    shared->open = false;
    shared->touch();
  }

  if (worker.joinable()) {
    worker.join();
    poller.join();
  }
}


void Transport::listen(Listener* listener)
{
  shared->listener = listener;
}


void Transport::open()
{
  std::lock_guard<std::mutex> lock(shared->mutex);
  ++shared->streams;
  shared->open = true;
  shared->outgoing.clear();
  shared->incoming.clear();
  shared->lost = false;
  shared->touch();
}


bool Transport::send(wire::SessionRequest&& request, size_t bytes)
{
  std::lock_guard<std::mutex> lock(shared->mutex);

  if (!shared->open || !shared->outgoing.push(std::move(request), bytes)) {
    return false;
  }

  shared->touch();
  return true;
}


void Transport::sendSnapshot(wire::SessionRequest&& request)
{
  std::lock_guard<std::mutex> lock(shared->mutex);

  if (shared->open) {
    shared->outgoing.force(std::move(request));
    shared->touch();
  }
}


void Transport::close(bool orderly)
{
  std::lock_guard<std::mutex> lock(shared->mutex);
  shared->open = false;
  shared->orderly = orderly;
  shared->outgoing.clear();
  shared->incoming.clear();
  shared->lost = false;
  shared->touch();
}


void Transport::wakeAt(TimePoint time)
{
  std::lock_guard<std::mutex> lock(shared->mutex);
  shared->alarm = time;
  shared->touch();
}


Link::Depth Transport::depth() const
{
  std::lock_guard<std::mutex> lock(shared->mutex);
  return Depth{shared->outgoing.size(), shared->outgoing.cost()};
}


// Runs on the owner's executor, possibly after the transport was destroyed.
void Transport::deliver(const std::shared_ptr<Shared>& shared)
{
  std::vector<wire::SessionResponse> messages;
  uint64_t stream;
  bool rung;

  {
    std::lock_guard<std::mutex> lock(shared->mutex);
    wire::SessionResponse message;

    while (shared->incoming.pop(&message)) {
      messages.push_back(std::move(message));
    }

    stream = shared->streams;
    rung = shared->rung;
    shared->rung = shared->posted = false;
    shared->touch(); // There is room to read again.
  }

  // The listener may close the stream, open another, or unregister.
  const auto current = [&]() {
    std::lock_guard<std::mutex> lock(shared->mutex);
    return shared->listener != nullptr && shared->open &&
        shared->streams == stream;
  };

  for (wire::SessionResponse& message : messages) {
    if (!current()) {
      break;
    }

    shared->listener->received(std::move(message));
  }

  std::string reason;
  bool garbage = false;
  bool lost = false;

  if (current()) {
    std::lock_guard<std::mutex> lock(shared->mutex);

    // Deliver messages that arrived meanwhile first.
    lost = shared->lost && shared->incoming.empty();

    if (lost) {
      shared->lost = shared->open = false;
      reason.swap(shared->lostReason);
      garbage = shared->lostGarbage;
    }
  }

  if (lost) {
    shared->listener->lost(reason, garbage);
  }

  if (rung && shared->listener != nullptr) {
    shared->listener->woken();
  }
}


void Transport::poll()
{
  void* tag;
  bool ok;

  while (completions.Next(&tag, &ok)) {
    Stream::Tag* completed = static_cast<Stream::Tag*>(tag);

    std::lock_guard<std::mutex> lock(shared->mutex);
    completed->ok = ok;
    completed->next = nullptr;
    (shared->firstCompleted == nullptr ? shared->firstCompleted
                                       : shared->lastCompleted->next) =
        completed;
    shared->lastCompleted = completed;
    shared->touch();
  }
}


void Transport::run()
{
  for (bool more = true; more;) {
    {
      std::unique_lock<std::mutex> lock(shared->mutex);
      const TimePoint deadline = nextDeadline();
      const auto touched = [this]() { return shared->touched; };

      // Some standard libraries overflow on a wait until the maximum time.
      if (deadline == TimePoint::max()) {
        shared->changed.wait(lock, touched);
      } else {
        shared->changed.wait_until(lock, deadline, touched);
      }

      shared->touched = false;
    }

    try {
      more = step(Clock::now());
    } catch (const std::exception& error) {
      recover(error.what());
    } catch (...) {
      recover("an exception of an unknown type");
    }
  }

  completions.Shutdown();
}


// Handles an exception in the worker, such as `std::bad_alloc`. A message may
// have been lost, so the stream ends. The worker soon retries its other work.
void Transport::recover(const char* why)
{
  constexpr Duration SOON{100};
  retryAt = Clock::now() + SOON;

  for (const std::unique_ptr<Stream>& stream : streams) {
    stream->cut();
  }

  try {
    lose(begun, std::string("the module failed: ") + why, false);
  } catch (...) {
    // The owner notices the end of the stream, or a missed deadline.
  }
}


// One round of the worker; returns false when it has nothing left to do.
bool Transport::step(TimePoint now)
{
  retryAt = TimePoint::max();

  while (complete(now)) {
  }

  follow(now);

  for (const std::unique_ptr<Stream>& stream : streams) {
    stream->expire(now);
    advance(stream.get());
  }

  for (auto stream = streams.begin(); stream != streams.end();) {
    if ((*stream)->finished()) {
      report(stream->get());
      stream = streams.erase(stream);
    } else {
      ++stream;
    }
  }

  {
    std::lock_guard<std::mutex> lock(shared->mutex);

    if (shared->alarm <= now) {
      shared->alarm = TimePoint::max();
      shared->rung = true;
    }

    if (shared->stopping && streams.empty()) {
      return false;
    }
  }

  post();
  return true;
}


// Handles one completion; returns whether there was one.
bool Transport::complete(TimePoint now)
{
  Stream::Tag* tag;
  bool ok;

  {
    std::lock_guard<std::mutex> lock(shared->mutex);
    tag = shared->firstCompleted;

    if (tag == nullptr) {
      return false;
    }

    shared->firstCompleted = tag->next;
    ok = tag->ok;
  }

  Stream* stream = tag->stream;
  wire::SessionResponse response;

  if (!stream->complete(tag->operation, ok, now, &response)) {
    return true;
  }

  std::lock_guard<std::mutex> lock(shared->mutex);

  if (shared->open && shared->streams == stream->number) {
    // There is room: only this thread adds, and it checked before reading.
    shared->incoming.push(std::move(response), 0);
  }

  return true;
}


// Begins and ends streams as the owner requested.
void Transport::follow(TimePoint now)
{
  uint64_t wanted;
  uint64_t last;
  bool orderly;

  {
    std::lock_guard<std::mutex> lock(shared->mutex);
    wanted = shared->open ? shared->streams : 0;
    last = shared->streams;
    orderly = shared->orderly;
  }

  for (const std::unique_ptr<Stream>& stream : streams) {
    if (stream->number == wanted) {
      return;
    }

    if (orderly && stream->number == last) {
      stream->leave(now + options.grace);
    } else {
      stream->cut();
    }
  }

  if (wanted > begun) {
    begun = wanted;
    begin(wanted);
  }
}


void Transport::begin(uint64_t number)
{
  std::string error;
  const std::string token = channels.token(&error);

  if (!error.empty()) {
    lose(number, error, false);
    return;
  }

  // Add to the list first: once begun, a call must be tracked until it ends.
  streams.emplace_back();

  try {
    const std::shared_ptr<grpc::Channel> channel = channels.create();

    // The poller accesses the tags under the lock.
    std::lock_guard<std::mutex> lock(shared->mutex);
    streams.back().reset(new Stream(number, channel, token, &completions));
  } catch (...) {
    streams.pop_back();
    throw;
  }
}


// Starts the next possible operations of the stream.
void Transport::advance(Stream* stream)
{
  wire::SessionRequest request;
  bool hasRequest = false;
  bool hasRoom = true;

  {
    std::lock_guard<std::mutex> lock(shared->mutex);

    if (shared->open && shared->streams == stream->number) {
      hasRoom = !shared->incoming.full();
      hasRequest = stream->canWrite() && shared->outgoing.pop(&request);
    }
  }

  if (hasRequest) {
    stream->write(request);
  }

  // Messages of an earlier stream are read and dropped.
  if (hasRoom && stream->canRead()) {
    stream->read();
  }
}


void Transport::report(Stream* stream)
{
  lose(stream->number, stream->reason(), stream->garbage());
}


// Reports once that the current stream ended.
void Transport::lose(uint64_t number, const std::string& reason, bool garbage)
{
  std::lock_guard<std::mutex> lock(shared->mutex);

  if (shared->open && shared->streams == number && !shared->lost) {
    shared->lostReason = reason;
    shared->lostGarbage = garbage;
    shared->lost = true;
  }
}


// Needs the lock.
TimePoint Transport::nextDeadline() const
{
  TimePoint deadline = std::min(shared->alarm, retryAt);

  for (const std::unique_ptr<Stream>& stream : streams) {
    deadline = std::min(deadline, stream->deadline());
  }

  return deadline;
}


void Transport::post()
{
  {
    std::lock_guard<std::mutex> lock(shared->mutex);

    const bool news = !shared->incoming.empty() || shared->lost || shared->rung;

    if (!news || shared->posted) {
      return;
    }

    shared->posted = true;
  }

  try {
    const std::shared_ptr<Shared> copy = shared;
    executor([copy]() { deliver(copy); });
  } catch (...) {
    std::lock_guard<std::mutex> lock(shared->mutex);
    shared->posted = false;
    throw;
  }
}

} // namespace session {
} // namespace allocator {
