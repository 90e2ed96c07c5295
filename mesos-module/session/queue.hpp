#ifndef __ALLOCATOR_SESSION_QUEUE_HPP__
#define __ALLOCATOR_SESSION_QUEUE_HPP__

#include <cstddef>
#include <deque>
#include <utility>

namespace allocator {
namespace session {

// A queue that refuses what it has no room for.
//
// It is bounded twice: by the number of items and by what they cost
// together (bytes). It never waits and never grows: what a refusal means
// is for its user to say. It is not synchronised.
template <typename T>
class BoundedQueue
{
public:
  BoundedQueue(size_t _countMax, size_t _costMax)
    : countMax(_countMax), costMax(_costMax)
  {
  }

  // Whether the item was taken; where not, it is left as it was. A queue
  // with no costs takes an item whatever that costs, else it would never
  // get through.
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

  // Takes the item in any case and counts it nowhere. It is for a load
  // that comes once and whose size something else bounds (a snapshot,
  // which is as large as the state), so that it leaves the room to others.
  void force(T&& item) { items.push_back(Item{std::move(item), 0, false}); }

  // Whether there was an item to give.
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
