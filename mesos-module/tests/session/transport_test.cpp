#include "session/transport.hpp"

#include <unistd.h>

#include <atomic>
#include <climits>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "session/keeper.hpp"

#include "tests/fake_sidecar.hpp"
#include "tests/session/loop.hpp"

namespace allocator {
namespace session {
namespace {

using Manner = FakeSidecar::Manner;

constexpr Duration LONG(20000);


std::unique_ptr<Transport> newTransport(
    const std::string& target,
    Loop* loop,
    TransportOptions options = TransportOptions())
{
  options.channel.target = target;
  std::string error;

  std::unique_ptr<Transport> transport(new Transport(
      options,
      [loop](std::function<void()> function) {
        loop->post(std::move(function));
      },
      &error));

  EXPECT_EQ("", error);
  return transport;
}


// An owner that accepts every decision.
class Taker : public Keeper::Owner
{
public:
  Taker(
      const std::string& target,
      Loop* loop,
      KeeperOptions options = KeeperOptions(),
      TransportOptions transport = TransportOptions())
  {
    options.clockMs = []() { return 1000; };
    keeper.reset(
        new Keeper(options, this, newTransport(target, loop, transport)));
  }

  void welcomed(const wire::Welcome&, size_t chunkBytesMax) override
  {
    SnapshotWriter writer(chunkBytesMax);
    writer.nouns()->add_roles();
    keeper->snapshot(writer.take(true));
  }

  void connected(const wire::Welcome&) override { ++sessions; }

  void decided(Decisions&& decisions) override
  {
    ++cycles;
    taken += decisions.size();
    Outcomes outcomes(decisions);

    for (size_t i = 0; i < decisions.size(); ++i) {
      outcomes.offered();
    }

    EXPECT_TRUE(keeper->report(outcomes));
  }

  void ended(const Keeper::End& end) override { ends.push_back(end); }

  std::unique_ptr<Keeper> keeper;
  int sessions = 0;
  int cycles = 0;
  size_t taken = 0;
  std::vector<Keeper::End> ends;
};


wire::Event anEvent(size_t bytes = 10)
{
  wire::Event event;
  event.mutable_whitelist()->add_hostnames(std::string(bytes, 'h'));
  return event;
}


class TransportTest : public ::testing::Test
{
protected:
  bool runUntil(const std::function<bool()>& condition)
  {
    return loop.runUntil(Clock::now() + LONG, condition);
  }

  Loop loop;
};


TEST_F(TransportTest, ManyCyclesOverASocket)
{
  FakeSidecar sidecar;
  Taker taker(sidecar.target(), &loop);
  taker.keeper->start();
  ASSERT_TRUE(runUntil([&]() { return taker.sessions == 1; }));

  for (int cycle = 1; cycle <= 300; ++cycle) {
    for (int i = 0; i < 20; ++i) {
      ASSERT_GT(taker.keeper->submit(anEvent()), 0u);
    }

    ASSERT_TRUE(taker.keeper->cycle({}));
    ASSERT_TRUE(runUntil([&]() { return taker.cycles == cycle; }));
  }

  EXPECT_EQ(600u, taker.taken);
  EXPECT_EQ(0u, taker.ends.size());
  EXPECT_GT(taker.keeper->stats().roundTripP50.count(), 0);

  taker.keeper.reset();
  EXPECT_EQ("", sidecar.fault());
  EXPECT_EQ(1, sidecar.left);
}


// The keeper connects when a sidecar starts after it.
TEST_F(TransportTest, NobodyThereThenSomebody)
{
  const std::string path = FakeSidecar::newPath();
  Taker taker("unix:" + path, &loop);
  taker.keeper->start();
  ASSERT_TRUE(runUntil([&]() { return taker.ends.size() == 3; }));
  EXPECT_EQ(Cause::UNREACHABLE, taker.ends[0].cause);
  EXPECT_FALSE(taker.ends[0].wasConnected);

  FakeSidecar sidecar(Manner::HONEST, path);
  ASSERT_TRUE(runUntil([&]() { return taker.sessions == 1; }));
}


TEST_F(TransportTest, ASidecarThatGoesAndComesBack)
{
  const std::string path = FakeSidecar::newPath();
  std::unique_ptr<FakeSidecar> sidecar(new FakeSidecar(Manner::HONEST, path));
  Taker taker(sidecar->target(), &loop);
  taker.keeper->start();

  for (int round = 1; round <= 5; ++round) {
    ASSERT_TRUE(runUntil([&]() { return taker.sessions == round; }));
    sidecar.reset();
    ASSERT_TRUE(runUntil([&]() { return !taker.keeper->connected(); }));
    EXPECT_EQ(0u, taker.keeper->submit(anEvent()));
    sidecar.reset(new FakeSidecar(Manner::HONEST, path));
  }

  EXPECT_EQ(4u, taker.keeper->stats().resyncs);
}


TEST_F(TransportTest, AMuteSidecarIsLeft)
{
  KeeperOptions options;
  options.deadlines.snapshot = Duration(100);
  FakeSidecar sidecar(Manner::MUTE);
  Taker taker(sidecar.target(), &loop, options);
  taker.keeper->start();
  ASSERT_TRUE(runUntil([&]() { return taker.ends.size() == 2; }));
  EXPECT_EQ(Cause::SILENT, taker.ends[0].cause);
  EXPECT_EQ(Cause::SILENT, taker.ends[1].cause);
}


// Messages that a sidecar does not read fill the connection, then the queue.
// The owner never blocks.
TEST_F(TransportTest, ADeafSidecarFillsTheQueueOnly)
{
  KeeperOptions options;
  options.batchBytesMax = 10 << 10;
  TransportOptions transport;
  transport.queueMessagesMax = 50;
  FakeSidecar sidecar(Manner::DEAF);
  Taker taker(sidecar.target(), &loop, options, transport);
  taker.keeper->start();

  // Events may be sent although the batch after the snapshot is not answered.
  ASSERT_TRUE(runUntil([&]() {
    return taker.keeper->submit(anEvent()) > 0 || !taker.ends.empty();
  }));

  Duration longest(0);
  int taken = 0;

  while (taken < 100000) {
    const TimePoint begin = Clock::now();
    const bool ok = taker.keeper->submit(anEvent(8 << 10)) > 0;
    longest = std::max(
        longest, std::chrono::duration_cast<Duration>(Clock::now() - begin));

    if (!ok) {
      break;
    }

    ++taken;
    ASSERT_LE(taker.keeper->stats().queueMessages, 50u);
  }

  EXPECT_LT(taken, 100000);
  EXPECT_LT(longest, Duration(1000));
  ASSERT_TRUE(runUntil([&]() { return !taker.ends.empty(); }));
  EXPECT_EQ(Cause::QUEUE_FULL, taker.ends[0].cause);
}


// While the owner is busy, an endlessly sending sidecar has to wait: only the
// queue and the connection's buffers fill.
TEST_F(TransportTest, ABusyOwnerIsNotFlooded)
{
  class Counter : public Link::Listener
  {
  public:
    void received(wire::SessionResponse&&) override { ++messages; }
    void lost(const std::string&, bool) override { ++losses; }
    void woken() override {}
    int messages = 0;
    int losses = 0;
  };

  FakeSidecar sidecar(Manner::CHATTY);
  Counter counter;
  std::unique_ptr<Transport> transport = newTransport(sidecar.target(), &loop);
  transport->listen(&counter);
  transport->open();

  wire::SessionRequest hello;
  hello.mutable_hello()->set_protocol_version(PROTOCOL_VERSION);
  ASSERT_TRUE(transport->send(std::move(hello), 0));

  // The owner is busy, because the loop does not run.
  int before = -1;

  for (int i = 0; i < 100 && (before < 5 || before != sidecar.written); ++i) {
    before = sidecar.written;
    std::this_thread::sleep_for(Duration(200));
  }

  EXPECT_EQ(before, sidecar.written);
  EXPECT_LT(before, 500);

  // Then delivery continues.
  ASSERT_TRUE(runUntil([&]() { return counter.messages > before + 50; }));
  transport->close(false);
  const int after = counter.messages;
  loop.runFor(Duration(50));
  EXPECT_EQ(after, counter.messages);
  EXPECT_EQ(0, counter.losses);
}


TEST_F(TransportTest, AChattySidecarIsNotBelieved)
{
  FakeSidecar sidecar(Manner::CHATTY);
  Taker taker(sidecar.target(), &loop);
  taker.keeper->start();
  ASSERT_TRUE(runUntil([&]() { return !taker.ends.empty(); }));
  EXPECT_EQ(Cause::MALFORMED, taker.ends[0].cause);
}


TEST_F(TransportTest, ARudeSidecarIsLost)
{
  FakeSidecar sidecar(Manner::RUDE);
  Taker taker(sidecar.target(), &loop);
  taker.keeper->start();
  ASSERT_TRUE(runUntil([&]() { return taker.ends.size() == 3; }));
  EXPECT_EQ("the stream ended: no (gRPC status 14)", taker.ends[0].reason);
}


// Messages beyond the keeper's limit are not read.
TEST_F(TransportTest, AnOversizedMessageIsNotRead)
{
  TransportOptions options;
  options.channel.receiveBytesMax = 50 << 10;
  FakeSidecar sidecar(Manner::CHATTY);
  Taker taker(sidecar.target(), &loop, KeeperOptions(), options);
  taker.keeper->start();
  ASSERT_TRUE(runUntil([&]() { return !taker.ends.empty(); }));
  EXPECT_NE(std::string::npos, taker.ends[0].reason.find("gRPC status 8"))
      << taker.ends[0].reason;
}


// The transport can be destroyed quickly in any state.
TEST_F(TransportTest, ItEndsAtAnyTime)
{
  FakeSidecar honest;
  FakeSidecar mute(Manner::MUTE);
  FakeSidecar chatty(Manner::CHATTY);

  // The last two: a missing socket, and a host that never answers.
  const std::vector<std::string> targets = {
      honest.target(),
      mute.target(),
      chatty.target(),
      "unix:" + FakeSidecar::newPath(),
      "192.0.2.1:5056"};

  for (int round = 0; round < 12; ++round) {
    for (const std::string& target : targets) {
      Taker taker(target, &loop);
      taker.keeper->start();
      loop.runFor(Duration(round * round / 4));

      if (round % 3 == 0) {
        taker.keeper->stop();
      }

      const TimePoint begin = Clock::now();
      taker.keeper.reset();
      EXPECT_LT(Clock::now() - begin, Duration(5000)) << target;

      // Functions posted earlier do nothing.
      loop.runFor(Duration(1));
    }
  }
}


// Opens and closes streams faster than gRPC starts them.
TEST_F(TransportTest, StreamsInQuickSuccession)
{
  class Last : public Link::Listener
  {
  public:
    void received(wire::SessionResponse&& response) override
    {
      welcomed = response.has_welcome();
    }

    void lost(const std::string&, bool) override { FAIL(); }
    void woken() override {}
    bool welcomed = false;
  };

  FakeSidecar sidecar;
  Last last;
  std::unique_ptr<Transport> transport = newTransport(sidecar.target(), &loop);
  transport->listen(&last);

  for (int i = 0; i < 100; ++i) {
    wire::SessionRequest hello;
    hello.mutable_hello()->set_protocol_version(PROTOCOL_VERSION);
    transport->open();
    ASSERT_TRUE(transport->send(std::move(hello), 0));

    if (i % 10 == 0) {
      loop.runFor(Duration(5));
    }

    if (i < 99) {
      last.welcomed = false;
      transport->close(i % 2 == 0);
      ASSERT_FALSE(transport->send(wire::SessionRequest(), 0));
    }
  }

  EXPECT_TRUE(runUntil([&]() { return last.welcomed; }));
}


TEST_F(TransportTest, TheAlarmRingsOnceAndInTime)
{
  class Sleeper : public Link::Listener
  {
  public:
    void received(wire::SessionResponse&&) override {}
    void lost(const std::string&, bool) override {}
    void woken() override { times.push_back(Clock::now()); }
    std::vector<TimePoint> times;
  };

  Sleeper sleeper;
  std::unique_ptr<Transport> transport =
      newTransport("unix:" + FakeSidecar::newPath(), &loop);
  transport->listen(&sleeper);

  const TimePoint begin = Clock::now();
  transport->wakeAt(begin + Duration(10000));
  transport->wakeAt(begin + Duration(50)); // Replaces the earlier alarm.
  loop.runFor(Duration(300));

  ASSERT_EQ(1u, sleeper.times.size());
  EXPECT_GE(sleeper.times[0], begin + Duration(50));
}


TEST_F(TransportTest, BadOptionsAreSaid)
{
  TransportOptions options;
  options.channel.target = "nowhere";
  std::string error;
  Transport transport(
      options, [](std::function<void()>) {}, &error);
  EXPECT_EQ(
      "'nowhere' is not a target; give host:port, [IPv6]:port or unix:/path",
      error);
}

// If the second thread cannot be started, the first one is ended.
TEST_F(TransportTest, AThreadThatCannotBeStarted)
{
  for (int wrong : {1, 2}) {
    int started = 0;
    TransportOptions options;
    options.channel.target = "unix:" + FakeSidecar::newPath();
    options.newThread = [&](std::function<void()> function) {
      if (++started == wrong) {
        throw std::system_error(
            std::make_error_code(std::errc::resource_unavailable_try_again));
      }
      return std::thread(std::move(function));
    };

    std::string error;
    EXPECT_THROW(
        Transport(
            options, [](std::function<void()>) {}, &error),
        std::system_error);
    EXPECT_EQ("", error);
  }
}


// An executor that throws: the exception in the worker costs the stream, and
// the next one works.
TEST_F(TransportTest, WhatIsThrownCostsTheStreamOnly)
{
  FakeSidecar sidecar;
  std::atomic<int> failures{0};
  std::string error;
  TransportOptions options;
  options.channel.target = sidecar.target();
  std::unique_ptr<Transport> transport(new Transport(
      options,
      [&](std::function<void()> function) {
        if (failures > 0) {
          --failures;
          throw std::bad_alloc();
        }
        loop.post(std::move(function));
      },
      &error));

  class Last : public Link::Listener
  {
  public:
    void received(wire::SessionResponse&&) override { ++messages; }
    void lost(const std::string& reason, bool) override { why = reason; }
    void woken() override {}
    int messages = 0;
    std::string why;
  };

  Last last;
  transport->listen(&last);

  const auto greet = [&]() {
    wire::SessionRequest hello;
    hello.mutable_hello()->set_protocol_version(PROTOCOL_VERSION);
    transport->open();
    ASSERT_TRUE(transport->send(std::move(hello), 0));
  };

  failures = 3;
  greet();
  ASSERT_TRUE(runUntil([&]() { return !last.why.empty(); }));
  EXPECT_EQ("the module failed: std::bad_alloc", last.why);
  EXPECT_EQ(0, failures);

  last.messages = 0;
  greet();
  EXPECT_TRUE(runUntil([&]() { return last.messages == 1; }));

  // Destruction succeeds although the executor fails.
  failures = INT_MAX;
  transport.reset();
}


TEST_F(TransportTest, ATokenIsReadAnewForEachSession)
{
  FakeSidecar sidecar;
  sidecar.token = "s3cret";
  TransportOptions options;
  options.channel.tokenFile = FakeSidecar::newPath();
  KeeperOptions often;
  often.lost = Backoff{Duration(10), Duration(10)};
  Taker taker(sidecar.target(), &loop, often, options);
  taker.keeper->start();

  // There is no token file at first; then the file has a wrong token, then the
  // right one.
  ASSERT_TRUE(runUntil([&]() { return taker.ends.size() == 2; }));
  EXPECT_EQ(Cause::UNREACHABLE, taker.ends[0].cause);
  EXPECT_EQ(
      "the file with the session token '" + options.channel.tokenFile +
          "' cannot be read, or is empty",
      taker.ends[0].reason);

  std::ofstream(options.channel.tokenFile) << "wrong\n";
  const size_t before = taker.ends.size() + 1;
  ASSERT_TRUE(runUntil([&]() { return taker.ends.size() > before; }));
  EXPECT_EQ(
      "the stream ended: this is no token for a session (gRPC status 16)",
      taker.ends.back().reason);
  EXPECT_EQ(0, sidecar.sessions);

  std::ofstream(options.channel.tokenFile) << "s3cret\n";
  ASSERT_TRUE(runUntil([&]() { return taker.sessions == 1; }));
  unlink(options.channel.tokenFile.c_str());
}

} // namespace {
} // namespace session {
} // namespace allocator {
