#include <cstdlib>

#include <gtest/gtest.h>

#include "life.hpp"

// Thousands of random calls from seeds.

namespace allocator {
namespace brain {
namespace {

// SEED=... plays one life, ROUNDS=... so many.
TEST(RandomTest, TheBooksAddUpWhateverHappens)
{
  const char* one = std::getenv("SEED");
  const char* many = std::getenv("ROUNDS");
  const uint64_t first = one == nullptr ? 1 : std::strtoull(one, nullptr, 10);
  const uint64_t lives =
      many == nullptr ? 60 : std::strtoull(many, nullptr, 10);

  uint64_t offers = 0;
  uint64_t answers = 0;
  uint64_t sessions = 0;
  uint64_t slices = 0;
  uint64_t compared = 0;

  for (uint64_t seed = first; seed < first + (one == nullptr ? lives : 1);
       ++seed) {
    SeededChoices choices(seed);
    Life world(&choices, seed);
    for (int turn = 0; turn < 600; ++turn) {
      world.turn();
      ASSERT_EQ("", world.fault) << "SEED=" << seed << ", turn " << turn;
    }

    offers += world.offers;
    answers += world.answers;
    sessions += world.sessions;
    slices += world.slices;
    compared += world.compared();
  }

  // It was not idle.
  EXPECT_GT(offers, lives * 10);
  EXPECT_GT(answers, lives * 5);
  EXPECT_GT(sessions, lives);
  EXPECT_GT(slices, sessions);
  EXPECT_GT(compared, 0u);
}

} // namespace {
} // namespace brain {
} // namespace allocator {
