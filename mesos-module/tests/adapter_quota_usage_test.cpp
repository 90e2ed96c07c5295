#include "adapter/quota_usage.hpp"

#include <random>

#include "adapter_world.hpp"

namespace allocator {
namespace adapter {
namespace {

// Counts all agents anew, name by name.
QuotaUsage::Sums countAll(const Ledger& ledger)
{
  QuotaUsage usage;
  Ledger copy;

  for (const auto& row : ledger.agents()) {
    copy.addAgent(row.first, row.second.total);
    for (const auto& held : row.second.held) {
      copy.hold(held.first, row.first, held.second);
    }
  }

  return usage.of(copy);
}


TEST(QuotaUsageTest, HeldAndReservedIsConsumedAndTheOthersAreFree)
{
  Ledger ledger;
  ledger.addAgent(agentId("one"), parse("cpus:8;cpus(eng/ads):2;mem:10"));
  ledger.hold(frameworkId("f"), agentId("one"), allocated("cpus:3", "eng/web"));

  QuotaUsage usage;
  const QuotaUsage::Sums& sums = usage.of(ledger);
  EXPECT_EQ((Quantities{{"cpus", 5000}, {"mem", 10000}}), sums.free);
  ASSERT_EQ(1u, sums.consumed.size());
  EXPECT_EQ((Quantities{{"cpus", 5000}}), sums.consumed.at("eng"));
}


// Through every method that changes the books.
TEST(QuotaUsageTest, SumsFollowTheLedger)
{
  std::mt19937 random(5);
  Ledger ledger;
  QuotaUsage usage;

  for (int step = 0; step < 3000; ++step) {
    const AgentID agent = agentId(std::to_string(random() % 20));
    const FrameworkID framework = frameworkId(std::to_string(random() % 3));
    const std::string role = random() % 2 == 0 ? "eng/ads" : "ops";
    const Ledger::Agent* books = ledger.find(agent);

    switch (random() % 12) {
      case 0: ledger.addAgent(agent, parse("cpus:9;mem:9;cpus(ops):2")); break;
      case 1: ledger.removeAgent(agent); break;
      case 2: ledger.setTotal(agent, parse("cpus:7;mem:20")); break;
      case 3: ledger.removeFramework(framework); break;
      case 4:
      case 5:
      case 6:
        ledger.release(framework, agent, allocated("cpus:1", role));
        break;
      case 7:
        if (books != nullptr && !books->available().empty()) {
          ledger.offer(framework, agent, role, books->available(), true);
        }
        break;
      case 8: {
        const Resources before = allocated("cpus:1", role);
        Resources after = parse("cpus(ops):1");
        after.allocate(role);
        ledger.convertHeld(
            framework, agent, before, {ResourceConversion(before, after)});
        break;
      }
      default: ledger.hold(framework, agent, allocated("cpus:1", role));
    }

    if (random() % 4 == 0) {
      const QuotaUsage::Sums& sums = usage.of(ledger);
      const QuotaUsage::Sums anew = countAll(ledger);
      ASSERT_EQ(anew.free, sums.free) << "step " << step;
      ASSERT_EQ(anew.consumed, sums.consumed) << "step " << step;
    }
  }
}


TEST(QuotaUsageTest, OnlyAgentsThatChangedAreCounted)
{
  Ledger ledger;
  for (int i = 0; i < 1000; ++i) {
    ledger.addAgent(agentId(std::to_string(i)), parse("cpus:1"));
  }

  QuotaUsage usage;
  usage.of(ledger);
  EXPECT_EQ(1000u, usage.counted());

  usage.of(ledger);
  EXPECT_EQ(1000u, usage.counted());

  for (int round = 0; round < 3; ++round) {
    ledger.hold(frameworkId("f"), agentId("7"), allocated("cpus:0.1", "a"));
  }
  usage.of(ledger);
  EXPECT_EQ(1001u, usage.counted());
}


// Nobody asks, and agents come and go for ever.
TEST(QuotaUsageTest, ChangesDoNotPileUp)
{
  Ledger ledger;
  QuotaUsage usage;
  usage.of(ledger);

  for (int i = 0; i < 10000; ++i) {
    ledger.addAgent(agentId(std::to_string(i)), parse("cpus:1"));
    ledger.removeAgent(agentId(std::to_string(i)));
  }

  ledger.addAgent(agentId("last"), parse("cpus:1"));
  EXPECT_EQ((Quantities{{"cpus", 1000}}), usage.of(ledger).free);
  EXPECT_LT(usage.counted(), 3u);
}

} // namespace {
} // namespace adapter {
} // namespace allocator {
