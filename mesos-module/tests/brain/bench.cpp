// Measures how long the brain blocks its caller: a snapshot of many agents, an
// answer of many rows, fallback over all agents, and calls of a master.
// `brain_bench [AGENTS] [FRAMEWORKS] [ROWS]` prints milliseconds of processor
// time (which other processes do not distort), and time and allocations per
// agent, offer or call.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "brain/brain.hpp"

#include "tests/price.hpp"

namespace {

using namespace allocator::brain;
using allocator::Price;


class Bench
{
public:
  Bench(uint32_t _agents, uint32_t _frameworks)
    : agents(_agents), frameworks(_frameworks)
  {
    Initialize event;
    event.options.fallback = false;
    run(event);

    begin("add frameworks");
    for (uint32_t i = 0; i < frameworks; ++i) {
      AddFramework add;
      add.framework = "framework-" + std::to_string(i);
      add.info.add_capabilities(allocator::v1::FRAMEWORK_CAPABILITY_MULTI_ROLE);
      add.roles = {"role-" + std::to_string(i % 20)};
      run(add);
    }
    end(frameworks);

    const char* const names[] = {"cpus", "mem", "disk", "ports"};
    for (uint32_t resourceClass = 0; resourceClass < 4; ++resourceClass) {
      DefineResourceClass define;
      define.resourceClass = resourceClass;
      define.traits.name = names[resourceClass];
      define.traits.type = resourceClass == 3 ? Type::RANGES : Type::SCALAR;

      // An unused resource class would be forgotten.
      brain.step(define, 0);
    }

    begin("add agents");
    for (uint32_t i = 0; i < agents; ++i) {
      AddAgent add;
      add.agent = idOf(i);
      add.info.set_hostname(add.agent);
      add.info.add_capabilities(allocator::v1::AGENT_CAPABILITY_MULTI_ROLE);
      add.total = parts();
      run(std::move(add));
    }
    end(agents);
  }

  void snapshot()
  {
    begin("snapshot");
    run(Welcomed{0, 1 << 20});
    settle();
    end(agents);
    run(Connected());
  }

  void answer(uint32_t rows)
  {
    Decided event;
    event.decisions.first = 1;
    event.decisions.revision = UINT64_MAX;
    allocator::v1::Holdings* group = event.decisions.grants.Add();
    for (uint32_t kind = 0; kind < 4; ++kind) {
      group->add_kind(kind);
    }
    for (uint32_t row = 0; row < rows; ++row) {
      const uint32_t framework = row % frameworks;
      group->add_framework(framework + 1);
      group->add_role(framework % 20 + 1);
      group->add_agent(row % agents + 1);
      for (int64_t amount : {1000, 1000, 1000, 1000}) {
        group->add_amount(amount);
      }
    }

    begin("answer");
    run(event);
    settle();
    end(offers.size());
  }

  // Uses all resources that were offered.
  void accept()
  {
    const Cluster& cluster = brain.cluster();

    begin("accept");
    for (const Offer& offer : offers) {
      Transition event;
      event.agent = *cluster.agentHandles.id(offer.agent);
      event.parts = {{cluster.roles.path(offer.role), offer.parts}};
      run(event);
    }
    settle();
    end(offers.size());
  }

  // Returns everything; with a filter if `refuseMs` says so.
  void release(const char* what, int64_t refuseMs)
  {
    std::vector<Offer> all;
    all.swap(offers);
    const Cluster& cluster = brain.cluster();

    begin(what);
    for (const Offer& offer : all) {
      Release event;
      event.agent = *cluster.agentHandles.id(offer.agent);
      event.framework = *cluster.frameworkHandles.id(offer.framework);
      event.parts = {{cluster.roles.path(offer.role), offer.parts}};
      event.refuseMs = refuseMs;
      run(std::move(event));
    }
    settle();
    end(all.size());
  }

  void fallback()
  {
    Initialize event;
    run(event);
    run(Ended{true, "bench", 0});
    begin("fallback");
    settle();
    end(offers.size());
  }

private:
  template <typename Event>
  void run(Event&& event)
  {
    const Price before = allocator::priceOfThread();
    brain.step(std::forward<Event>(event), nowMs);
    Ready ready = brain.ready();
    const Price price = allocator::priceOfThread() - before;
    longestNs = std::max(longestNs, price.ns);
    total += price;
    ++steps;
    soon = ready.soon;
    offers.insert(offers.end(), ready.offers.begin(), ready.offers.end());
  }

  void settle()
  {
    while (soon) {
      run(Wake());
    }
  }

  void begin(const char* what)
  {
    name = what;
    longestNs = 0;
    total = Price();
    steps = 0;
  }

  // Prints the results. `count`: the number of agents, offers or calls.
  void end(size_t count)
  {
    const double all = static_cast<double>(count);
    std::printf(
        "%-20s %8zu steps, %9.1f ms, longest %6.2f ms; %8zu: %6.2f us, "
        "%5.1f calls of new each\n",
        name,
        steps,
        static_cast<double>(total.ns) / 1e6,
        static_cast<double>(longestNs) / 1e6,
        count,
        static_cast<double>(total.ns) / 1e3 / all,
        static_cast<double>(total.allocations) / all);
  }

  static std::string idOf(uint32_t agent)
  {
    return "6bd1a9f6-0b7c-4c0e-9d1a-000000000000-S" + std::to_string(agent);
  }

  Parts parts()
  {
    Parts result;
    for (uint32_t resourceClass = 0; resourceClass < 3; ++resourceClass) {
      result.push_back(Part{resourceClass, 16000000, Spans()});
    }
    result.push_back(Part{3, 1001000, {Span{31000, 32000}}});
    return result;
  }

  const uint32_t agents;
  const uint32_t frameworks;
  Brain brain;
  std::vector<Offer> offers;
  int64_t nowMs = 0;
  bool soon = false;

  const char* name = "";
  int64_t longestNs = 0;
  Price total;
  size_t steps = 0;
};


uint32_t number(int argc, char** argv, int place, uint32_t otherwise)
{
  return argc > place
      ? static_cast<uint32_t>(std::strtoul(argv[place], nullptr, 10))
      : otherwise;
}

} // namespace {


int main(int argc, char** argv)
{
  Bench bench(number(argc, argv, 1, 50000), number(argc, argv, 2, 1000));
  bench.snapshot();
  const uint32_t rows = number(argc, argv, 3, 100000);
  bench.answer(rows);
  bench.accept();
  bench.release("decline", -1);
  bench.answer(rows);
  bench.release("decline, refused", 5000);
  bench.snapshot();
  bench.fallback();
  return 0;
}
