#ifndef __ALLOCATOR_SESSION_ERRANDS_HPP__
#define __ALLOCATOR_SESSION_ERRANDS_HPP__

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

namespace allocator {
namespace session {

// What other threads leave for an actor to do, in their order. It does so when
// it is called the next time, whoever calls: an answer of the sidecar need not
// wait behind all that a master has said meanwhile. Nothing relies on that
// order, for a decision says which facts it knew of, and the books judge it by
// those that are booked.
class Errands
{
public:
  using Errand = std::function<void()>;

  void add(Errand errand)
  {
    const std::lock_guard<std::mutex> lock(mutex);
    waiting.push_back(std::move(errand));
    any.store(true, std::memory_order_release);
  }

  // For the actor alone. What is done does not throw.
  void run()
  {
    while (!running && any.load(std::memory_order_acquire)) {
      running = true;
      take()();
      running = false;
    }
  }

private:
  Errand take()
  {
    const std::lock_guard<std::mutex> lock(mutex);
    Errand errand = std::move(waiting.front());
    waiting.pop_front();
    any.store(!waiting.empty(), std::memory_order_release);
    return errand;
  }

  std::mutex mutex;
  std::deque<Errand> waiting;
  std::atomic<bool> any{false};
  bool running = false; // Errands call the actor, too.
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_ERRANDS_HPP__
