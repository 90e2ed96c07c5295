#ifndef __ALLOCATOR_TESTS_LOOP_HPP__
#define __ALLOCATOR_TESTS_LOOP_HPP__

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "session/clock.hpp"

namespace allocator {
namespace session {

// An owner's executor: runs functions posted by any thread on the thread that
// calls `runUntil`.
class Loop
{
public:
  void post(std::function<void()> function)
  {
    std::lock_guard<std::mutex> lock(mutex);
    functions.push_back(std::move(function));
    changed.notify_one();
  }

  // Runs posted functions until the condition holds (checked after each) or the
  // deadline passes; returns the condition.
  bool runUntil(TimePoint deadline, const std::function<bool()>& condition)
  {
    while (!condition()) {
      std::function<void()> function;

      {
        std::unique_lock<std::mutex> lock(mutex);

        if (!changed.wait_until(
                lock, deadline, [this]() { return !functions.empty(); })) {
          return false;
        }

        function = std::move(functions.front());
        functions.pop_front();
      }

      function();
    }

    return true;
  }

  void runFor(Duration duration)
  {
    runUntil(Clock::now() + duration, []() { return false; });
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> functions;
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_LOOP_HPP__
