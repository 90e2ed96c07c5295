#include "brain/books/books.hpp"

#include <random>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "brain/books/cluster.hpp"

namespace allocator {
namespace brain {
namespace {

constexpr uint32_t PORTS = 0;

using Numbers = std::set<uint64_t>;


Spans toSpans(const Numbers& numbers)
{
  std::vector<Span> spans;
  for (uint64_t number : numbers) {
    spans.push_back(Span{number, number});
  }
  return joined(std::move(spans));
}


Parts ports(const Spans& spans)
{
  return spans.empty() ? Parts() : Parts{Part{PORTS, amountOf(spans), spans}};
}


// One agent with ports; the test calls the books directly.
class BooksTest : public ::testing::Test
{
protected:
  void SetUp() override
  {
    Traits traits;
    traits.name = "ports";
    traits.type = Type::RANGES;
    cluster.classes.define(PORTS, traits, 0, "");
    cluster.classes.use(PORTS);
    cluster.agents.add(1)->id = "agent";
  }

  Numbers draw(uint64_t end, uint64_t oneOf)
  {
    Numbers result;
    for (uint64_t number = 0; number < end; ++number) {
      if (random() % oneOf == 0) {
        result.insert(number);
      }
    }
    return result;
  }

  const Agent& agent() const { return *cluster.agents.find(1); }

  Cluster cluster;
  std::mt19937 random;
};


// Several holders may have the same elements, or elements that do not exist, if
// the master says so. Returned elements are free if they exist and have no
// other holder.
TEST_F(BooksTest, NumbersThatComeBackAreFreeWhoeverElseHoldsThem)
{
  for (int turn = 0; turn < 2000; ++turn) {
    const uint32_t framework = 1 + random() % 3;
    const uint64_t oneOf = 1 + random() % 8;
    const Parts some = ports(toSpans(draw(40, oneOf)));

    switch (random() % 8) {
      case 0: cluster.books.setTotal(1, ports(toSpans(draw(32, 2)))); break;
      case 1: cluster.books.removeFramework(framework); break;
      case 2:
      case 3:
      case 4: cluster.books.hold(1, framework, 1, some); break;
      default: cluster.books.release(1, framework, 1, some); break;
    }

    ASSERT_EQ("", cluster.books.check(agent())) << turn;
  }
}


// A thousand tasks hold a different port each.
TEST_F(BooksTest, HoldersThatShareNothingComeAndGo)
{
  cluster.books.setTotal(1, ports(Spans{Span{0, 2000}}));
  for (uint32_t role = 1; role <= 1000; ++role) {
    cluster.books.hold(1, 1, role, ports(Spans{Span{2 * role, 2 * role}}));
  }
  EXPECT_EQ(1000u, Books::find(agent(), PORTS)->free.size());
  EXPECT_EQ("", cluster.books.check(agent()));

  for (uint32_t role = 1; role <= 1000; ++role) {
    cluster.books.release(1, 1, role, ports(Spans{Span{2 * role, 2 * role}}));
  }
  EXPECT_EQ((Spans{Span{0, 2000}}), Books::find(agent(), PORTS)->free);
  EXPECT_EQ("", cluster.books.check(agent()));
}


// Reading free spans does not copy them, however many there are.
TEST_F(BooksTest, NobodyCopiesWhatIsFree)
{
  cluster.books.setTotal(1, ports(Spans{Span{0, 9}, Span{20, 29}}));
  const Spans& free = Books::find(agent(), PORTS)->free;
  const Parts copy = cluster.books.free(agent());
  ASSERT_EQ(1u, copy.size());
  EXPECT_EQ(free.begin(), copy[0].spans.begin());

  cluster.books.hold(1, 1, 1, ports(Spans{Span{3, 3}}));
  EXPECT_EQ((Spans{Span{0, 9}, Span{20, 29}}), copy[0].spans);
}


TEST(SharedSpansTest, ACopyKeepsWhatItHas)
{
  const Spans one = {{1, 2}, {5, 6}};
  Spans other = one;
  other.push_back(Span{9, 9});
  EXPECT_EQ((Spans{{1, 2}, {5, 6}}), one);
  EXPECT_EQ((Spans{{1, 2}, {5, 6}, {9, 9}}), other);
  EXPECT_NE(one, other);

  Spans third = std::move(other);
  EXPECT_TRUE(other.empty());
  EXPECT_EQ(3u, third.size());
}


// Compares operations on spans with those on sets of numbers.
TEST(SharedSpansTest, TheyAreAsTheNumbersSay)
{
  std::mt19937 random;
  auto draw = [&]() {
    Numbers result;
    for (uint64_t number = 0; number < 24; ++number) {
      if (random() % 3 == 0) {
        result.insert(number);
      }
    }
    return result;
  };

  for (int turn = 0; turn < 2000; ++turn) {
    const Numbers one = draw();
    const Numbers other = draw();
    Numbers both;
    Numbers either = one;
    Numbers left;
    for (uint64_t number : one) {
      (other.count(number) > 0 ? both : left).insert(number);
    }
    either.insert(other.begin(), other.end());

    const Spans a = toSpans(one);
    const Spans b = toSpans(other);
    ASSERT_EQ(toSpans(either), unite(a, b));
    ASSERT_EQ(toSpans(both), intersect(a, b));
    ASSERT_EQ(toSpans(left), subtract(a, b));
    ASSERT_EQ(left.empty(), contains(b, a));
    ASSERT_TRUE(contains(a, toSpans(both)));
  }
}

} // namespace {
} // namespace brain {
} // namespace allocator {
