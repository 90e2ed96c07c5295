#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "session/errands.hpp"

namespace allocator {
namespace session {
namespace {

TEST(ErrandsTest, TheyAreDoneInTheirOrder)
{
  Errands errands;
  std::string done;
  errands.add([&]() { done += "a"; });
  errands.add([&]() { done += "b"; });
  errands.run();
  EXPECT_EQ("ab", done);
}


TEST(ErrandsTest, EachIsDoneOnce)
{
  Errands errands;
  int done = 0;
  errands.add([&]() { ++done; });
  errands.run();
  errands.run();
  EXPECT_EQ(1, done);
}


TEST(ErrandsTest, OneIsFinishedBeforeTheNextBegins)
{
  Errands errands;
  std::string done;
  errands.add([&]() {
    errands.run(); // It calls the actor.
    done += "a";
  });
  errands.add([&]() { done += "b"; });
  errands.run();
  EXPECT_EQ("ab", done);
}


TEST(ErrandsTest, NoneIsLostThatOtherThreadsLeave)
{
  constexpr int EACH = 1000;
  Errands errands;
  int done = 0;

  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&]() {
      for (int i = 0; i < EACH; ++i) {
        errands.add([&]() { ++done; });
      }
    });
  }
  while (done < EACH) {
    errands.run();
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  errands.run();
  EXPECT_EQ(2 * EACH, done);
}

} // namespace {
} // namespace session {
} // namespace allocator {
