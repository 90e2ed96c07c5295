#ifndef __ALLOCATOR_TESTS_SMALL_WORLD_HPP__
#define __ALLOCATOR_TESTS_SMALL_WORLD_HPP__

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "session/keeper.hpp"

#include "tests/memory_link.hpp"
#include "tests/model_sidecar.hpp"

namespace allocator {
namespace session {

// A keeper, its owner and a sidecar in one thread, with time set by the test.
// Records what happens.
class SmallWorld : public Keeper::Owner
{
public:
  explicit SmallWorld(
      KeeperOptions _options = KeeperOptions(),
      size_t messagesMax = 8,
      size_t bytesMax = 1 << 20)
  {
    _options.now = [this]() { return now; };
    _options.clockMs = [this]() { return clockMs; };
    options = _options;

    std::unique_ptr<MemoryLink> memory(new MemoryLink(messagesMax, bytesMax));
    link = memory.get();
    keeper.reset(new Keeper(options, this, std::move(memory)));
  }

  // The sidecar takes everything and answers, until nothing is pending.
  void exchange()
  {
    while (exchangeOne()) {
    }
  }

  // The sidecar takes one message and answers; false if none is pending.
  bool exchangeOne()
  {
    wire::SessionRequest request;

    if (!link->isOpen || !link->queue.pop(&request)) {
      return false;
    }

    if (streamOf != link->streams) {
      streamOf = link->streams;
      sidecar = ModelSidecar(likeThis);
    }

    for (wire::SessionResponse& answer : sidecar.take(request)) {
      if (link->isOpen) {
        deliver(std::move(answer));
      }
    }

    EXPECT_EQ("", sidecar.fault);
    return sidecar.fault.empty();
  }

  void deliver(wire::SessionResponse&& response)
  {
    link->listener->received(std::move(response));
  }

  // Advances time; fires the alarm when due.
  void pass(int64_t ms)
  {
    const TimePoint end = now + Duration(ms);

    while (link->alarm <= end) {
      now = std::max(now, link->alarm);
      link->alarm = TimePoint::max();
      link->listener->woken();
    }

    now = end;
  }

  void begin()
  {
    keeper->start();
    exchange();
    ASSERT_TRUE(keeper->connected());
  }

  // Tests call the keeper through this, so that a callback during the call
  // fails the test.
  template <typename Result>
  Result call(const std::function<Result()>& method)
  {
    calling = true;
    const Result result = method();
    calling = false;
    return result;
  }

  bool submit(size_t bytes = 0)
  {
    return call<bool>([=]() {
      wire::Event event;
      event.mutable_remove_agent()->set_agent(1);

      if (bytes > 0) {
        event.mutable_whitelist()->add_hostnames(std::string(bytes, 'h'));
      }

      return keeper->submit(std::move(event)) > 0;
    });
  }

  bool cycle(std::vector<uint32_t> agents = {})
  {
    return call<bool>([=]() { return keeper->cycle(agents); });
  }

  // Owner's callbacks.

  void welcomed(const wire::Welcome&, size_t chunkBytesMax) override
  {
    SnapshotWriter writer(chunkBytesMax);
    EXPECT_FALSE(calling);
    story += "snapshot ";
    EXPECT_EQ(0u, keeper->submit(wire::Event()));

    for (uint32_t i = 1; i <= 3; ++i) {
      wire::Agent* agent = writer.nouns()->add_agents();
      agent->set_agent(i);
      agent->set_agent_id("agent-" + std::to_string(i));
    }

    if (onSnapshot) {
      onSnapshot(&writer);
    }

    keeper->snapshot(writer.take(true), 0, snapshotError);
  }

  void connected(const wire::Welcome& welcome) override
  {
    EXPECT_FALSE(calling);
    EXPECT_TRUE(keeper->connected());
    EXPECT_EQ(2u, welcome.protocol_version());
    story += "connected ";

    if (onConnected) {
      onConnected();
    }
  }

  void decided(Decisions&& decisions) override
  {
    EXPECT_FALSE(calling);
    story += "decided:" + std::to_string(decisions.size()) + " ";
    decided_ += decisions.size();

    if (onDecided) {
      onDecided(decisions);
      return;
    }

    Outcomes outcomes(decisions);

    for (size_t i = 0; i < decisions.size(); ++i) {
      outcomes.offered();
    }

    EXPECT_TRUE(keeper->report(outcomes));
  }

  void ended(const Keeper::End& end) override
  {
    EXPECT_FALSE(calling);
    EXPECT_FALSE(keeper->connected());
    EXPECT_NE("", end.reason);
    story += std::string("ended:") + causeName(end.cause) + " ";
    last = end;
  }

  std::string happened()
  {
    std::string result;
    result.swap(story);

    if (!result.empty()) {
      result.pop_back();
    }

    return result;
  }

  TimePoint now = TimePoint() + Duration(1000000);
  int64_t clockMs = 5000;
  KeeperOptions options;
  MemoryLink* link;
  ModelSidecar sidecar;
  ModelSidecar likeThis; // Initial state for a new stream.
  std::unique_ptr<Keeper> keeper;

  std::function<void(SnapshotWriter*)> onSnapshot;
  std::string snapshotError; // Passed to `snapshot`.
  std::function<void()> onConnected;
  std::function<void(const Decisions&)> onDecided;

  std::string story;
  Keeper::End last;
  size_t decided_ = 0;

private:
  bool calling = false;
  int streamOf = 0;
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_SMALL_WORLD_HPP__
