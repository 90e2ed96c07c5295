#include "session/session.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace allocator {
namespace session {
namespace {

using Kind = Session::Reply::Kind;

const TimePoint START = TimePoint() + Duration(1000000);


TimePoint at(int64_t ms)
{
  return START + Duration(ms);
}


wire::SessionResponse welcome(uint32_t version = PROTOCOL_VERSION)
{
  wire::SessionResponse response;
  response.mutable_welcome()->set_protocol_version(version);
  return response;
}


wire::SessionResponse decisions(
    uint64_t sequence,
    uint64_t cycle = 0,
    uint64_t first = 1,
    int rows = 0)
{
  wire::SessionResponse response;
  wire::DecisionBatch* batch = response.mutable_decisions();
  batch->set_sequence(sequence);
  batch->set_cycle(cycle);
  batch->set_first_decision(first);

  if (rows > 0) {
    batch->add_grants();
  }

  for (int i = 0; i < rows; ++i) {
    batch->mutable_grants(0)->add_framework(1);
    batch->mutable_grants(0)->add_role(1);
    batch->mutable_grants(0)->add_agent(1);
  }

  return response;
}


// A part of an answer, but not the last one.
wire::SessionResponse part(uint64_t sequence, uint64_t first, int rows)
{
  wire::SessionResponse response = decisions(sequence, 1, first, rows);
  response.mutable_decisions()->set_more(true);
  return response;
}


Outcomes outcomes(uint64_t first, int count, uint64_t number = 7)
{
  Decisions decisions;
  decisions.session = number;
  decisions.first = first;
  Outcomes result(decisions);

  for (int i = 0; i < count; ++i) {
    result.offered();
  }

  return result;
}


// Session number 7, and functions that bring it into a state.
struct Dialogue
{
  void greet(int64_t ms = 0)
  {
    wire::SessionRequest request;
    ASSERT_TRUE(session.hello(wire::Hello(), at(ms), &request));
    EXPECT_EQ(PROTOCOL_VERSION + 0, request.hello().protocol_version());
  }

  void stream(uint64_t sequence = 0, int64_t ms = 0)
  {
    greet(ms);
    wire::SessionResponse response = welcome();
    response.mutable_welcome()->set_kinds_max(kindsMax);
    ASSERT_EQ(Kind::WELCOME, hear(response, ms).kind);

    std::vector<wire::SnapshotChunk> chunks(1);
    chunks[0].set_last(true);
    chunks[0].set_sequence(sequence);

    std::vector<wire::SessionRequest> requests;
    ASSERT_TRUE(session.snapshot(std::move(chunks), at(ms), &requests));
    ASSERT_EQ(1u, requests.size());
  }

  uint64_t batch(bool cycle = false, int64_t ms = 0)
  {
    wire::EventBatch events;
    events.set_cycle(cycle);
    wire::SessionRequest request;
    EXPECT_TRUE(session.batch(std::move(events), at(ms), &request));
    return request.events().sequence();
  }

  Session::Reply hear(wire::SessionResponse response, int64_t ms = 0)
  {
    return session.receive(std::move(response), at(ms));
  }

  static DecisionLimits limits()
  {
    DecisionLimits limits;
    limits.decisionsMax = 100;
    limits.amountsMax = 100;
    return limits;
  }

  uint32_t kindsMax = 0;
  Session session{7, SessionDeadlines(), limits()};
};


TEST(SessionTest, NothingIsSaidOutOfOrder)
{
  Dialogue dialogue;
  Session& session = dialogue.session;
  wire::SessionRequest request;
  std::vector<wire::SessionRequest> requests;
  std::vector<wire::SnapshotChunk> chunks(1);
  chunks[0].set_last(true);

  EXPECT_FALSE(session.batch(wire::EventBatch(), at(0), &request));
  EXPECT_FALSE(session.snapshot(std::move(chunks), at(0), &requests));

  dialogue.greet();
  EXPECT_FALSE(session.hello(wire::Hello(), at(0), &request));
  EXPECT_FALSE(session.batch(wire::EventBatch(), at(0), &request));

  dialogue.hear(welcome());
  EXPECT_FALSE(session.batch(wire::EventBatch(), at(0), &request));

  // A snapshot may come in parts; nothing may follow before its end.
  EXPECT_FALSE(session.snapshot({}, at(0), &requests));
  EXPECT_TRUE(session.snapshot({wire::SnapshotChunk()}, at(0), &requests));
  EXPECT_EQ(Session::State::WELCOME, session.state());

  session.close();
  EXPECT_FALSE(session.hello(wire::Hello(), at(0), &request));
  EXPECT_FALSE(session.batch(wire::EventBatch(), at(0), &request));
  EXPECT_EQ(Kind::BAD, dialogue.hear(welcome()).kind);
}


TEST(SessionTest, BatchesMayOvertakeAnswers)
{
  Dialogue dialogue;
  dialogue.stream(10);
  EXPECT_EQ(11u, dialogue.batch(true));
  EXPECT_EQ(12u, dialogue.batch());
  EXPECT_EQ(13u, dialogue.batch(true));
  EXPECT_EQ(3u, dialogue.session.unanswered());
  EXPECT_EQ(2u, dialogue.session.cyclesUnanswered());

  const Session::Reply reply = dialogue.hear(decisions(11, 1, 1, 2));
  ASSERT_EQ(Kind::DECISIONS, reply.kind) << reply.message;
  EXPECT_EQ(7u, reply.decisions.session);
  EXPECT_EQ(11u, reply.decisions.sequence);
  EXPECT_EQ(1u, reply.decisions.cycle);
  EXPECT_EQ(1u, reply.decisions.first);
  EXPECT_EQ(2u, reply.decisions.size());

  EXPECT_EQ(Kind::DECISIONS, dialogue.hear(decisions(12, 0, 3)).kind);
  EXPECT_EQ(Kind::DECISIONS, dialogue.hear(decisions(13, 2, 3, 1)).kind);
  EXPECT_EQ(13u, dialogue.session.answered());
  EXPECT_EQ(3u, dialogue.session.unsettled());
  EXPECT_EQ(0u, dialogue.session.cyclesUnanswered());
}


TEST(SessionTest, OutcomesAreOfTheOldestDecisions)
{
  Dialogue dialogue;
  Session& session = dialogue.session;
  dialogue.stream();
  dialogue.batch(true);
  dialogue.hear(decisions(1, 1, 1, 3));

  std::vector<wire::Event> events;
  EXPECT_FALSE(session.outcomes(outcomes(2, 1), &events)); // 1 is the oldest.
  EXPECT_FALSE(session.outcomes(outcomes(1, 4), &events)); // There are 3.
  EXPECT_FALSE(session.outcomes(outcomes(1, 1, 6), &events)); // Not session 7.
  EXPECT_EQ(3u, session.unsettled());
  EXPECT_TRUE(events.empty());

  EXPECT_TRUE(session.outcomes(outcomes(1, 2), &events));
  ASSERT_EQ(1u, events.size());
  EXPECT_EQ(1u, events[0].outcomes().first_decision());
  EXPECT_TRUE(session.outcomes(outcomes(3, 1), &events));
  EXPECT_EQ(0u, session.unsettled());
  EXPECT_FALSE(session.outcomes(outcomes(4, 1), &events));
}


// Only batch 12, which asks for a cycle, is unanswered.
TEST(SessionTest, AnImpossibleAnswerEndsIt)
{
  wire::SessionResponse uneven = decisions(12, 1, 1, 1);
  uneven.mutable_decisions()->mutable_grants(0)->clear_role();

  const std::vector<std::pair<wire::SessionResponse, std::string>> cases = {
      {wire::SessionResponse(), "the sidecar said an unknown kind of message;"},
      {welcome(), "the sidecar said welcome; this module must send batches"},
      {decisions(1), "an answer to batch 1; 12 is due"},
      {decisions(13), "an answer to batch 13; 12 is due"},
      {decisions(UINT64_MAX), "an answer to batch 18446744073709551615"},
      {decisions(12), "cycle 0 in the answer to batch 12"},
      {decisions(12, 2), "cycle 2 in the answer to batch 12"},
      {decisions(12, 1, 2), "decision 2 comes where 1 is due"},
      {decisions(12, 1, 0), "decision 0 comes where 1 is due"},
      {uneven, "grants[0].role: has 0 entries but framework has 1"},
  };

  for (const auto& each : cases) {
    Dialogue dialogue;
    dialogue.stream(11);
    dialogue.batch(true);

    const Session::Reply reply = dialogue.hear(each.first);
    EXPECT_EQ(Kind::BAD, reply.kind) << each.second;
    EXPECT_EQ(0u, reply.message.find(each.second)) << reply.message;
    EXPECT_EQ(Session::State::CLOSED, dialogue.session.state());
    EXPECT_EQ("the session is over", dialogue.hear(decisions(12, 1)).message);
  }
}


// The last part of a large answer completes it.
TEST(SessionTest, AnAnswerMayComeInParts)
{
  Dialogue dialogue;
  Session& session = dialogue.session;
  dialogue.stream(10);
  dialogue.batch(true);
  dialogue.batch(true);

  Session::Reply reply = dialogue.hear(part(11, 1, 3));
  ASSERT_EQ(Kind::DECISIONS, reply.kind) << reply.message;
  EXPECT_TRUE(reply.decisions.more);
  EXPECT_EQ(1u, reply.decisions.cycle);
  EXPECT_EQ(10u, session.answered());
  EXPECT_EQ(2u, session.unanswered());
  EXPECT_EQ(2u, session.cyclesUnanswered());

  // Outcomes may be reported before the last part.
  std::vector<wire::Event> events;
  EXPECT_TRUE(session.outcomes(outcomes(1, 3), &events));

  reply = dialogue.hear(part(11, 4, 2));
  ASSERT_EQ(Kind::DECISIONS, reply.kind) << reply.message;
  EXPECT_EQ(4u, reply.decisions.first);

  reply = dialogue.hear(decisions(11, 1, 6, 1));
  ASSERT_EQ(Kind::DECISIONS, reply.kind) << reply.message;
  EXPECT_FALSE(reply.decisions.more);
  EXPECT_EQ(11u, session.answered());
  EXPECT_EQ(3u, session.unsettled());
  EXPECT_EQ(1u, session.cyclesUnanswered());

  // The last part may be empty; the next cycle has the next number.
  EXPECT_EQ(Kind::DECISIONS, dialogue.hear(decisions(12, 2, 7)).kind);
}


TEST(SessionTest, PartsThatCannotBeEndIt)
{
  wire::SessionResponse anotherCycle = part(1, 3, 2);
  anotherCycle.mutable_decisions()->set_cycle(2);

  const std::vector<std::pair<wire::SessionResponse, std::string>> cases = {
      {part(1, 3, 0), "a part without decisions of the answer to batch 1"},
      {part(2, 3, 2), "an answer to batch 2; 1 is due"},
      {anotherCycle, "cycle 2 in the answer to batch 1"},
      {part(1, 1, 2), "decision 1 comes where 3 is due"},
      {part(1, 4, 2), "decision 4 comes where 3 is due"},
      {part(1, 3, 99), "grants: has 99 entries; at most 98 are taken"},
  };

  for (const auto& each : cases) {
    Dialogue dialogue;
    dialogue.stream();
    dialogue.batch(true);
    dialogue.batch(true);
    ASSERT_EQ(Kind::DECISIONS, dialogue.hear(part(1, 1, 2)).kind);

    const Session::Reply reply = dialogue.hear(each.first);
    EXPECT_EQ(Kind::BAD, reply.kind) << each.second;
    EXPECT_EQ(0u, reply.message.find(each.second)) << reply.message;
    EXPECT_EQ(Session::State::CLOSED, dialogue.session.state());
  }
}


wire::SessionResponse wide(uint64_t first, int rows, int kinds)
{
  wire::SessionResponse response = part(1, first, rows);
  wire::Holdings* group = response.mutable_decisions()->mutable_grants(0);
  for (int kind = 0; kind < kinds; ++kind) {
    group->add_kind(kind);
  }
  group->mutable_amount()->Resize(rows * kinds, 1);
  return response;
}


// The limit on amounts applies to all parts of an answer together.
TEST(SessionTest, AmountsOfAnAnswerAreBounded)
{
  Dialogue dialogue;
  dialogue.stream();
  dialogue.batch(true);
  ASSERT_EQ(Kind::DECISIONS, dialogue.hear(wide(1, 2, 30)).kind);
  ASSERT_EQ(Kind::DECISIONS, dialogue.hear(wide(3, 2, 20)).kind);

  const Session::Reply reply = dialogue.hear(wide(5, 1, 1));
  EXPECT_EQ(Kind::BAD, reply.kind);
  EXPECT_EQ(
      "grants.amount: has 1 entries in all groups; at most 0 are taken",
      reply.message);
}


// The limit applies to each answer.
TEST(SessionTest, AmountsAreCountedForEachAnswer)
{
  Dialogue dialogue;
  dialogue.stream();
  dialogue.batch(true);
  wire::SessionResponse last = wide(1, 4, 25);
  last.mutable_decisions()->set_more(false);
  ASSERT_EQ(Kind::DECISIONS, dialogue.hear(last).kind);

  dialogue.batch(true);
  wire::SessionResponse next = wide(5, 4, 25);
  next.mutable_decisions()->set_sequence(2);
  next.mutable_decisions()->set_cycle(2);
  const Session::Reply reply = dialogue.hear(next);
  EXPECT_EQ(Kind::DECISIONS, reply.kind) << reply.message;
}


// A decision names at most as many kinds as the sidecar distinguishes.
TEST(SessionTest, KindsAreThoseOfTheSession)
{
  for (uint32_t kindsMax : {0, 3}) {
    Dialogue dialogue;
    dialogue.kindsMax = kindsMax;
    dialogue.stream();
    dialogue.batch(true);
    ASSERT_EQ(Kind::DECISIONS, dialogue.hear(wide(1, 1, 3)).kind);

    const Session::Reply reply = dialogue.hear(wide(2, 1, 4));
    EXPECT_EQ(kindsMax == 0 ? Kind::DECISIONS : Kind::BAD, reply.kind);
    EXPECT_EQ(
        kindsMax == 0 ? ""
                      : "grants[0].kind: has 4 entries; at most 3 are taken",
        reply.message);
  }
}


// Reclaims are valid only in the last part of an answer to a cycle.
TEST(SessionTest, ReclaimsComeAtTheEndOfACycle)
{
  auto with = [](wire::SessionResponse response, int rows, int agents) {
    wire::Reclaims* reclaims = response.mutable_decisions()->mutable_reclaims();
    for (int i = 0; i < rows; ++i) {
      reclaims->add_framework(i + 1);
    }
    for (int i = 0; i < agents; ++i) {
      reclaims->add_agent(i + 5);
    }
    return response;
  };

  const std::string misplaced =
      "reclaims: belong in the last part of an answer with a cycle";

  struct Case
  {
    bool cycle;
    wire::SessionResponse response;
    std::string wrong;
  };

  const std::vector<Case> cases = {
      {true, with(decisions(1, 1), 2, 2), ""},
      {true, with(decisions(1, 1, 1, 3), 2, 2), ""},
      {true, with(part(1, 1, 1), 1, 1), misplaced},
      {false, with(decisions(1), 1, 1), misplaced},
      {true,
       with(decisions(1, 1), 2, 1),
       "reclaims.agent: has 1 entries but framework has 2; columns have "
       "equal lengths"},
      {true,
       with(decisions(1, 1), 101, 101),
       "reclaims.framework: has 101 entries; at most 100 are taken"},
  };

  for (const Case& each : cases) {
    Dialogue dialogue;
    dialogue.stream();
    dialogue.batch(each.cycle);

    const Session::Reply reply = dialogue.hear(each.response);
    EXPECT_EQ(each.wrong, reply.message);
    ASSERT_EQ(each.wrong.empty() ? Kind::DECISIONS : Kind::BAD, reply.kind);
    if (each.wrong.empty()) {
      EXPECT_EQ(6u, reply.decisions.reclaims.agent(1));
    }
  }
}


TEST(SessionTest, GangsLieWithinTheDecisionsAndDoNotOverlap)
{
  using Rows = std::vector<std::pair<uint32_t, uint32_t>>;

  struct Case
  {
    Rows rows;
    std::string wrong;
  };

  const std::string apart =
      "; gangs must not overlap, and lie within the 3 decisions of this part";
  const std::vector<Case> cases = {
      {{{0, 1}, {1, 2}}, ""},
      {{{2, 1}}, ""},
      {{{2, 2}}, "gangs.first[0]: is 2" + apart},
      {{{0, 2}, {1, 1}}, "gangs.first[1]: is 1" + apart},
      {{{1, 1}, {0, 1}}, "gangs.first[1]: is 0" + apart},
      {{{UINT32_MAX, 1}}, "gangs.first[0]: is 4294967295" + apart},
      {{{0, 0}}, "gangs.count[0]: is 0; it must be from 1 to 8192"},
      {{{0, 8193}}, "gangs.count[0]: is 8193; it must be from 1 to 8192"},
  };

  for (const Case& each : cases) {
    Dialogue dialogue;
    dialogue.stream();
    dialogue.batch(true);

    wire::SessionResponse response = decisions(1, 1, 1, 3);
    for (const auto& row : each.rows) {
      response.mutable_decisions()->mutable_gangs()->add_first(row.first);
      response.mutable_decisions()->mutable_gangs()->add_count(row.second);
    }

    const Session::Reply reply = dialogue.hear(response);
    EXPECT_EQ(each.wrong, reply.message);
    EXPECT_EQ(each.wrong.empty() ? Kind::DECISIONS : Kind::BAD, reply.kind);
  }

  Dialogue dialogue;
  dialogue.stream();
  dialogue.batch(true);
  wire::SessionResponse response = decisions(1, 1, 1, 3);
  response.mutable_decisions()->mutable_gangs()->add_first(0);
  EXPECT_EQ(
      "gangs.count: has 0 entries but first has 1",
      dialogue.hear(response).message);
}


// An endless answer is stopped by the deadline or the limit on decisions.
TEST(SessionTest, PartsWithoutEndRunIntoTheDeadlineOrTheBound)
{
  Dialogue slow;
  slow.stream();
  slow.batch(false);
  slow.hear(decisions(1));
  slow.batch(true, 1000);
  const TimePoint due = slow.session.deadline();

  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(Kind::DECISIONS, slow.hear(part(2, i + 1, 1), 2000 + i).kind);
    EXPECT_EQ(due, slow.session.deadline());
  }

  Dialogue fast;
  fast.stream();
  fast.batch(true);
  int taken = 0;

  while (taken < 1000 && fast.hear(part(1, taken + 1, 1)).kind != Kind::BAD) {
    ++taken;
  }

  EXPECT_EQ(100, taken); // The limit on decisions of an answer.
}


TEST(SessionTest, DecisionsThatNobodyAskedForAreNotBelieved)
{
  Dialogue before;
  before.stream();
  EXPECT_EQ(
      "an answer to batch 1; 1 is due", before.hear(decisions(1)).message);

  Dialogue dialogue;
  dialogue.stream();
  dialogue.batch(false);
  EXPECT_EQ(
      "decisions without a cycle in batch 1",
      dialogue.hear(decisions(1, 0, 1, 1)).message);

  Dialogue twice;
  twice.stream();
  twice.batch(true);
  EXPECT_EQ(Kind::DECISIONS, twice.hear(decisions(1, 1)).kind);
  EXPECT_EQ(Kind::BAD, twice.hear(decisions(1, 1)).kind);
}


TEST(SessionTest, AnotherVersionIsNotBelieved)
{
  Dialogue dialogue;
  dialogue.greet();
  EXPECT_EQ(
      "the sidecar speaks version 1, not 2", dialogue.hear(welcome(1)).message);
}


TEST(SessionTest, BytesThatDoNotParseEndIt)
{
  Dialogue dialogue;
  dialogue.stream();
  const Session::Reply reply =
      dialogue.session.receive(std::string("\xff\xff"), at(0));

  EXPECT_EQ(Kind::BAD, reply.kind);
  EXPECT_EQ("2 bytes are not a SessionResponse", reply.message);
  EXPECT_EQ(Session::State::CLOSED, dialogue.session.state());
}


TEST(SessionTest, AnErrorSaysWhyItEnded)
{
  wire::SessionResponse response;
  response.mutable_error()->set_code(wire::ERROR_CODE_BOOKS);
  response.mutable_error()->set_field("events[0]");
  response.mutable_error()->set_message("no");

  Dialogue dialogue;
  dialogue.stream();
  const Session::Reply reply = dialogue.hear(response);
  EXPECT_EQ(Kind::ENDED, reply.kind);
  EXPECT_EQ(wire::ERROR_CODE_BOOKS, reply.code);
  EXPECT_EQ("ERROR_CODE_BOOKS: events[0]: no", reply.message);

  response.mutable_error()->set_code(static_cast<wire::ErrorCode>(99));
  Dialogue later;
  EXPECT_EQ("error 99: events[0]: no", later.hear(response).message);
}


TEST(SessionTest, TheWelcomeIsDueAfterTheHello)
{
  Dialogue dialogue;
  EXPECT_EQ(TimePoint::max(), dialogue.session.deadline());

  dialogue.greet(100);
  EXPECT_EQ(at(5100), dialogue.session.deadline());
  EXPECT_EQ("", dialogue.session.expire(at(5099)));
  EXPECT_EQ("no welcome within 5000 ms", dialogue.session.expire(at(5100)));
  EXPECT_EQ(Session::State::CLOSED, dialogue.session.state());
  EXPECT_EQ("", dialogue.session.expire(at(9999)));
}


TEST(SessionTest, TheSnapshotTakesItsTime)
{
  Dialogue dialogue;
  dialogue.stream(0, 100);
  EXPECT_EQ(TimePoint::max(), dialogue.session.deadline());

  dialogue.batch(false, 200);
  EXPECT_EQ(at(30200), dialogue.session.deadline());
  EXPECT_EQ("", dialogue.session.expire(at(30199)));
  dialogue.hear(decisions(1), 30199);

  // From now on the deadline of answers applies.
  dialogue.batch(false, 31000);
  EXPECT_EQ(at(36000), dialogue.session.deadline());
}


// A sidecar that works through a backlog is not silent: each answer extends the
// deadline.
TEST(SessionTest, AnAnswerIsDueAfterItsBatchOrTheAnswerBefore)
{
  Dialogue dialogue;
  dialogue.stream();
  dialogue.batch(false, 0);
  dialogue.hear(decisions(1), 1000);
  EXPECT_EQ(TimePoint::max(), dialogue.session.deadline());

  dialogue.batch(false, 2000);
  dialogue.batch(false, 2100);
  EXPECT_EQ(at(7000), dialogue.session.deadline());
  EXPECT_EQ(at(2000), dialogue.session.oldestUnanswered());

  const Session::Reply reply = dialogue.hear(decisions(2), 6500);
  EXPECT_EQ(4500000, reply.waited.count());
  EXPECT_EQ(at(11500), dialogue.session.deadline());
  EXPECT_EQ(
      "batch 3 was not answered within 5000 ms",
      dialogue.session.expire(at(11500)));
}

} // namespace {
} // namespace session {
} // namespace allocator {
