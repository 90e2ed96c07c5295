#include "tests/model_sidecar.hpp"

namespace allocator {
namespace session {

std::vector<wire::SessionResponse> ModelSidecar::take(
    const wire::SessionRequest& request)
{
  std::vector<wire::SessionResponse> answers;

  if (!fault.empty()) {
    return answers;
  }

  if (request.ByteSizeLong() > messageBytesMax) {
    fault = "a message is larger than the welcome allows";
  }

  switch (request.message_case()) {
    case wire::SessionRequest::kHello:
      if (greeted || request.hello().protocol_version() != 2) {
        fault = "a second hello, or one of another version";
      }

      greeted = true;
      moduleBytesMax = request.hello().message_bytes_max();
      answers.emplace_back();
      answers.back().mutable_welcome()->set_protocol_version(2);
      answers.back().mutable_welcome()->set_message_bytes_max(messageBytesMax);
      answers.back().mutable_welcome()->set_kinds_max(kindsMax);
      break;
    case wire::SessionRequest::kSnapshot:
      if (!greeted || streaming) {
        fault = "a snapshot at the wrong time";
      }

      ++chunks;
      streaming = request.snapshot().last();
      sequence = request.snapshot().sequence();
      clockMs = request.snapshot().clock_ms();
      break;
    case wire::SessionRequest::kEvents:
      check(request.events());
      answers = answer(request.events());
      break;
    default: fault = "a message of no known kind";
  }

  if (!fault.empty()) {
    answers.clear();
  }

  return answers;
}


void ModelSidecar::check(const wire::EventBatch& batch)
{
  if (!streaming) {
    fault = "a batch before the snapshot";
  } else if (batch.sequence() != sequence + 1) {
    fault = "batch " + std::to_string(batch.sequence()) + " after " +
        std::to_string(sequence);
  } else if (batch.clock_ms() < clockMs) {
    fault = "the clock runs backwards";
  } else if (batch.agents_size() > 0 && !batch.cycle()) {
    fault = "agents without a cycle";
  }

  for (const wire::Event& event : batch.events()) {
    if (event.event_case() == wire::Event::EVENT_NOT_SET) {
      fault = "an event of no known kind";
    }

    if (event.event_case() == wire::Event::kOutcomes) {
      const wire::Outcomes& outcomes = event.outcomes();

      if (outcomes.first_decision() != settled + 1 ||
          settled + outcomes.reason_size() >= nextDecision) {
        fault = "outcomes of decisions that are not the oldest open ones";
      }

      settled += outcomes.reason_size();
    }
  }
}


std::vector<wire::SessionResponse> ModelSidecar::answer(
    const wire::EventBatch& batch)
{
  sequence = batch.sequence();
  clockMs = batch.clock_ms();
  events += batch.events_size();
  if (batch.has_figures()) {
    ++figures;
    lastFigures = batch.figures();
  }
  ++batches;

  const int parts = batch.cycle() ? partsPerCycle : 1;
  std::vector<wire::SessionResponse> answers(parts);

  if (batch.cycle()) {
    ++cycles;
    cycleAgents.assign(batch.agents().begin(), batch.agents().end());
  }

  for (int part = 0; part < parts; ++part) {
    wire::DecisionBatch* answer = answers[part].mutable_decisions();
    answer->set_sequence(sequence);
    answer->set_cycle(batch.cycle() ? cycles : 0);
    answer->set_first_decision(nextDecision);
    answer->set_more(part + 1 < parts);

    for (int i = 0; batch.cycle() && i < decisionsPerCycle; ++i) {
      wire::Holdings* group = answer->add_grants();
      group->add_kind(i % 2);
      group->add_framework(1);
      group->add_role(1);
      group->add_agent(i + 1);
      group->add_amount(1000);
      ++nextDecision;
    }
  }

  return answers;
}

} // namespace session {
} // namespace allocator {
