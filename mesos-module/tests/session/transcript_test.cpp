#include <dirent.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "allocator/v1/transcript.pb.h"

#include "session/session.hpp"

// Runs a session through the dialogues of `tests/transcripts`: the session must
// send the module's lines and accept the sidecar's. The tests of the sidecar
// use the same dialogues.

namespace allocator {
namespace session {
namespace {

using google::protobuf::util::MessageDifferencer;

const TimePoint NOW;


std::vector<std::string> names()
{
  std::vector<std::string> result;
  DIR* directory = opendir(TRANSCRIPTS);

  while (directory != nullptr) {
    const dirent* entry = readdir(directory);

    if (entry == nullptr) {
      closedir(directory);
      break;
    }

    const std::string name = entry->d_name;
    const size_t suffix = name.rfind(".txtpb");

    if (suffix != std::string::npos) {
      result.push_back(name.substr(0, suffix));
    }
  }

  std::sort(result.begin(), result.end());
  return result;
}


wire::Transcript load(const std::string& name)
{
  std::ifstream file(std::string(TRANSCRIPTS) + "/" + name + ".txtpb");
  std::ostringstream content;
  content << file.rdbuf();

  wire::Transcript transcript;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString(content.str(), &transcript))
      << name;
  return transcript;
}


// A session and the lines of a transcript.
class Player
{
public:
  Player() : session(1, SessionDeadlines(), DecisionLimits()) {}

  void say(const wire::SessionRequest& line)
  {
    switch (line.message_case()) {
      case wire::SessionRequest::kHello: {
        wire::SessionRequest request;
        ASSERT_TRUE(session.hello(line.hello(), NOW, &request));
        expect(line, request);
        break;
      }
      case wire::SessionRequest::kSnapshot:
        chunks.push_back(line.snapshot());

        if (line.snapshot().last()) {
          saySnapshot();
        }

        break;
      case wire::SessionRequest::kEvents: sayBatch(line); break;
      default: FAIL() << "a line has no message";
    }
  }

  Session::Reply hear(const wire::Line& line)
  {
    return line.says_case() == wire::Line::kSidecarBytes
        ? session.receive(line.sidecar_bytes(), NOW)
        : session.receive(wire::SessionResponse(line.sidecar()), NOW);
  }

  Session session;

private:
  void expect(
      const wire::SessionRequest& wanted,
      const wire::SessionRequest& request)
  {
    EXPECT_TRUE(MessageDifferencer::Equals(wanted, request))
        << "wanted " << wanted.ShortDebugString() << "\nsaid   "
        << request.ShortDebugString();
  }

  void saySnapshot()
  {
    std::vector<wire::SnapshotChunk> copy = chunks;
    std::vector<wire::SessionRequest> requests;
    ASSERT_TRUE(session.snapshot(std::move(copy), NOW, &requests));
    ASSERT_EQ(chunks.size(), requests.size());

    for (size_t i = 0; i < chunks.size(); ++i) {
      wire::SessionRequest wanted;
      *wanted.mutable_snapshot() = chunks[i];
      expect(wanted, requests[i]);
    }
  }

  void sayBatch(const wire::SessionRequest& line)
  {
    wire::EventBatch batch = line.events();
    batch.clear_sequence(); // The session numbers its batches itself.

    for (wire::Event& event : *batch.mutable_events()) {
      if (event.event_case() == wire::Event::kOutcomes) {
        Decisions decisions;
        decisions.session = 1;
        Outcomes outcomes(decisions);
        outcomes.messages.push_back(event.outcomes());
        std::vector<wire::Event> events;
        ASSERT_TRUE(session.outcomes(outcomes, &events));
        ASSERT_EQ(1u, events.size());
        event = events[0];
      }
    }

    wire::SessionRequest request;
    ASSERT_TRUE(session.batch(std::move(batch), NOW, &request));
    expect(line, request);
  }

  std::vector<wire::SnapshotChunk> chunks;
};


int lastOfModule(const wire::Transcript& transcript)
{
  int last = -1;

  for (int i = 0; i < transcript.lines_size(); ++i) {
    const wire::Line::SaysCase says = transcript.lines(i).says_case();

    if (says == wire::Line::kModule || says == wire::Line::kModuleBytes) {
      last = i;
    }
  }

  return last;
}


void expectEnd(
    const wire::Transcript& transcript,
    const wire::Line& last,
    const Session::Reply& reply,
    const Session& session)
{
  switch (transcript.fault()) {
    case wire::Transcript::FAULT_NOBODY:
      EXPECT_EQ(Session::Reply::Kind::DECISIONS, reply.kind) << reply.message;
      EXPECT_EQ(session.sequence(), session.answered());
      break;
    case wire::Transcript::FAULT_MODULE:
      EXPECT_EQ(Session::Reply::Kind::ENDED, reply.kind) << reply.message;
      EXPECT_EQ(last.sidecar().error().code(), reply.code);
      EXPECT_EQ(Session::State::CLOSED, session.state());
      break;
    case wire::Transcript::FAULT_SIDECAR:
      EXPECT_EQ(Session::Reply::Kind::BAD, reply.kind);
      EXPECT_NE("", reply.message);
      EXPECT_EQ(Session::State::CLOSED, session.state());
      break;
    default: FAIL() << "the transcript does not say who is at fault";
  }
}


class TranscriptTest : public ::testing::TestWithParam<std::string>
{};


TEST_P(TranscriptTest, TheModuleSaysItsLinesAndBelievesTheOthers)
{
  const wire::Transcript transcript = load(GetParam());
  ASSERT_GT(transcript.lines_size(), 0);

  // If the module is at fault, its last line is wrong, and this module never
  // sends it.
  const int unsaid = transcript.fault() == wire::Transcript::FAULT_MODULE
      ? lastOfModule(transcript)
      : -1;

  const int last = transcript.lines_size() - 1;
  Player player;

  for (int i = 0; i <= last; ++i) {
    const wire::Line& line = transcript.lines(i);
    SCOPED_TRACE("line " + std::to_string(i));

    if (line.says_case() == wire::Line::kModule && i != unsaid) {
      player.say(line.module());
    } else if (
        line.says_case() == wire::Line::kSidecar ||
        line.says_case() == wire::Line::kSidecarBytes) {
      const Session::Reply reply = player.hear(line);

      if (i == last) {
        expectEnd(transcript, line, reply, player.session);
      } else {
        ASSERT_TRUE(
            reply.kind == Session::Reply::Kind::WELCOME ||
            reply.kind == Session::Reply::Kind::DECISIONS)
            << reply.message;
      }
    }
  }
}


INSTANTIATE_TEST_SUITE_P(
    All,
    TranscriptTest,
    ::testing::ValuesIn(names()),
    [](const ::testing::TestParamInfo<std::string>& info) {
      return info.param;
    });


TEST(TranscriptsTest, ThereAreSomeOfEveryFault)
{
  std::set<int> faults;

  for (const std::string& name : names()) {
    faults.insert(load(name).fault());
  }

  EXPECT_EQ(3u, faults.size()) << "none found in " << TRANSCRIPTS << "?";
}

} // namespace {
} // namespace session {
} // namespace allocator {
