#include "brain/deciding/fallback.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "brain/brain.hpp"
#include "brain/deciding/idle_sidecar_check.hpp"

// Cases that transcripts cannot express, or only at length.

namespace allocator {
namespace brain {
namespace {

// An agent with several resource classes, and frameworks with minimums.
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

  // Adds ports to the agent that do not touch; returns its total.
  Parts addPorts(uint64_t count)
  {
    DefineResourceClass define;
    define.resourceClass = 1;
    define.traits.name = "ports";
    define.traits.type = Type::RANGES;
    brain.step(define, 0);

    Spans spans;
    for (uint64_t number = 0; number < count; ++number) {
      spans.push_back(Span{2 * number, 2 * number});
    }

    UpdateAgent event;
    event.agent = "agent";
    event.hasTotal = true;
    event.total = {Part{0, 1000, Spans()}, Part{1, amountOf(spans), spans}};
    EXPECT_EQ("", brain.step(event, 0));
    return event.total;
  }

  void refuse(const std::string& framework, const Parts& parts)
  {
    Release event;
    event.agent = "agent";
    event.framework = framework;
    event.parts = {RoleParts{"eng", parts}};
    event.refuseMs = 60000;
    EXPECT_EQ("", brain.step(event, 0));
  }

  // Runs until idle and collects offers; returns the number of slices.
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


// However many frameworks compete for an agent, each slice is bounded, and the
// fallback tries all of them.
TEST_F(FallbackTest, ASliceIsBoundedByPairsAndPieces)
{
  initialize(50);
  for (int number = 100; number < 200; ++number) {
    addFramework("f" + std::to_string(number), number == 199 ? 1000 : 9000);
  }
  addAgent(90);

  // Each of the 100 frameworks tried costs 90 resource classes, so a slice
  // tries nine.
  EXPECT_EQ(12u, settle());
  EXPECT_EQ(std::vector<std::string>{"f199"}, offered);
  EXPECT_EQ("", brain.check());
}


// A slice tries many frameworks, because each slice rebuilds the order.
TEST_F(FallbackTest, ASliceIsWorthItsLine)
{
  initialize(1);
  for (int number = 1000; number < 2000; ++number) {
    addFramework("f" + std::to_string(number), 9000);
  }
  addAgent(1);

  EXPECT_GE(2u, settle());
}


// All frameworks have refused the free resources, among them 3,200 single
// ports. Checking that costs as much as 200 resource classes.
TEST_F(FallbackTest, ASliceIsBoundedBySpans)
{
  initialize(50);
  for (int number = 100; number < 120; ++number) {
    addFramework("f" + std::to_string(number), 1000);
  }
  addAgent(1);
  const Parts total = addPorts(3200);
  for (int number = 100; number < 120; ++number) {
    refuse("f" + std::to_string(number), total);
  }

  // Each of the 20 frameworks costs 202 units of work, so a slice tries one.
  EXPECT_EQ(21u, settle());
  EXPECT_TRUE(offered.empty());
}


// The search for a framework that could use what a sidecar leaves free is
// bounded in the same way.
TEST_F(FallbackTest, ALookIsBoundedBySpans)
{
  initialize(50);
  for (int number = 100; number < 120; ++number) {
    addFramework("f" + std::to_string(number), 1000);
  }
  addAgent(1);
  const Parts total = addPorts(320);
  for (int number = 100; number < 119; ++number) {
    refuse("f" + std::to_string(number), total);
  }

  IdleSidecarCheck idleCheck;
  size_t looks = 0;
  while (idleCheck.intervals() == 0 && looks < 100) {
    ++looks;
    idleCheck.answered(true, false, false);
    idleCheck.endInterval(brain.cluster(), 0);
  }
  EXPECT_LE(6u, looks);
  EXPECT_GE(10u, looks);
  EXPECT_EQ(20u, idleCheck.willing().framework);
}


// A slice makes progress even if its limit is below the cost of every pair.
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
