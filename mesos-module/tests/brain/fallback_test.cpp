#include "brain/deciding/fallback.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brain/brain.hpp"

// What the transcripts cannot say, or would say at length.

namespace allocator {
namespace brain {
namespace {

// An agent with some resource classes, and frameworks of which only the last
// one takes so little.
class FallbackTest : public ::testing::Test
{
protected:
  void initialize(size_t sliceParts)
  {
    Initialize event;
    event.options.sliceParts = sliceParts;
    brain.step(event, 0);
  }

  void addFramework(const std::string& id, int64_t least)
  {
    AddFramework event;
    event.framework = id;
    event.roles = {"eng"};
    event.minimum = {{"eng", {{{"cpus", least}}}}};
    brain.step(event, 0);
  }

  void addAgent(uint32_t classes)
  {
    AddAgent event;
    event.agent = "agent";
    event.info.add_capabilities(wire::AGENT_CAPABILITY_MULTI_ROLE);
    for (uint32_t resourceClass = 0; resourceClass < classes; ++resourceClass) {
      DefineResourceClass define;
      define.resourceClass = resourceClass;
      define.traits.name = resourceClass == 0 ? "cpus" : "mem";
      brain.step(define, 0);
      event.total.push_back(Part{resourceClass, 1000, Spans()});
    }
    ASSERT_EQ("", brain.step(event, 0));
  }

  // How many slices it takes until there is nothing to do, and what is offered.
  size_t settle()
  {
    size_t slices = 0;
    Ready ready = brain.ready();
    while (ready.soon) {
      ++slices;
      brain.step(Wake{}, 0);
      ready = brain.ready();
      for (const Offer& offer : ready.offers) {
        offered.push_back(
            *brain.cluster().frameworkHandles.id(offer.framework));
      }
    }
    return slices;
  }

  Brain brain;
  std::vector<std::string> offered;
};


// However many ask for one agent, no slice looks at more than is due at a
// time; and everybody is asked.
TEST_F(FallbackTest, ASliceIsBoundedByPairsAndPieces)
{
  initialize(50);
  for (int number = 100; number < 200; ++number) {
    addFramework("f" + std::to_string(number), number == 199 ? 1000 : 9000);
  }
  addAgent(9);

  // 100 frameworks look at nine resource classes each, five of them in a slice.
  EXPECT_LE(20u, settle());
  EXPECT_EQ(std::vector<std::string>{"f199"}, offered);
  EXPECT_EQ("", brain.check());
}


// A slice that is smaller than any pair goes on all the same.
TEST_F(FallbackTest, ASliceAlwaysGoesOn)
{
  initialize(1);
  addFramework("one", 9000);
  addFramework("two", 1000);
  addAgent(3);
  settle();
  EXPECT_EQ(std::vector<std::string>{"two"}, offered);
}

} // namespace {
} // namespace brain {
} // namespace allocator {
