#include "session/forward_clock.hpp"

#include <gtest/gtest.h>

namespace allocator {
namespace session {
namespace {

TEST(ForwardClockTest, IsTheMachinesWhileThatRunsOn)
{
  ForwardClock clock;
  for (int64_t ms : {0, 5, 5, 1000, 3600000}) {
    EXPECT_EQ(ms, clock.at(ms));
  }
}


TEST(ForwardClockTest, GoesOnWhereTheMachinesIsSetBack)
{
  ForwardClock clock;
  EXPECT_EQ(10000, clock.at(10000));
  EXPECT_EQ(10000, clock.at(4000));
  EXPECT_EQ(10250, clock.at(4250));
  // The machine's clock is set back once more, then forward beyond the old
  // time.
  EXPECT_EQ(10250, clock.at(-50));
  EXPECT_EQ(10300, clock.at(0));
  EXPECT_EQ(30300, clock.at(20000));
}

} // namespace {
} // namespace session {
} // namespace allocator {
