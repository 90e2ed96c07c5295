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

constexpr uint32_t PROTOCOL_VERSION = 2;


// How long the sidecar may take for an answer.
struct SessionDeadlines
{
  // From hello, including connecting, to welcome.
  Duration welcome{5000};

  // From the snapshot to the first answer, by which the sidecar confirms that
  // it has applied the whole snapshot.
  Duration snapshot{30000};

  // From a batch, or the previous answer if that came later, to the batch's
  // answer.
  Duration answer{5000};
};


// The module's side of one session: which messages may be sent when, and which
// answers are valid. It mirrors
// `laboratory/module_protocol/client_session.py`; the transcripts of
// `tests/transcripts` run through both.
//
//     hello -> Welcome -> snapshot -> batch -> DecisionBatch -> batch -> ...
//
// Does no I/O: methods return the messages to send, and `receive` takes the
// messages of the sidecar. Time is an argument.
//
// Batches may be pipelined; answers come in order. A large answer comes in
// parts, which can be used at once; the deadline is met only by the last part.
// A session does not recover: after an error, begin a new one with a new stream
// and snapshot.
class Session
{
public:
  enum class State
  {
    IDLE,      // Next: hello.
    GREETING,  // Next: the sidecar's welcome.
    WELCOME,   // Next: the snapshot.
    STREAMING, // Batches and answers.
    CLOSED,    // Over.
  };

  // Result of a message.
  struct Reply
  {
    enum class Kind
    {
      WELCOME,
      DECISIONS,
      ENDED, // The sidecar ended the session with an error.
      BAD,   // The sidecar broke the protocol.
    };

    Kind kind = Kind::BAD;

    // DECISIONS: one part of an answer, and the time since its batch was sent.
    Decisions decisions;
    std::chrono::microseconds waited{0};

    // ENDED.
    wire::ErrorCode code = wire::ERROR_CODE_UNSPECIFIED;

    // ENDED and BAD: the reason, for operators.
    std::string message;
  };

  // `number` identifies this session's decisions and outcomes.
  Session(
      uint64_t number,
      const SessionDeadlines& deadlines,
      const DecisionLimits& limits);

  // The methods that produce messages return false if the state does not allow
  // it.

  bool
  hello(const wire::Hello& hello, TimePoint now, wire::SessionRequest* request);

  // `chunks`: the state from `SnapshotWriter`, or a part of it. The last chunk,
  // which carries the sequence number, completes it.
  bool snapshot(
      std::vector<wire::SnapshotChunk>&& chunks,
      TimePoint now,
      std::vector<wire::SessionRequest>* requests);

  // Assigns the sequence number. Decisions that answer the batch carry
  // `revision`.
  bool batch(
      wire::EventBatch&& batch,
      TimePoint now,
      wire::SessionRequest* request,
      uint64_t revision = 0);

  // Converts the outcomes of the oldest decisions that have none yet to events.
  // The caller must send these events next.
  bool outcomes(const Outcomes& outcomes, std::vector<wire::Event>* events);

  Reply receive(const std::string& bytes, TimePoint now);
  Reply receive(wire::SessionResponse&& response, TimePoint now);

  // Ends the session without a message.
  void close();

  // When the sidecar will count as silent; `TimePoint::max()` if no answer is
  // due.
  TimePoint deadline() const;

  // Ends the session if the deadline has passed; returns the reason, or an
  // empty string.
  std::string expire(TimePoint now);

  State state() const { return state_; }

  // Numbers of the last batch sent, and of the last one answered.
  uint64_t sequence() const { return sequence_; }
  uint64_t answered() const { return answered_; }

  // Unanswered batches, and those among them that asked for a cycle.
  size_t unanswered() const { return batches.size(); }
  size_t cyclesUnanswered() const { return cyclesUnanswered_; }

  // When the oldest unanswered batch was sent; `TimePoint::max()` if none.
  TimePoint oldestUnanswered() const
  {
    return batches.empty() ? TimePoint::max() : batches.front().at;
  }

  // When the sidecar last sent a message that was due.
  TimePoint lastHeard() const { return heard; }

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

  // Decisions and amounts in the parts that have arrived of an incomplete
  // answer.
  size_t partial = 0;
  size_t partialAmounts = 0;

  std::deque<Sent> batches;
  bool loading = false; // Snapshot sent, no batch answered yet.
  TimePoint heard;      // Last message of the sidecar that was due.
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_SESSION_HPP__
