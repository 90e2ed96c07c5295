#ifndef __ALLOCATOR_SESSION_QUEUE_HPP__
#define __ALLOCATOR_SESSION_QUEUE_HPP__

#include <cstddef>
#include <deque>
#include <utility>

namespace allocator {
namespace session {

// A queue that refuses items beyond its bounds on their number and on their
// total cost (bytes). It never blocks; the caller handles a refusal. Not
// synchronised.
template <typename T>
class BoundedQueue
{
public:
  BoundedQueue(size_t _countMax, size_t _costMax)
    : countMax(_countMax), costMax(_costMax)
  {
  }

  // Returns whether the item was taken; a refused item is unchanged. While the
  // total cost is 0, an item of any cost is taken, so that a costly item passes
  // eventually.
  bool push(T&& item, size_t cost)
  {
    if (count >= countMax) {
      return false;
    }

    if (costs > 0 && (cost > costMax || costs > costMax - cost)) {
      return false;
    }

    items.push_back(Item{std::move(item), cost, true});
    costs += cost;
    ++count;
    return true;
  }

  // Takes the item without counting it against the bounds. For a snapshot,
  // which is as large as the state and must leave room for other messages.
  void force(T&& item) { items.push_back(Item{std::move(item), 0, false}); }

  // Returns false if empty.
  bool pop(T* item)
  {
    if (items.empty()) {
      return false;
    }

    Item& front = items.front();
    *item = std::move(front.value);
    costs -= front.cost;
    count -= front.counted ? 1 : 0;
    items.pop_front();
    return true;
  }

  void clear()
  {
    items.clear();
    costs = 0;
    count = 0;
  }

  bool empty() const { return items.empty(); }
  bool full() const { return count >= countMax || costs >= costMax; }
  size_t size() const { return count; }
  size_t cost() const { return costs; }

private:
  struct Item
  {
    T value;
    size_t cost;
    bool counted;
  };

  const size_t countMax;
  const size_t costMax;

  std::deque<Item> items;
  size_t count = 0;
  size_t costs = 0;
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_QUEUE_HPP__
