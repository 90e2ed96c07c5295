#ifndef __ALLOCATOR_SESSION_SESSION_HPP__
#define __ALLOCATOR_SESSION_SESSION_HPP__

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "allocator/v1/session.pb.h"

#include "session/clock.hpp"
#include "session/decisions.hpp"

namespace allocator {
namespace session {

// The version of the protocol that this module speaks.
constexpr uint32_t PROTOCOL_VERSION = 2;


// How long the sidecar may be silent while it owes something.
struct SessionDeadlines
{
  // From the hello to the welcome; connecting is part of it.
  Duration welcome{5000};

  // From the snapshot to the first answer: all of it must be applied.
  Duration snapshot{30000};

  // From a batch, or the answer before it, to its answer.
  Duration answer{5000};
};


// The module's side of one session: what it may say when, and which answers it
// believes. It mirrors `allocator/lab/module_protocol/client_session.py`, and
// the transcripts of `tests/transcripts` run through both.
//
//     hello -> Welcome -> snapshot -> batch -> DecisionBatch -> batch -> ...
//
// It does no input or output: its methods give the messages to send, and
// `receive` takes the sidecar's. Batches may be sent before the answers
// to earlier ones have come; answers come in order. A large answer comes
// in parts, each of which is believed as it comes; the batch counts as
// answered with the last, and the deadline is for that. Time is an argument.
// A session is never mended: when it ends, a new one begins with a new
// stream and a new snapshot.
class Session
{
public:
  enum class State
  {
    IDLE,      // Say hello.
    GREETING,  // Wait for the welcome.
    WELCOME,   // Send the snapshot.
    STREAMING, // Send batches.
    CLOSED,    // Begin a new session.
  };

  // What came of a message.
  struct Reply
  {
    enum class Kind
    {
      WELCOME,
      DECISIONS,
      ENDED, // The sidecar ended the session, and said why.
      BAD,   // The sidecar broke the protocol.
    };

    Kind kind = Kind::BAD;

    // For DECISIONS, one for each part; `waited` is the time since the
    // batch was sent.
    Decisions decisions;
    std::chrono::microseconds waited{0};

    // For ENDED.
    wire::ErrorCode code = wire::ERROR_CODE_UNSPECIFIED;

    // For ENDED and BAD: what an operator should read.
    std::string message;
  };

  // `number` marks the decisions of this session.
  Session(
      uint64_t number,
      const SessionDeadlines& deadlines,
      const DecisionLimits& limits);

  // The methods that give messages return whether the state allows it.

  bool
  hello(const wire::Hello& hello, TimePoint now, wire::SessionRequest* request);

  // `chunks` is the whole state as `SnapshotWriter` laid it out, or a part
  // of it: the snapshot is complete with the chunk that is the last, which
  // says at which sequence number.
  bool snapshot(
      std::vector<wire::SnapshotChunk>&& chunks,
      TimePoint now,
      std::vector<wire::SessionRequest>* requests);

  // Takes everything of `batch` but its sequence number. The decisions that
  // answer it bear `revision`.
  bool batch(
      wire::EventBatch&& batch,
      TimePoint now,
      wire::SessionRequest* request,
      uint64_t revision = 0);

  // Gives the events that say what became of the oldest decisions without
  // an outcome. They must be the next events that are sent.
  bool outcomes(const Outcomes& outcomes, std::vector<wire::Event>* events);

  Reply receive(const std::string& bytes, TimePoint now);
  Reply receive(wire::SessionResponse&& response, TimePoint now);

  // Ends the session; nothing more is said or believed.
  void close();

  // When the sidecar counts as silent; `TimePoint::max()` while it owes
  // nothing.
  TimePoint deadline() const;

  // Ends the session where the deadline has passed; gives the reason, or
  // an empty text.
  std::string expire(TimePoint now);

  State state() const { return state_; }

  // The number of the last batch that was sent, and of the last one that
  // was answered.
  uint64_t sequence() const { return sequence_; }
  uint64_t answered() const { return answered_; }

  // Batches without an answer, and those of them that asked for a cycle.
  size_t unanswered() const { return batches.size(); }
  size_t cyclesUnanswered() const { return cyclesUnanswered_; }

  // When the oldest batch without an answer was sent; `TimePoint::max()`
  // where there is none.
  TimePoint oldestUnanswered() const
  {
    return batches.empty() ? TimePoint::max() : batches.front().at;
  }

  // Decisions without an outcome.
  uint64_t unsettled() const { return unsettled_; }

  // Valid after the welcome.
  const wire::Welcome& welcome() const { return welcome_; }

private:
  struct Sent
  {
    bool cycle;
    TimePoint at;
    uint64_t revision;
  };

  Reply take(wire::SessionResponse&& response, TimePoint now);
  Reply takeWelcome(const wire::Welcome& welcome, TimePoint now);
  Reply takeDecisions(wire::DecisionBatch&& batch, TimePoint now);
  std::string checkBatch(const wire::DecisionBatch& batch) const;

  const uint64_t number;
  const SessionDeadlines deadlines;
  const DecisionLimits limits;

  State state_ = State::IDLE;
  wire::Welcome welcome_;
  uint64_t sequence_ = 0;
  uint64_t answered_ = 0;
  uint64_t cycles = 0;
  uint64_t nextDecision = 1;
  uint64_t unsettled_ = 0;
  size_t cyclesUnanswered_ = 0;

  // Decisions and amounts in the parts of an answer that is not whole.
  size_t partial = 0;
  size_t partialAmounts = 0;

  std::deque<Sent> batches;
  bool loading = false; // The snapshot is sent, no batch is answered yet.
  TimePoint heard;      // When the sidecar last said what it owed.
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_SESSION_HPP__
