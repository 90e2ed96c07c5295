#include "client/decisions.hpp"

#include <algorithm>

namespace allocator {
namespace client {
namespace {

std::string sameLength(
    int length,
    int wanted,
    const char* field)
{
  if (length == wanted) {
    return std::string();
  }

  return std::string("grants.") + field + ": has " + std::to_string(length) +
    " entries but framework has " + std::to_string(wanted) +
    "; columns are equally long";
}


template <typename Column>
std::string inRange(
    const Column& column,
    int64_t least,
    int64_t most,
    const char* field)
{
  for (int i = 0; i < column.size(); ++i) {
    const int64_t value = column.Get(i);

    if (value < least || value > most) {
      return std::string("grants.") + field + "[" + std::to_string(i) +
        "]: is " + std::to_string(value) + "; it must be from " +
        std::to_string(least) + " to " + std::to_string(most);
    }
  }

  return std::string();
}


std::string atMost(size_t count, size_t max, const char* field)
{
  if (count <= max) {
    return std::string();
  }

  return std::string("grants.") + field + ": has " + std::to_string(count) +
    " entries; at most " + std::to_string(max) + " are taken";
}


// Checks the lengths before anything is read by row and column.
std::string checkShape(
    const wire::Holdings& grants,
    const DecisionLimits& limits)
{
  const int rows = grants.framework_size();
  const int kinds = grants.kind_size();

  std::string wrong = atMost(rows, limits.decisionsMax, "framework");

  if (wrong.empty()) {
    wrong = atMost(kinds, limits.kindsMax, "kind");
  }

  if (wrong.empty()) {
    wrong = sameLength(grants.role_size(), rows, "role");
  }

  if (wrong.empty()) {
    wrong = sameLength(grants.agent_size(), rows, "agent");
  }

  const int64_t cells = static_cast<int64_t>(rows) * kinds;

  if (wrong.empty() && grants.amount_size() != cells) {
    wrong = "grants.amount: has " + std::to_string(grants.amount_size()) +
      " entries; it must have " + std::to_string(rows) + " rows of " +
      std::to_string(kinds) + " kinds, " + std::to_string(cells) + " in all";
  }

  return wrong;
}


std::string checkDistinct(const wire::Holdings& grants)
{
  std::vector<uint32_t> kinds(grants.kind().begin(), grants.kind().end());
  std::sort(kinds.begin(), kinds.end());

  const auto twice = std::adjacent_find(kinds.begin(), kinds.end());

  if (twice == kinds.end()) {
    return std::string();
  }

  return "grants.kind: holds " + std::to_string(*twice) +
    " more than once; give each only once";
}

} // namespace {


std::string checkGrants(
    const wire::Holdings& grants,
    const DecisionLimits& limits)
{
  constexpr int64_t HANDLE_MAX = UINT32_MAX;

  std::string wrong = checkShape(grants, limits);

  if (wrong.empty()) {
    wrong = checkDistinct(grants);
  }

  if (wrong.empty()) {
    wrong = inRange(grants.framework(), 1, HANDLE_MAX, "framework");
  }

  if (wrong.empty()) {
    wrong = inRange(grants.role(), 1, HANDLE_MAX, "role");
  }

  if (wrong.empty()) {
    wrong = inRange(grants.agent(), 1, HANDLE_MAX, "agent");
  }

  if (wrong.empty()) {
    wrong = inRange(grants.amount(), 0, AMOUNT_MAX, "amount");
  }

  return wrong;
}


Outcomes::Outcomes(const Decisions& decisions)
  : session(decisions.session),
    kinds(decisions.grants.kind().begin(), decisions.grants.kind().end())
{
  message.set_first_decision(decisions.first);
  message.mutable_reason()->Reserve(static_cast<int>(decisions.size()));
}


void Outcomes::offered()
{
  message.add_reason(wire::OUTCOME_REASON_OFFERED);
}


void Outcomes::partial(const std::vector<int64_t>& amounts)
{
  if (amounts.size() != kinds.size()) {
    refused(wire::OUTCOME_REASON_MALFORMED);
    return;
  }

  if (message.kind_size() == 0) {
    for (uint32_t kind : kinds) {
      message.add_kind(kind);
    }
  }

  message.add_reason(wire::OUTCOME_REASON_PARTIAL);

  for (int64_t amount : amounts) {
    message.add_amount(amount);
  }
}


void Outcomes::refused(wire::OutcomeReason reason)
{
  message.add_reason(reason);
}

} // namespace client {
} // namespace allocator {
