#include "session/backoff.hpp"

#include <set>

#include <gtest/gtest.h>

namespace allocator {
namespace session {
namespace {

const Backoff BACKOFF{Duration(50), Duration(1000)};


// Bounds double: 50, 100, 200, 400, 800, then stay at 1000. A delay is between
// half its bound and the bound.
TEST(BackoffTest, DoublesUntilTheMaximum)
{
  const int64_t bounds[] = {50, 100, 200, 400, 800, 1000, 1000, 1000};

  for (uint64_t seed = 0; seed < 200; ++seed) {
    for (uint32_t attempt = 1; attempt <= 8; ++attempt) {
      const int64_t delay = backoffDelay(attempt, seed, BACKOFF).count();
      EXPECT_GE(delay, bounds[attempt - 1] / 2) << attempt << " " << seed;
      EXPECT_LE(delay, bounds[attempt - 1]) << attempt << " " << seed;
    }
  }
}


TEST(BackoffTest, IsAFunctionOfItsArguments)
{
  for (uint32_t attempt = 1; attempt < 20; ++attempt) {
    EXPECT_EQ(
        backoffDelay(attempt, 7, BACKOFF), backoffDelay(attempt, 7, BACKOFF));
  }
}


// 200 seeds give many of the 501 possible delays, including some near both
// ends.
TEST(BackoffTest, SeedsSpread)
{
  std::set<int64_t> delays;

  for (uint64_t seed = 0; seed < 200; ++seed) {
    delays.insert(backoffDelay(10, seed, BACKOFF).count());
  }

  EXPECT_GT(delays.size(), 120u);
  EXPECT_LT(*delays.begin(), 530);
  EXPECT_GT(*delays.rbegin(), 970);
}


TEST(BackoffTest, ExtremesNeitherOverflowNorHang)
{
  const Backoff huge{Duration(INT64_MAX / 3), Duration(INT64_MAX)};
  EXPECT_GE(backoffDelay(UINT32_MAX, 1, huge).count(), INT64_MAX / 2);

  EXPECT_EQ(Duration(0), backoffDelay(5, 1, Backoff{Duration(0), Duration(0)}));
  EXPECT_EQ(
      Duration(0), backoffDelay(5, 1, Backoff{Duration(-9), Duration(-1)}));

  // An initial delay above the maximum is reduced to it.
  EXPECT_LE(
      backoffDelay(1, 1, Backoff{Duration(900), Duration(10)}), Duration(10));

  EXPECT_LE(backoffDelay(0, 1, BACKOFF), Duration(50));
}

} // namespace {
} // namespace session {
} // namespace allocator {
