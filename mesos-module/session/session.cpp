#include "session/session.hpp"

#include <algorithm>
#include <utility>

namespace allocator {
namespace session {
namespace {

Session::Reply bad(std::string message)
{
  Session::Reply reply;
  reply.kind = Session::Reply::Kind::BAD;
  reply.message = std::move(message);
  return reply;
}


Session::Reply ended(const wire::Error& error)
{
  Session::Reply reply;
  reply.kind = Session::Reply::Kind::ENDED;
  reply.code = error.code();

  // A newer sidecar may use codes unknown here.
  reply.message = wire::ErrorCode_IsValid(error.code())
      ? wire::ErrorCode_Name(error.code())
      : "error " + std::to_string(error.code());

  if (!error.field().empty()) {
    reply.message += ": " + error.field();
  }

  reply.message += ": " + error.message();
  return reply;
}


const char* duty(Session::State state)
{
  switch (state) {
    case Session::State::IDLE: return "say hello";
    case Session::State::GREETING: return "wait for the welcome";
    case Session::State::WELCOME: return "send the snapshot";
    case Session::State::STREAMING: return "send batches";
    case Session::State::CLOSED: return "begin a new session";
  }

  return "";
}


const char* name(wire::SessionResponse::MessageCase said)
{
  switch (said) {
    case wire::SessionResponse::kWelcome: return "welcome";
    case wire::SessionResponse::kDecisions: return "decisions";
    case wire::SessionResponse::kError: return "error";
    default: return "an unknown kind of message";
  }
}

} // namespace {


Session::Session(
    uint64_t _number,
    const SessionDeadlines& _deadlines,
    const DecisionLimits& _limits)
  : number(_number), deadlines(_deadlines), limits(_limits)
{
}


bool Session::hello(
    const wire::Hello& hello,
    TimePoint now,
    wire::SessionRequest* request)
{
  if (state_ != State::IDLE) {
    return false;
  }

  *request->mutable_hello() = hello;
  request->mutable_hello()->set_protocol_version(PROTOCOL_VERSION);
  state_ = State::GREETING;
  heard = now;
  return true;
}


bool Session::snapshot(
    std::vector<wire::SnapshotChunk>&& chunks,
    TimePoint now,
    std::vector<wire::SessionRequest>* requests)
{
  if (state_ != State::WELCOME || chunks.empty()) {
    return false;
  }

  const bool last = chunks.back().last();
  const uint64_t sequence = chunks.back().sequence();

  for (wire::SnapshotChunk& chunk : chunks) {
    requests->emplace_back();
    requests->back().mutable_snapshot()->Swap(&chunk);
  }

  if (last) {
    sequence_ = answered_ = sequence;
    state_ = State::STREAMING;
    loading = true;
    heard = now;
  }

  return true;
}


bool Session::batch(
    wire::EventBatch&& batch,
    TimePoint now,
    wire::SessionRequest* request,
    uint64_t revision)
{
  if (state_ != State::STREAMING) {
    return false;
  }

  request->mutable_events()->Swap(&batch);
  request->mutable_events()->set_sequence(++sequence_);

  const bool cycle = request->events().cycle();
  batches.push_back(Sent{cycle, now, revision});
  cyclesUnanswered_ += cycle ? 1 : 0;
  return true;
}


bool Session::outcomes(
    const Outcomes& outcomes,
    std::vector<wire::Event>* events)
{
  const uint64_t oldest = nextDecision - unsettled_;

  if (state_ != State::STREAMING || outcomes.session != number ||
      outcomes.size() > unsettled_ ||
      (outcomes.size() > 0 &&
       outcomes.messages.front().first_decision() != oldest)) {
    return false;
  }

  unsettled_ -= outcomes.size();

  for (const wire::Outcomes& message : outcomes.messages) {
    events->emplace_back();
    *events->back().mutable_outcomes() = message;
  }

  return true;
}


Session::Reply Session::receive(const std::string& bytes, TimePoint now)
{
  wire::SessionResponse response;

  if (!response.ParseFromString(bytes)) {
    state_ = State::CLOSED;
    return bad(
        std::to_string(bytes.size()) + " bytes are not a SessionResponse");
  }

  return receive(std::move(response), now);
}


Session::Reply Session::receive(wire::SessionResponse&& response, TimePoint now)
{
  Reply reply = take(std::move(response), now);

  if (reply.kind == Reply::Kind::ENDED || reply.kind == Reply::Kind::BAD) {
    state_ = State::CLOSED;
  }

  return reply;
}


Session::Reply Session::take(wire::SessionResponse&& response, TimePoint now)
{
  if (state_ == State::CLOSED) {
    return bad("the session is over");
  }

  const wire::SessionResponse::MessageCase said = response.message_case();

  if (said == wire::SessionResponse::kError) {
    return ended(response.error());
  }

  if (said == wire::SessionResponse::kWelcome && state_ == State::GREETING) {
    return takeWelcome(response.welcome(), now);
  }

  if (said == wire::SessionResponse::kDecisions && state_ == State::STREAMING) {
    return takeDecisions(std::move(*response.mutable_decisions()), now);
  }

  return bad(
      std::string("the sidecar said ") + name(said) + "; this module must " +
      duty(state_));
}


Session::Reply Session::takeWelcome(const wire::Welcome& welcome, TimePoint now)
{
  if (welcome.protocol_version() != PROTOCOL_VERSION) {
    return bad(
        "the sidecar speaks version " +
        std::to_string(welcome.protocol_version()) + ", not " +
        std::to_string(PROTOCOL_VERSION));
  }

  welcome_ = welcome;
  state_ = State::WELCOME;
  heard = now;

  Reply reply;
  reply.kind = Reply::Kind::WELCOME;
  return reply;
}


std::string Session::checkBatch(const wire::DecisionBatch& batch) const
{
  if (batches.empty() || batch.sequence() != answered_ + 1) {
    return "an answer to batch " + std::to_string(batch.sequence()) + "; " +
        std::to_string(answered_ + 1) + " is due";
  }

  // The limits left for this part of the answer.
  DecisionLimits left = limits;
  left.decisionsMax -= partial;
  left.amountsMax -= partialAmounts;

  const size_t kinds = welcome_.kinds_max();
  left.kindsMax = std::min(left.kindsMax, kinds > 0 ? kinds : KINDS_DEFAULT);
  std::string wrong = checkGrants(batch.grants(), left);

  if (!wrong.empty()) {
    return wrong;
  }

  const bool asked = batches.front().cycle;
  wrong = checkReclaims(batch.reclaims(), limits);

  if (wrong.empty() && batch.has_reclaims() && (!asked || batch.more())) {
    wrong = "reclaims: belong in the last part of an answer with a cycle";
  }

  if (wrong.empty()) {
    wrong = checkGangs(batch.gangs(), rowsOf(batch.grants()));
  }

  if (!wrong.empty()) {
    return wrong;
  }

  if (batch.cycle() != (asked ? cycles + 1 : 0)) {
    return "cycle " + std::to_string(batch.cycle()) +
        " in the answer to batch " + std::to_string(batch.sequence()) + "; " +
        std::to_string(cycles) + " were run, and " + (asked ? "one" : "none") +
        " was asked for";
  }

  if (batch.grants_size() > 0 && !asked) {
    return "decisions without a cycle in batch " +
        std::to_string(batch.sequence());
  }

  if (batch.grants_size() == 0 && batch.more()) {
    return "a part without decisions of the answer to batch " +
        std::to_string(batch.sequence()) + " says that more follow";
  }

  if (batch.first_decision() != nextDecision) {
    return "decision " + std::to_string(batch.first_decision()) +
        " comes where " + std::to_string(nextDecision) + " is due";
  }

  return std::string();
}


Session::Reply Session::takeDecisions(
    wire::DecisionBatch&& batch,
    TimePoint now)
{
  const std::string wrong = checkBatch(batch);

  if (!wrong.empty()) {
    return bad(wrong);
  }

  Reply reply;
  reply.kind = Reply::Kind::DECISIONS;
  reply.waited = std::chrono::duration_cast<std::chrono::microseconds>(
      now - batches.front().at);
  reply.decisions.session = number;
  reply.decisions.sequence = batch.sequence();
  reply.decisions.revision = batches.front().revision;
  reply.decisions.cycle = batch.cycle();
  reply.decisions.first = batch.first_decision();
  reply.decisions.more = batch.more();
  reply.decisions.holdsBack = batch.holds_back();
  reply.decisions.grants.Swap(batch.mutable_grants());
  reply.decisions.reclaims.Swap(batch.mutable_reclaims());
  reply.decisions.gangs.Swap(batch.mutable_gangs());

  const size_t size = reply.decisions.size();
  nextDecision += size;
  unsettled_ += size;
  partial += size;
  partialAmounts += reply.decisions.amounts();

  // Only the complete answer extends the deadline, so sending parts does not
  // let a sidecar take forever.
  if (batch.more()) {
    return reply;
  }

  if (batches.front().cycle) {
    ++cycles;
    --cyclesUnanswered_;
  }

  batches.pop_front();
  partial = partialAmounts = 0;
  loading = false;
  heard = now;
  answered_ = batch.sequence();
  return reply;
}


void Session::close()
{
  state_ = State::CLOSED;
}


TimePoint Session::deadline() const
{
  if (state_ == State::GREETING) {
    return heard + deadlines.welcome;
  }

  if (state_ != State::STREAMING || batches.empty()) {
    return TimePoint::max();
  }

  return std::max(heard, batches.front().at) +
      (loading ? deadlines.snapshot : deadlines.answer);
}


std::string Session::expire(TimePoint now)
{
  const TimePoint due = deadline();

  if (now < due) {
    return std::string();
  }

  const bool greeting = state_ == State::GREETING;
  state_ = State::CLOSED;

  if (greeting) {
    return "no welcome within " + std::to_string(deadlines.welcome.count()) +
        " ms";
  }

  const Duration allowed = loading ? deadlines.snapshot : deadlines.answer;
  return "batch " + std::to_string(answered_ + 1) +
      " was not answered within " + std::to_string(allowed.count()) + " ms";
}

} // namespace session {
} // namespace allocator {
