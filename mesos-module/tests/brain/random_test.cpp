#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/brain/life.hpp"
#include "tests/brain/session_life.hpp"

// Thousands of random calls, from seeds. `make test-all` runs more of them.

namespace allocator {
namespace brain {
namespace {

// Totals over all seeds.
struct Sum
{
  uint64_t offers = 0;
  uint64_t inverseOffers = 0;
  uint64_t answers = 0;
  uint64_t sessions = 0;
  uint64_t slices = 0;
  uint64_t compared = 0;
};


// Runs `lives` seeds. SEED=7 runs this seed only; ROUNDS=1000 replaces `lives`.
template <typename Life>
void play(uint64_t lives, uint64_t turns, Sum* sum)
{
  const char* one = std::getenv("SEED");
  const char* many = std::getenv("ROUNDS");
  const uint64_t first = one == nullptr ? 1 : std::strtoull(one, nullptr, 10);
  lives = many == nullptr ? lives : std::strtoull(many, nullptr, 10);
  lives = one == nullptr ? lives : 1;

  for (uint64_t seed = first; seed < first + lives; ++seed) {
    SeededChoices choices(seed);
    Life life(&choices, seed);
    for (uint64_t turn = 0; turn < turns; ++turn) {
      life.turn();
      ASSERT_EQ("", life.fault) << "SEED=" << seed << ", turn " << turn;
    }

    sum->offers += life.offers;
    sum->inverseOffers += life.inverseOffers;
    sum->answers += life.answers;
    sum->sessions += life.sessions;
    sum->slices += life.slices;
    sum->compared += life.compared();
  }

  // Make sure that the seeds cover these cases.
  EXPECT_GT(sum->offers, lives * 10);
  EXPECT_GT(sum->inverseOffers, lives);
  EXPECT_GT(sum->answers, lives * 5);
  EXPECT_GT(sum->sessions, lives);
  EXPECT_GT(sum->slices, sum->sessions);
}


TEST(RandomTest, TheBooksAddUpWhateverHappens)
{
  Sum sum;
  play<Life>(30, 600, &sum);
  EXPECT_GT(sum.compared, 0u);
}


TEST(RandomTest, TheBooksAddUpWhateverIsSaidInASession)
{
  Sum sum;
  play<SessionLife>(10, 600, &sum);
}

} // namespace {
} // namespace brain {
} // namespace allocator {
