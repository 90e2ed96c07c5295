#include "brain/brain.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace allocator {
namespace brain {
namespace {

constexpr int64_t BREAKER_WINDOW_MS = 10000;


// Amounts given, in the order of the decision's kinds.
std::vector<int64_t> inColumns(
    const Amounts& given,
    const session::Decision& decision)
{
  std::vector<int64_t> result;
  for (size_t column = 0; column < decision.kinds(); ++column) {
    result.push_back(amountOf(given, decision.kind(column)));
  }
  return result;
}

} // namespace {


Admission Brain::judgeOne(
    const session::Decision& decision,
    uint64_t known,
    int64_t nowMs,
    Pair* pair) const
{
  pair->framework = decision.framework();
  pair->role = state.roles.ofHandle(decision.role());
  pair->agent = decision.agent();

  Admission admission;

  if (state.frameworkHandles.id(pair->framework) == nullptr) {
    admission.reason = wire::OUTCOME_REASON_UNKNOWN_FRAMEWORK;
  } else if (pair->role == 0) {
    admission.reason = wire::OUTCOME_REASON_BAD_ROLE;
  } else if (state.agentHandles.id(pair->agent) == nullptr) {
    admission.reason = wire::OUTCOME_REASON_UNKNOWN_AGENT;
  } else if (
      state.frameworkHandles.revision(pair->framework) > known ||
      state.agentHandles.revision(pair->agent) > known) {
    admission.reason = wire::OUTCOME_REASON_STALE;
  }

  if (admission.reason != wire::OUTCOME_REASON_UNSPECIFIED) {
    return admission;
  }

  // Kinds in a decision are distinct, so if there are more than were bound, one
  // is unknown. Check this first, because the list may be very long.
  if (decision.kinds() > state.kinds.size()) {
    return refuse(wire::OUTCOME_REASON_MALFORMED);
  }

  Amounts wanted;
  wanted.reserve(decision.kinds());
  for (size_t column = 0; column < decision.kinds(); ++column) {
    // An unbound kind is an error even with amount 0.
    const uint32_t kind = decision.kind(column);
    const int64_t amount = decision.amount(column);
    if (amount != 0 || !state.kinds.known(kind)) {
      wanted.emplace_back(kind, amount);
    }
  }

  admission = judge(state, *pair, std::move(wanted), nowMs);
  admission.work += decision.kinds();
  return admission;
}


// Whether the decision was already wrong when the sidecar made it, that is,
// after the messages up to revision `known`.
bool Brain::isBad(
    const session::Decision& decision,
    uint64_t known,
    wire::OutcomeReason reason) const
{
  switch (reason) {
    case wire::OUTCOME_REASON_MALFORMED: return true;
    case wire::OUTCOME_REASON_BAD_ROLE:
      return state.roles.ofHandle(decision.role()) == 0;
    case wire::OUTCOME_REASON_UNKNOWN_AGENT:
      return !state.agentHandles.changedSince(decision.agent(), known);
    case wire::OUTCOME_REASON_UNKNOWN_FRAMEWORK:
      return !state.frameworkHandles.changedSince(decision.framework(), known);
    default: return false;
  }
}


std::string Brain::step(Decided event, int64_t nowMs)
{
  if (!following) {
    return "There is no session";
  }

  unjudged.push_back(std::move(event));

  // Answers that arrive while the master has paused offers (for microseconds)
  // are judged afterwards.
  if (!state.paused && unjudged.size() == 1) {
    judgeSome(nowMs);
  }

  return std::string();
}


// The first answer must have decisions left.
session::Decision Brain::nextDecision()
{
  const auto& groups = unjudged.front().decisions.grants;

  while (judgedRow >= groups.Get(judgedGroup).framework_size()) {
    ++judgedGroup;
    judgedRow = 0;
  }

  return session::Decision(groups.Get(judgedGroup), judgedRow++);
}


bool Brain::isGangNext() const
{
  const wire::Gangs& gangs = unjudged.front().decisions.gangs;
  return judgedGangs < gangs.first_size() && gangs.first(judgedGangs) == judged;
}


// Books an offer and adds it to the effects of this step.
void Brain::give(const Pair& pair, Parts&& parts)
{
  state.books.hold(pair.agent, pair.framework, pair.role, parts);
  effects.offers.push_back(
      Offer{pair.framework, pair.role, pair.agent, std::move(parts)});
}


// Undoes all but the first offers of this step.
void Brain::takeBack(size_t before)
{
  for (size_t i = before; i < effects.offers.size(); ++i) {
    const Offer& offer = effects.offers[i];
    state.books.release(offer.agent, offer.framework, offer.role, offer.parts);
  }

  effects.offers.erase(effects.offers.begin() + before, effects.offers.end());
}


// Judges a decision of the first answer; adds to `judging` the work and whether
// the decision is bad.
Admission Brain::judgeCounted(
    const session::Decision& decision,
    int64_t nowMs,
    Pair* pair,
    Judging* judging)
{
  const uint64_t known = unjudged.front().decisions.revision;
  Admission admission = judgeOne(decision, known, nowMs, pair);
  judging->work += 1 + admission.work;

  if (state.options.shadow) {
    compare(*pair, nowMs, &admission);
  }

  judging->bad += isBad(decision, known, admission.reason) ? 1 : 0;
  return admission;
}


void Brain::judgeAlone(int64_t nowMs, Judging* judging)
{
  const session::Decision decision = nextDecision();
  Pair pair;
  Admission admission = judgeCounted(decision, nowMs, &pair, judging);
  ++judged;

  if (admission.reason == wire::OUTCOME_REASON_OFFERED) {
    judging->outcomes.offered();
  } else if (admission.reason == wire::OUTCOME_REASON_PARTIAL) {
    judging->outcomes.partial(
        decision, inColumns(toAmounts(admission.given), decision));
  } else {
    judging->outcomes.refused(admission.reason);
    answer.refused = true;
    return;
  }

  answer.gave = true;
  give(pair, std::move(admission.given));
}


// Judges the decisions of a gang one after the other, booking each. If one does
// not pass exactly as decided, none is offered.
void Brain::judgeGang(int64_t nowMs, Judging* judging)
{
  const uint32_t count = unjudged.front().decisions.gangs.count(judgedGangs++);
  const size_t before = effects.offers.size();
  std::vector<wire::OutcomeReason> reasons;

  for (uint32_t i = 0; i < count; ++i) {
    Pair pair;
    Admission admission = judgeCounted(nextDecision(), nowMs, &pair, judging);
    reasons.push_back(admission.reason);

    if (admission.reason == wire::OUTCOME_REASON_OFFERED) {
      give(pair, std::move(admission.given));
    }
  }

  judged += count;

  if (effects.offers.size() - before == count) {
    answer.gave = true;
    for (size_t i = 0; i < reasons.size(); ++i) {
      judging->outcomes.offered();
    }
    return;
  }

  answer.refused = true;
  takeBack(before);

  for (wire::OutcomeReason reason : reasons) {
    const bool passed = reason == wire::OUTCOME_REASON_OFFERED ||
        reason == wire::OUTCOME_REASON_PARTIAL;
    judging->outcomes.refused(
        passed ? wire::OUTCOME_REASON_INCOMPLETE_GANG : reason);
  }
}


void Brain::judgeSome(int64_t nowMs)
{
  const session::Decisions& decisions = unjudged.front().decisions;
  toJudge = judged == 0 ? decisions.size() : toJudge;
  const size_t size = toJudge;
  const size_t end = std::min(size, judged + state.options.sliceDecisions);

  session::Decisions numbers;
  numbers.session = decisions.session;
  numbers.first = decisions.first + judged;
  Judging judging(numbers);

  // Reserve first, because appending may throw: resources that are booked as
  // held must also be offered. The last gang may extend beyond the slice.
  const size_t beyond = judgedGangs < decisions.gangs.first_size()
      ? session::GANG_DECISIONS_MAX
      : 0;
  effects.offers.reserve(effects.offers.size() + end - judged + beyond);

  // Judge at least one decision per slice.
  while (judged < end && judging.work < state.options.sliceParts) {
    isGangNext() ? judgeGang(nowMs, &judging) : judgeAlone(nowMs, &judging);
  }

  if (judging.outcomes.size() > 0) {
    sendCoalesced();
    Message message;
    message.kind = Message::Kind::OUTCOMES;
    message.outcomes.reset(new session::Outcomes(std::move(judging.outcomes)));
    emit(std::move(message));
  }

  answer.bad = answer.bad || judging.bad > 0;
  const bool whole = judged == size && !decisions.more;

  if (whole) {
    answer.holdsBack = decisions.holdsBack;
    reclaim(decisions, nowMs);
  }

  if (judged == size) {
    cycleAsked = cycleAsked && decisions.more;
    unjudged.pop_front();
    judged = 0;
    judgedGroup = judgedRow = judgedGangs = 0;
  }

  countBad(judging.bad, nowMs);

  if (whole) {
    assessAnswer(nowMs);
  }

  if (following) {
    flushCycle();
  }
}


// Makes the inverse offers that the sidecar requests. Ignores rows whose
// framework or agent is unknown or has been replaced.
void Brain::reclaim(const session::Decisions& decisions, int64_t nowMs)
{
  if (state.options.shadow || state.offersPaused()) {
    return;
  }

  std::vector<InverseOffer> wanted;
  for (int row = 0; row < decisions.reclaims.framework_size(); ++row) {
    const InverseOffer each{
        decisions.reclaims.framework(row), decisions.reclaims.agent(row)};

    if (state.frameworkHandles.id(each.framework) != nullptr &&
        state.agentHandles.id(each.agent) != nullptr &&
        state.frameworkHandles.revision(each.framework) <= decisions.revision &&
        state.agentHandles.revision(each.agent) <= decisions.revision) {
      wanted.push_back(each);
    }
  }

  const std::vector<InverseOffer> asked = inverse.reclaim(state, wanted, nowMs);
  effects.inverseOffers.insert(
      effects.inverseOffers.end(), asked.begin(), asked.end());
}


// An answer is useless if it has decisions and none can be offered. Events that
// the sidecar had not seen may be the cause, so the cycle is requested once
// more (except after malformed rows, which no event can cause). After that the
// fallback offers free resources, as if the sidecar were silent.
void Brain::assessAnswer(int64_t nowMs)
{
  // Not counted while the fallback decides: a late answer can then only get
  // what the fallback left.
  const bool useless = answer.refused && !answer.gave && !fallbackDecides();
  const int excused = answer.bad ? 0 : 1;
  idleCheck.answered(
      cycleAskedAll, answer.gave && !answer.bad, answer.holdsBack);
  uselessAnswers = useless ? uselessAnswers + 1 : 0;
  again = false;
  answer = Answer();

  // In shadow mode, answers have no effect.
  if (state.options.shadow || !useless || !following || state.offersPaused()) {
    return;
  }

  if (uselessAnswers <= excused) {
    again = true;
    triggerAll();
  } else if (state.options.fallback && !fallback.underWay()) {
    uselessAnswers = 0;
    decideAlone(true, {}, nowMs);
  }
}


void Brain::countBad(uint64_t bad, int64_t nowMs)
{
  if (nowMs - badSinceMs > BREAKER_WINDOW_MS) {
    badSinceMs = nowMs;
    badDecisions = 0;
  }

  badDecisions += bad;

  if (badDecisions <= state.options.badDecisionsMax || breakerOpen) {
    return;
  }

  log(Level::ERROR,
      "The sidecar made " + std::to_string(badDecisions) +
          " bad decisions within " + std::to_string(nowMs - badSinceMs) +
          " ms; not asking it for " +
          std::to_string(state.options.breakerPauseMs) + " ms");

  ++counted.breakerTrips;
  breakerOpen = true;
  breakerMs = nowMs + state.options.breakerPauseMs;
  badDecisions = 0;

  // Stop judging further answers of this session.
  forgetSession();
  emit(Message::Kind::STOP);

  // The outstanding cycle will not be answered.
  triggerAll();
}

} // namespace brain {
} // namespace allocator {
