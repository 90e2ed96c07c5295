#ifndef __ALLOCATOR_SESSION_LINK_HPP__
#define __ALLOCATOR_SESSION_LINK_HPP__

#include <cstddef>
#include <functional>
#include <string>

#include "allocator/v1/session.pb.h"

#include "session/clock.hpp"

namespace allocator {
namespace session {

namespace wire = ::allocator::v1;

// Runs a function later on the owner's own thread, or actor, in the order
// of the calls and one at a time. It may be called by any thread and must
// not wait for the function.
using Executor = std::function<void(std::function<void()>)>;


// One stream at a time to the sidecar, and an alarm clock.
//
// Everything is called, and calls back, on the owner's executor, so its
// user needs no lock. No method waits, and no method calls the listener.
class Link
{
public:
  class Listener
  {
  public:
    virtual ~Listener() {}

    virtual void received(wire::SessionResponse&& response) = 0;

    // The stream is over although nobody closed it. It is garbage where
    // the sidecar sent bytes that are no SessionResponse.
    virtual void lost(const std::string& reason, bool garbage) = 0;

    virtual void woken() = 0;
  };

  struct Depth
  {
    size_t messages;
    size_t bytes;
  };

  virtual ~Link() {}

  // Who is called back; nobody where it is null.
  virtual void listen(Listener* listener) = 0;

  // Begins a new stream. Nothing is heard any more of an earlier one.
  virtual void open() = 0;

  // Whether the outgoing queue had room.
  virtual bool send(wire::SessionRequest&& request, size_t bytes) = 0;

  // Sends a part of a snapshot; it waits outside of the queue's bounds.
  virtual void sendSnapshot(wire::SessionRequest&& request) = 0;

  // Ends the stream. In an orderly end the sidecar is told, and has a
  // moment to take leave; else the stream is cut.
  virtual void close(bool orderly) = 0;

  // Sets the alarm; it rings once, and replaces an earlier one.
  virtual void wakeAt(TimePoint time) = 0;

  // No larger message of the sidecar is read.
  virtual size_t receiveBytesMax() const = 0;

  // What waits to be sent.
  virtual Depth depth() const = 0;
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_LINK_HPP__
