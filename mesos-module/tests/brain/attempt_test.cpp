#include "brain/attempt.hpp"

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "brain/brain.hpp"
#include "brain/view.hpp"


namespace {

constexpr uint64_t NEVER = UINT64_MAX;

// The number of allocations that succeed before one fails.
thread_local uint64_t allocationsLeft = NEVER;

} // namespace {


// Not inlined: otherwise the compiler warns that memory from `new` is passed to
// `free`.
__attribute__((noinline)) void* operator new(size_t size)
{
  void* memory = allocationsLeft == 0 ? nullptr : std::malloc(size);
  allocationsLeft -= allocationsLeft == NEVER ? 0 : 1;
  if (memory == nullptr) {
    allocationsLeft = NEVER;
    throw std::bad_alloc();
  }
  return memory;
}


// Does not fail, because callers of this variant handle failure themselves.
__attribute__((noinline)) void* operator new(
    size_t size,
    const std::nothrow_t&) noexcept
{
  return std::malloc(size);
}


__attribute__((noinline)) void operator delete(void* memory) noexcept
{
  std::free(memory);
}


__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept
{
  std::free(memory);
}


namespace allocator {
namespace brain {
namespace {

template <typename Function>
std::string reasonOf(const Function& function)
{
  return attempt<std::string>(
      function, [](const char* why) { return std::string(why); });
}


TEST(AttemptTest, WhatIsThrownIsTheReason)
{
  EXPECT_EQ("done", reasonOf([]() { return "done"; }));
  EXPECT_EQ("because", reasonOf([]() -> std::string {
              throw std::runtime_error("because");
            }));
  EXPECT_EQ("an exception of an unknown type", reasonOf([]() -> std::string {
              throw 7;
            }));
}


// Whichever allocation of memory fails, reading metrics and books does no harm.
TEST(AttemptTest, WhoeverLooksHarmsNobodyWhereNoMemoryIsLeft)
{
  Brain brain;
  brain.step(Initialize(), 0);
  DefineResourceClass cpus;
  cpus.traits.name = "cpus";
  brain.step(cpus, 0);

  AddFramework framework;
  framework.framework = "framework";
  framework.roles = {"eng"};
  brain.step(framework, 0);

  AddAgent agent;
  agent.agent = "agent";
  agent.total = {Part{0, 4000, Spans()}};
  agent.used = {Use{"framework", "eng", {Part{0, 1000, Spans()}}}};
  brain.step(agent, 0);

  // Everything that an operator can read.
  const auto look = [&brain]() {
    double sum = 0;
    for (const auto& stat : published()) {
      sum += stat.metric.empty() ? 0 : stat.value(brain.stats());
    }
    return page(brain, {{"first", "0"}, {"count", "10"}}).json +
        std::to_string(sum);
  };

  const std::string before = look();
  std::string seen;
  size_t failures = 0;

  while (seen.empty()) {
    allocationsLeft = failures;
    seen = attempt<std::string>(look, [](const char* why) {
      EXPECT_EQ(std::string(std::bad_alloc().what()), why);
      return std::string();
    });
    allocationsLeft = NEVER;
    failures += seen.empty() ? 1 : 0;
    ASSERT_EQ("", brain.check());
  }

  EXPECT_GT(failures, 5u);
  EXPECT_EQ(before, seen);
}


TEST(AttemptTest, AQueryThatIsWrongIsAnsweredWithWhatToMend)
{
  Brain brain;
  EXPECT_EQ("", page(brain, {}).wrong);
  EXPECT_EQ("", page(brain, {{"first", "4294967295"}}).wrong);
  EXPECT_EQ(
      "'count' is '1001'; it must be from 0 to 1000\n",
      page(brain, {{"count", "1001"}}).wrong);
  EXPECT_EQ(
      "'first' is '-1'; it must be from 0 to 4294967295\n",
      page(brain, {{"first", "-1"}, {"count", "1"}}).wrong);
  EXPECT_EQ("", page(brain, {{"first", "many"}}).json);
}

} // namespace {
} // namespace brain {
} // namespace allocator {
