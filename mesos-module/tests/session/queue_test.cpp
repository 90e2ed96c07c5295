#include "session/queue.hpp"

#include <deque>
#include <memory>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace allocator {
namespace session {
namespace {

TEST(QueueTest, RefusesWhatIsBeyondTheCount)
{
  BoundedQueue<std::string> queue(2, 100);
  std::string third = "third";

  EXPECT_TRUE(queue.push("first", 1));
  EXPECT_TRUE(queue.push("second", 1));
  EXPECT_TRUE(queue.full());
  EXPECT_FALSE(queue.push(std::move(third), 1));
  EXPECT_EQ("third", third); // Unchanged.

  std::string item;
  EXPECT_TRUE(queue.pop(&item));
  EXPECT_EQ("first", item);
  EXPECT_TRUE(queue.push(std::move(third), 1));
}


TEST(QueueTest, RefusesWhatIsBeyondTheCost)
{
  BoundedQueue<int> queue(10, 100);

  EXPECT_TRUE(queue.push(1, 60));
  EXPECT_FALSE(queue.push(2, 41));
  EXPECT_TRUE(queue.push(2, 40));
  EXPECT_TRUE(queue.full());
  EXPECT_FALSE(queue.push(3, 1));
  EXPECT_FALSE(queue.push(3, SIZE_MAX)); // The sum must not wrap around.
}


TEST(QueueTest, AnEmptyQueueTakesAnyItem)
{
  BoundedQueue<int> queue(10, 100);

  EXPECT_TRUE(queue.push(1, 1000));
  EXPECT_FALSE(queue.push(2, 1));

  int item = 0;
  EXPECT_TRUE(queue.pop(&item));
  EXPECT_EQ(0u, queue.cost());
  EXPECT_TRUE(queue.push(2, 1));
}


TEST(QueueTest, AForcedItemKeepsItsPlaceAndTakesNoRoom)
{
  BoundedQueue<int> queue(2, 100);

  queue.force(1);
  queue.force(2);
  EXPECT_TRUE(queue.push(3, 60));
  EXPECT_TRUE(queue.push(4, 40));
  EXPECT_FALSE(queue.push(5, 0));
  EXPECT_EQ(2u, queue.size());
  EXPECT_EQ(100u, queue.cost());

  for (int wanted = 1; wanted <= 4; ++wanted) {
    int item = 0;
    EXPECT_TRUE(queue.pop(&item));
    EXPECT_EQ(wanted, item);
  }

  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(0u, queue.size());
}


TEST(QueueTest, TakesWhatCannotBeCopied)
{
  BoundedQueue<std::unique_ptr<int>> queue(1, 1);
  std::unique_ptr<int> item;

  EXPECT_TRUE(queue.push(std::unique_ptr<int>(new int(5)), 1));
  EXPECT_TRUE(queue.pop(&item));
  EXPECT_EQ(5, *item);
  EXPECT_FALSE(queue.pop(&item));
}


// Compares a random history with a deque and two sums.
TEST(QueueTest, AgreesWithAModel)
{
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    BoundedQueue<int> queue(5, 50);
    std::deque<std::pair<int, size_t>> model;
    size_t cost = 0;

    for (int i = 0; i < 500; ++i) {
      const size_t more = random() % 30;

      if (random() % 2 == 0) {
        const bool fits = model.size() < 5 && (cost == 0 || cost + more <= 50);

        ASSERT_EQ(fits, queue.push(int(i), more)) << "seed " << seed;

        if (fits) {
          model.emplace_back(i, more);
          cost += more;
        }
      } else {
        int item = -1;
        ASSERT_EQ(!model.empty(), queue.pop(&item)) << "seed " << seed;

        if (!model.empty()) {
          ASSERT_EQ(model.front().first, item) << "seed " << seed;
          cost -= model.front().second;
          model.pop_front();
        }
      }

      ASSERT_EQ(model.size(), queue.size());
      ASSERT_EQ(cost, queue.cost());
      ASSERT_LE(queue.size(), 5u);
    }
  }
}

} // namespace {
} // namespace session {
} // namespace allocator {
