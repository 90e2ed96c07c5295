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

// Runs functions later on the owner's thread or actor, in order and one at a
// time. Callable from any thread; does not wait for the function.
using Executor = std::function<void(std::function<void()>)>;


// The keeper's access to the network and to time: one stream at a time to the
// sidecar, and one alarm.
//
// All calls and callbacks run on the owner's executor, so the keeper needs no
// lock. No method blocks or calls the listener.
class Link
{
public:
  class Listener
  {
  public:
    virtual ~Listener() {}

    virtual void received(wire::SessionResponse&& response) = 0;

    // The stream ended without `close`. `garbage`: the sidecar sent bytes that
    // are not a SessionResponse.
    virtual void lost(const std::string& reason, bool garbage) = 0;

    virtual void woken() = 0;
  };

  struct Depth
  {
    size_t messages;
    size_t bytes;
  };

  virtual ~Link() {}

  // Sets the listener; null for none.
  virtual void listen(Listener* listener) = 0;

  // Begins a new stream; callbacks for an earlier one cease.
  virtual void open() = 0;

  // Returns whether the outgoing queue had room.
  virtual bool send(wire::SessionRequest&& request, size_t bytes) = 0;

  // Sends a part of a snapshot; not limited by the queue's bounds.
  virtual void sendSnapshot(wire::SessionRequest&& request) = 0;

  // Ends the stream. If `orderly`, the sidecar is notified and gets a moment to
  // finish; otherwise the stream is cut.
  virtual void close(bool orderly) = 0;

  // Sets the alarm, which fires once; replaces an earlier one.
  virtual void wakeAt(TimePoint time) = 0;

  // The size limit on the sidecar's messages.
  virtual size_t receiveBytesMax() const = 0;

  // Outgoing messages not sent yet.
  virtual Depth depth() const = 0;
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_LINK_HPP__
