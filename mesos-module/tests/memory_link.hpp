#ifndef __ALLOCATOR_TESTS_MEMORY_LINK_HPP__
#define __ALLOCATOR_TESTS_MEMORY_LINK_HPP__

#include <cstddef>
#include <utility>

#include "session/link.hpp"
#include "session/queue.hpp"

namespace allocator {
namespace session {

// An in-memory link: messages wait in the queue until the test lets a sidecar
// take them; the test sets the time.
class MemoryLink : public Link
{
public:
  MemoryLink(size_t messagesMax, size_t bytesMax) : queue(messagesMax, bytesMax)
  {
  }

  void listen(Listener* _listener) override { listener = _listener; }

  void open() override
  {
    isOpen = true;
    ++streams;
    queue.clear();
  }

  bool send(wire::SessionRequest&& request, size_t bytes) override
  {
    return isOpen && queue.push(std::move(request), bytes);
  }

  void sendSnapshot(wire::SessionRequest&& request) override
  {
    if (isOpen) {
      queue.force(std::move(request));
    }
  }

  void close(bool orderly) override
  {
    isOpen = false;
    closedOrderly = orderly;
    queue.clear();
  }

  void wakeAt(TimePoint time) override { alarm = time; }

  size_t receiveBytesMax() const override { return 5 << 20; }
  Depth depth() const override { return Depth{queue.size(), queue.cost()}; }

  Listener* listener = nullptr;
  bool isOpen = false;
  bool closedOrderly = false;
  int streams = 0;
  TimePoint alarm = TimePoint::max();
  BoundedQueue<wire::SessionRequest> queue;
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_MEMORY_LINK_HPP__
