#include "session/keeper.hpp"

#include <set>

#include "session/stats.hpp"

#include "tests/session/small_world.hpp"

namespace allocator {
namespace session {
namespace {

uint64_t ends(const SmallWorld& world, Cause cause)
{
  return world.keeper->stats().ends[static_cast<size_t>(cause)];
}


TEST(KeeperTest, ASessionRunsItsCourse)
{
  SmallWorld world;
  EXPECT_FALSE(world.submit());
  EXPECT_FALSE(world.cycle());

  world.begin();
  EXPECT_EQ("snapshot connected", world.happened());

  EXPECT_TRUE(world.submit());
  EXPECT_TRUE(world.cycle({3, 1, 3}));
  world.exchange();
  EXPECT_EQ("decided:2", world.happened());
  EXPECT_EQ((std::vector<uint32_t>{1, 3}), world.sidecar.cycleAgents);
  EXPECT_EQ(1u, world.sidecar.events);

  // The next batch carries the outcomes.
  world.pass(200);
  world.exchange();
  EXPECT_EQ(2u, world.sidecar.settled);

  const Stats stats = world.keeper->stats();
  EXPECT_TRUE(stats.connected);
  EXPECT_EQ(Duration(200), stats.sessionAge);
  EXPECT_EQ(1u, stats.attempts);
  EXPECT_EQ(1u, stats.sessions);
  EXPECT_EQ(0u, stats.resyncs);
  EXPECT_EQ(2u, stats.events); // Including the outcomes.
  EXPECT_EQ(3u, stats.batches);
  EXPECT_EQ(1u, stats.cycles);
  EXPECT_EQ(2u, stats.decisions);
  EXPECT_EQ(2u, stats.outcomes[wire::OUTCOME_REASON_OFFERED]);
  EXPECT_EQ(0u, stats.unanswered);

  world.keeper->stop();
  EXPECT_TRUE(world.link->closedOrderly);
  EXPECT_FALSE(world.keeper->connected());
  EXPECT_FALSE(world.submit());
  world.pass(100000);
  EXPECT_EQ("", world.happened());
  EXPECT_EQ(1, world.link->streams);
}


TEST(KeeperTest, FiguresGoAlongNowAndThen)
{
  KeeperOptions options;
  options.statsInterval = Duration(1000);
  options.batchBytesMax = STATS_BYTES_MAX + 100;
  options.writeStats = [](wire::ModuleFigures* figures) {
    figures->set_fallback_offers(7);
  };
  SmallWorld world(options);
  world.begin();
  EXPECT_EQ(1u, world.sidecar.figures);

  for (int i = 0; i < 4; ++i) {
    world.submit();
    world.pass(500);
    world.exchange();
  }

  // Figures are sent with the first batch, and again a second later.
  EXPECT_EQ(2u, world.sidecar.figures);
  const wire::ModuleFigures& last = world.sidecar.lastFigures;
  EXPECT_EQ(7u, last.fallback_offers());
  EXPECT_EQ(1u, last.attempts());
  EXPECT_EQ(1u, last.sessions());
  EXPECT_EQ(static_cast<int>(CAUSE_COUNT) + 1, last.ends_size());
  EXPECT_EQ(
      static_cast<int>(wire::OutcomeReason_ARRAYSIZE), last.outcomes_size());
  EXPECT_LT(last.ByteSizeLong(), STATS_BYTES_MAX);

  // A batch that is already large carries no statistics; a later one does.
  world.submit(600);
  world.pass(1000);
  world.exchange();
  EXPECT_EQ(2u, world.sidecar.figures);
  world.submit();
  world.pass(1000);
  world.exchange();
  EXPECT_EQ(3u, world.sidecar.figures);
}


TEST(KeeperTest, EventsGoWhenTheyAreManyOrOld)
{
  KeeperOptions options;
  options.batchEventsMax = 3;
  options.batchBytesMax = 1000;
  SmallWorld world(options);
  world.begin();
  const uint64_t before = world.sidecar.batches;

  world.submit();
  world.submit();
  world.exchange();
  EXPECT_EQ(before, world.sidecar.batches);
  world.submit();
  world.exchange();
  EXPECT_EQ(before + 1, world.sidecar.batches);
  EXPECT_EQ(3u, world.sidecar.events);

  // The second of these would exceed the batch size.
  world.submit(600);
  world.submit(600);
  world.exchange();
  EXPECT_EQ(before + 2, world.sidecar.batches);
  EXPECT_EQ(4u, world.sidecar.events);

  world.pass(99);
  world.exchange();
  EXPECT_EQ(4u, world.sidecar.events);
  world.pass(1);
  world.exchange();
  EXPECT_EQ(5u, world.sidecar.events);
}


TEST(KeeperTest, FewerEventsAreEnoughForASidecarThatHasNothingToDo)
{
  KeeperOptions options;
  options.batchEventsIdle = 2;
  options.batchEventsMax = 4;
  SmallWorld world(options);
  world.begin();
  const uint64_t before = world.keeper->stats().batches;

  world.submit();
  EXPECT_EQ(before, world.keeper->stats().batches);
  world.submit();
  EXPECT_EQ(before + 1, world.keeper->stats().batches);

  // The sidecar is busy now, so more events form a batch.
  world.submit();
  world.submit();
  world.submit();
  EXPECT_EQ(before + 1, world.keeper->stats().batches);

  // Its answer makes it idle again.
  world.exchange();
  EXPECT_EQ(before + 2, world.keeper->stats().batches);
  EXPECT_EQ(5u, world.sidecar.events);
  EXPECT_EQ(0u, world.keeper->stats().unanswered);
}


// The batch number determines which answers the sidecar gave without knowing
// the event.
TEST(KeeperTest, AnEventGoesWithTheBatchOfItsNumber)
{
  KeeperOptions options;
  options.batchEventsMax = 2;
  options.batchBytesMax = 1000;
  SmallWorld world(options);
  world.begin();

  const auto submit = [&](size_t bytes) {
    wire::Event event;
    event.mutable_whitelist()->add_hostnames(std::string(bytes, 'h'));
    return world.keeper->submit(std::move(event));
  };

  // The first batch was the empty one after the snapshot.
  EXPECT_EQ(2u, submit(10));
  EXPECT_EQ(2u, submit(10)); // The batch is full and is sent.
  EXPECT_EQ(3u, submit(600));
  EXPECT_EQ(4u, submit(600)); // Does not fit beside the other.
  EXPECT_EQ(4u, submit(10));

  world.exchange();
  EXPECT_EQ(4u, world.sidecar.sequence);
  EXPECT_EQ(5u, world.sidecar.events);
}


TEST(KeeperTest, CyclesDoNotPileUp)
{
  SmallWorld world;
  world.begin();

  EXPECT_TRUE(world.cycle({1}));
  EXPECT_TRUE(world.cycle({2}));
  EXPECT_TRUE(world.cycle({3, 2}));
  EXPECT_EQ(1u, world.keeper->stats().cycles);
  EXPECT_EQ(1u, world.link->depth().messages);

  world.exchange();
  EXPECT_EQ(2u, world.sidecar.cycles);
  EXPECT_EQ((std::vector<uint32_t>{2, 3}), world.sidecar.cycleAgents);

  // A request for all agents covers requests for some.
  world.cycle({1});
  world.cycle({2});
  world.cycle();
  world.cycle({3});
  world.exchange();
  EXPECT_EQ(4u, world.sidecar.cycles);
  EXPECT_EQ(0u, world.sidecar.cycleAgents.size());

  // The request for all agents does not persist.
  world.cycle({5});
  world.exchange();
  EXPECT_EQ((std::vector<uint32_t>{5}), world.sidecar.cycleAgents);
}


TEST(KeeperTest, ACycleWaitsForTheSnapshotToBeApplied)
{
  SmallWorld world;
  bool asked = false;
  world.onConnected = [&]() { asked = world.keeper->cycle({1}); };
  world.begin();
  EXPECT_TRUE(asked);
  EXPECT_EQ("snapshot connected decided:2", world.happened());
}


// Decisions of each part are passed on; the next cycle waits for the last part.
TEST(KeeperTest, AnAnswerInPartsIsTakenPartByPart)
{
  SmallWorld world;
  world.likeThis.partsPerCycle = 3;
  world.begin();
  world.happened();
  EXPECT_EQ(5u << 20, world.sidecar.moduleBytesMax);

  world.cycle({1});
  world.cycle({2});
  world.exchange();
  EXPECT_EQ(
      "decided:2 decided:2 decided:2 decided:2 decided:2 decided:2",
      world.happened());
  EXPECT_EQ(2u, world.sidecar.cycles);

  world.pass(200);
  world.exchange();
  EXPECT_EQ(12u, world.sidecar.settled);
  EXPECT_EQ(12u, world.keeper->stats().decisions);
}


// A full queue ends the session without blocking or growing. The next snapshot
// contains what was not sent.
TEST(KeeperTest, AFullQueueMeansAResync)
{
  KeeperOptions options;
  options.batchEventsMax = 1;
  SmallWorld world(options, 4);
  world.begin();
  world.happened();

  // The sidecar does not read.
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(world.submit());
  }

  EXPECT_EQ(4u, world.keeper->stats().queueMessages);
  EXPECT_FALSE(world.submit());
  EXPECT_FALSE(world.submit());
  EXPECT_FALSE(world.keeper->connected());
  EXPECT_EQ(0u, world.keeper->stats().queueMessages);
  EXPECT_EQ(1u, ends(world, Cause::QUEUE_FULL));
  // The owner is not called within the keeper's method.
  EXPECT_EQ("", world.happened());

  world.pass(0);
  EXPECT_EQ("ended:queue_full", world.happened());
  EXPECT_TRUE(world.last.wasConnected);
  EXPECT_GE(world.last.retryIn, Duration(25));
  EXPECT_LE(world.last.retryIn, Duration(50));

  world.pass(50);
  world.exchange();
  EXPECT_EQ("snapshot connected", world.happened());
  EXPECT_EQ(1u, world.keeper->stats().resyncs);
  EXPECT_TRUE(world.submit());
}


TEST(KeeperTest, TheQueueIsBoundedInBytesToo)
{
  KeeperOptions options;
  options.batchEventsMax = 1;
  SmallWorld world(options, 1000, 10000);
  world.begin();

  int taken = 0;

  while (taken < 100 && world.submit(2000)) {
    ++taken;
    ASSERT_LE(world.keeper->stats().queueBytes, 10000u);
  }

  EXPECT_EQ(4, taken); // 4 * 2,100 < 10,000 < 5 * 2,100
  EXPECT_EQ(1u, ends(world, Cause::QUEUE_FULL));
}


TEST(KeeperTest, ASnapshotDoesNotFillTheQueue)
{
  SmallWorld world(KeeperOptions(), 4, 1000);
  world.onSnapshot = [](SnapshotWriter* writer) {
    for (uint32_t i = 10; i < 10000; ++i) {
      wire::Agent* agent = writer->nouns()->add_agents();
      agent->set_agent(i);
      agent->set_agent_id(std::string(1000, 'a'));
    }
  };

  world.begin();
  EXPECT_GE(world.sidecar.chunks, 10);
  EXPECT_EQ(0u, ends(world, Cause::QUEUE_FULL));
}


// The sidecar reads at most 64 KiB: chunks stay below that limit, and an event
// beyond it causes a new session.
TEST(KeeperTest, WhatTheSidecarReadsIsHeeded)
{
  SmallWorld world;
  world.likeThis.messageBytesMax = 64 << 10;
  world.onSnapshot = [](SnapshotWriter* writer) {
    for (uint32_t i = 10; i < 1000; ++i) {
      wire::Agent* agent = writer->nouns()->add_agents();
      agent->set_agent(i);
      agent->set_agent_id(std::string(1000, 'a'));
    }
  };

  world.begin();
  EXPECT_GE(world.sidecar.chunks, 30);

  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(world.submit(30 << 10));
    world.exchange();
  }

  EXPECT_FALSE(world.submit(65 << 10));
  EXPECT_EQ(1u, ends(world, Cause::OVERSIZED));
}


TEST(KeeperTest, ASilentSidecarIsLeft)
{
  KeeperOptions options;
  options.heartbeat = Duration(0);
  SmallWorld world(options);
  world.begin();
  world.happened();

  // Nothing is due, so silence is not an error.
  world.pass(60000);
  EXPECT_EQ("", world.happened());

  world.submit();
  world.cycle();
  world.pass(4999);
  EXPECT_EQ(Duration(4999), world.keeper->waiting());
  EXPECT_TRUE(world.keeper->connected());
  world.pass(1);
  EXPECT_EQ("ended:silent", world.happened());
  EXPECT_EQ(Duration(0), world.keeper->waiting());
}


// Each answer resets the quiet time, even if others are due.
TEST(KeeperTest, ASidecarWithABacklogIsNotQuiet)
{
  KeeperOptions options;
  options.batchEventsMax = 1;
  SmallWorld world(options);
  world.begin();
  EXPECT_EQ(Duration(0), world.keeper->quiet());

  for (int i = 0; i < 3; ++i) {
    world.submit();
  }
  world.pass(700);
  EXPECT_EQ(Duration(700), world.keeper->quiet());

  EXPECT_TRUE(world.exchangeOne());
  world.pass(200);
  EXPECT_EQ(Duration(900), world.keeper->waiting());
  EXPECT_EQ(Duration(200), world.keeper->quiet());

  world.exchange();
  EXPECT_EQ(Duration(0), world.keeper->waiting());
  EXPECT_EQ(Duration(0), world.keeper->quiet());
}


TEST(KeeperTest, AHeartbeatFindsASilentSidecar)
{
  SmallWorld world;
  world.begin();
  world.happened();
  const uint64_t before = world.sidecar.batches;

  world.pass(5000);
  world.exchange();
  EXPECT_EQ(before + 1, world.sidecar.batches);

  // The next heartbeat is sent after 5 s. Its answer is due after another 5 s,
  // but does not arrive.
  world.pass(9999);
  EXPECT_EQ("", world.happened());
  world.pass(1);
  EXPECT_EQ("ended:silent", world.happened());
}


TEST(KeeperTest, ASidecarThatDoesNotGreetIsLeft)
{
  SmallWorld world;
  world.keeper->start();
  world.pass(5000);
  EXPECT_EQ("ended:unreachable", world.happened());
  EXPECT_FALSE(world.last.wasConnected);
}


// Delays between attempts double until a session lasts.
TEST(KeeperTest, AttemptsComeMoreAndMoreSlowly)
{
  SmallWorld world;
  world.keeper->start();

  for (uint32_t attempt = 1; attempt <= 10; ++attempt) {
    ASSERT_TRUE(world.link->isOpen);
    world.link->listener->lost("connection refused", false);
    ASSERT_EQ("ended:unreachable", world.happened());
    ASSERT_EQ(backoffDelay(attempt, 0, world.options.lost), world.last.retryIn);

    world.pass(world.last.retryIn.count() - 1);
    ASSERT_EQ(int(attempt), world.link->streams);
    world.pass(1);
    ASSERT_EQ(int(attempt) + 1, world.link->streams);
  }

  world.exchange();
  world.link->listener->lost("reset", false);
  EXPECT_EQ(backoffDelay(11, 0, world.options.lost), world.last.retryIn);
  EXPECT_EQ("snapshot connected ended:lost", world.happened());

  world.pass(1000);
  world.exchange();
  world.pass(10000);
  world.exchange();
  world.link->listener->lost("reset", false);
  EXPECT_EQ(backoffDelay(1, 0, world.options.lost), world.last.retryIn);
}


// Delays are longer after a refusal or a broken protocol.
TEST(KeeperTest, WhoRefusesIsAskedLessOften)
{
  const auto error = [](wire::ErrorCode code) {
    wire::SessionResponse response;
    response.mutable_error()->set_code(code);
    response.mutable_error()->set_message("go away");
    return response;
  };

  SmallWorld world;
  world.begin();
  world.deliver(error(wire::ERROR_CODE_SUPERSEDED));
  EXPECT_EQ("snapshot connected ended:refused", world.happened());
  EXPECT_EQ("ERROR_CODE_SUPERSEDED: go away", world.last.reason);
  EXPECT_GE(world.last.retryIn, Duration(500));

  world.pass(1000);
  world.exchange();
  world.deliver(error(wire::ERROR_CODE_SHUTDOWN));
  EXPECT_EQ("snapshot connected ended:lost", world.happened());
  EXPECT_LE(world.last.retryIn, Duration(100));

  world.pass(100);
  world.exchange();
  world.deliver(wire::SessionResponse());
  EXPECT_EQ("snapshot connected ended:malformed", world.happened());
  EXPECT_GE(world.last.retryIn, Duration(2000));

  world.pass(4000);
  world.exchange();
  world.link->listener->lost("garbage", true);
  EXPECT_EQ("snapshot connected ended:malformed", world.happened());
}


TEST(KeeperTest, ASnapshotThatIsNotWellFormedIsNotSent)
{
  SmallWorld world;
  world.snapshotError = "columns are not equally long";

  world.keeper->start();
  world.exchange();
  EXPECT_EQ("snapshot ended:snapshot", world.happened());
  EXPECT_EQ(0, world.sidecar.chunks);
}


// The machine's clock may be set back; the sidecar does not notice.
TEST(KeeperTest, TheClockNeverRunsBackwards)
{
  SmallWorld world;
  world.begin();
  EXPECT_EQ(5000, world.sidecar.clockMs);

  world.clockMs = 7000;
  world.cycle();
  world.exchange();
  EXPECT_EQ(7000, world.sidecar.clockMs);

  world.clockMs = 100;
  world.cycle();
  world.exchange();
  EXPECT_EQ(7000, world.sidecar.clockMs);
}


// Outcomes of decisions of an earlier session are rejected.
TEST(KeeperTest, OutcomesOfAnEarlierSessionArePassedOver)
{
  SmallWorld world;
  std::unique_ptr<Outcomes> kept;
  world.onDecided = [&](const Decisions& decisions) {
    kept.reset(new Outcomes(decisions));
    kept->offered();
    kept->refused(wire::OUTCOME_REASON_FILTERED);
  };

  world.begin();
  world.cycle();
  world.exchange();
  ASSERT_TRUE(kept);
  const Outcomes old = *kept;

  world.link->listener->lost("reset", false);
  world.pass(50);
  world.exchange();
  EXPECT_FALSE(world.keeper->report(old));

  world.cycle();
  world.exchange();
  EXPECT_FALSE(world.keeper->report(old)); // Same numbers, earlier session.
  EXPECT_TRUE(world.keeper->report(*kept));
  EXPECT_FALSE(world.keeper->report(*kept)); // Reported already.

  const Stats stats = world.keeper->stats();
  EXPECT_EQ(1u, stats.outcomes[wire::OUTCOME_REASON_OFFERED]);
  EXPECT_EQ(1u, stats.outcomes[wire::OUTCOME_REASON_FILTERED]);
  EXPECT_EQ(2u, stats.sessions);
}


TEST(KeeperTest, TheOwnerMayStopItFromWithin)
{
  SmallWorld first;
  first.onSnapshot = [&](SnapshotWriter*) { first.keeper->stop(); };
  first.keeper->start();
  first.exchange();
  EXPECT_EQ("snapshot", first.happened());

  SmallWorld second;
  second.onConnected = [&]() { second.keeper->stop(); };
  second.keeper->start();
  second.exchange();
  EXPECT_EQ("snapshot connected", second.happened());

  SmallWorld third;
  third.onDecided = [&](const Decisions&) { third.keeper->stop(); };
  third.begin();
  third.cycle();
  third.cycle();
  third.exchange();
  EXPECT_EQ("snapshot connected decided:2", third.happened());
  EXPECT_FALSE(third.link->isOpen);

  third.onDecided = nullptr;
  third.begin();
  EXPECT_EQ("snapshot connected", third.happened());
}


TEST(KeeperTest, TheOwnerMayFillTheQueueFromWithin)
{
  KeeperOptions options;
  options.batchEventsMax = 1;
  SmallWorld world(options, 3);
  size_t taken = 0;

  world.onDecided = [&](const Decisions&) {
    while (world.keeper->submit(wire::Event()) > 0) {
      ++taken;
    }
  };

  world.begin();
  world.happened();
  world.cycle();
  world.cycle({1});
  world.exchange();
  EXPECT_EQ(3u, taken);
  EXPECT_EQ("decided:2 ended:queue_full", world.happened());

  world.onDecided = nullptr;
  world.pass(50);
  world.exchange();
  EXPECT_EQ("snapshot connected", world.happened());
}


TEST(KeeperTest, EveryCauseHasItsName)
{
  std::set<std::string> names;

  for (size_t cause = 0; cause < CAUSE_COUNT; ++cause) {
    names.insert(causeName(static_cast<Cause>(cause)));
  }

  EXPECT_EQ(CAUSE_COUNT, names.size());
  EXPECT_EQ(0u, names.count(""));
}

} // namespace {
} // namespace session {
} // namespace allocator {
