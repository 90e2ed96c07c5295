#include "session/round_trips.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace allocator {
namespace session {
namespace {

using Time = RoundTrips::Time;


TEST(RoundTripsTest, NoneIsZero)
{
  EXPECT_EQ(Time(0), RoundTrips().percentile(0.5));
}


// Nearest rank over 1 to 100: the p-th percentile is p.
TEST(RoundTripsTest, PercentilesOfAHundred)
{
  RoundTrips times;

  for (int i = 100; i >= 1; --i) {
    times.add(Time(i));
  }

  EXPECT_EQ(Time(1), times.percentile(0.0));
  EXPECT_EQ(Time(50), times.percentile(0.50));
  EXPECT_EQ(Time(90), times.percentile(0.90));
  EXPECT_EQ(Time(99), times.percentile(0.99));
  EXPECT_EQ(Time(100), times.percentile(1.0));
}


// A new value invalidates the sorted cache.
TEST(RoundTripsTest, TheyMayBeAskedForInBetween)
{
  RoundTrips times(3);
  std::vector<Time> largest;

  for (int i : {5, 2, 9, 1, 1, 1}) {
    times.add(Time(i));
    EXPECT_EQ(times.percentile(1.0), times.percentile(1.0));
    largest.push_back(times.percentile(1.0));
  }

  EXPECT_EQ(
      (std::vector<Time>{Time(5), Time(5), Time(9), Time(9), Time(9), Time(1)}),
      largest);
}


TEST(RoundTripsTest, OnlyTheLatestCount)
{
  RoundTrips times(4);

  for (int i = 1; i <= 10; ++i) {
    times.add(Time(i));
  }

  // 7, 8, 9 and 10 remain.
  EXPECT_EQ(Time(7), times.percentile(0.25));
  EXPECT_EQ(Time(10), times.percentile(1.0));
}

} // namespace {
} // namespace session {
} // namespace allocator {
