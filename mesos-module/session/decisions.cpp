#include "session/decisions.hpp"

#include <algorithm>
#include <initializer_list>

namespace allocator {
namespace session {
namespace {

constexpr int64_t HANDLE_MAX = UINT32_MAX;


// An error, or empty.
using Wrong = std::string;


Wrong sameLength(int length, int wanted, const char* field)
{
  if (length == wanted) {
    return Wrong();
  }

  return std::string(field) + ": has " + std::to_string(length) +
      " entries but framework has " + std::to_string(wanted) +
      "; columns have equal lengths";
}


template <typename Column>
Wrong inRange(
    const Column& column,
    int64_t least,
    int64_t most,
    const char* field)
{
  for (int i = 0; i < column.size(); ++i) {
    const int64_t value = column.Get(i);

    if (value < least || value > most) {
      return std::string(field) + "[" + std::to_string(i) + "]: is " +
          std::to_string(value) + "; it must be from " + std::to_string(least) +
          " to " + std::to_string(most);
    }
  }

  return Wrong();
}


Wrong atMost(size_t count, size_t max, const char* field)
{
  if (count <= max) {
    return Wrong();
  }

  return std::string(field) + ": has " + std::to_string(count) +
      " entries; at most " + std::to_string(max) + " are taken";
}


Wrong first(std::initializer_list<Wrong> all)
{
  for (const Wrong& wrong : all) {
    if (!wrong.empty()) {
      return wrong;
    }
  }

  return Wrong();
}


Wrong checkAmounts(const wire::Holdings& group)
{
  const int rows = group.framework_size();
  const int kinds = group.kind_size();
  const int64_t cells = static_cast<int64_t>(rows) * kinds;

  if (group.amount_size() == cells) {
    return Wrong();
  }

  return "amount: has " + std::to_string(group.amount_size()) +
      " entries; it must have " + std::to_string(rows) + " rows of " +
      std::to_string(kinds) + " kinds, " + std::to_string(cells) + " in all";
}


Wrong checkDistinct(const wire::Holdings& group)
{
  std::vector<uint32_t> kinds(group.kind().begin(), group.kind().end());
  std::sort(kinds.begin(), kinds.end());

  const auto twice = std::adjacent_find(kinds.begin(), kinds.end());

  if (twice == kinds.end()) {
    return Wrong();
  }

  return "kind: holds " + std::to_string(*twice) +
      " more than once; give each only once";
}


size_t amountsOf(const Decisions::Groups& grants)
{
  size_t amounts = 0;

  for (const wire::Holdings& group : grants) {
    amounts += group.amount_size();
  }

  return amounts;
}


Wrong checkGroup(const wire::Holdings& group, const DecisionLimits& limits)
{
  const int rows = group.framework_size();

  if (rows == 0) {
    return "framework: has no entries; leave out a group without decisions";
  }

  return first(
      {atMost(group.kind_size(), limits.kindsMax, "kind"),
       sameLength(group.role_size(), rows, "role"),
       sameLength(group.agent_size(), rows, "agent"),
       checkAmounts(group),
       checkDistinct(group),
       inRange(group.framework(), 1, HANDLE_MAX, "framework"),
       inRange(group.role(), 1, HANDLE_MAX, "role"),
       inRange(group.agent(), 1, HANDLE_MAX, "agent"),
       inRange(group.amount(), 0, AMOUNT_MAX, "amount")});
}

} // namespace {


size_t rowsOf(const Decisions::Groups& grants)
{
  size_t rows = 0;

  for (const wire::Holdings& group : grants) {
    rows += group.framework_size();
  }

  return rows;
}


size_t Decisions::size() const
{
  return rowsOf(grants);
}


size_t Decisions::amounts() const
{
  return amountsOf(grants);
}


std::string checkGrants(
    const Decisions::Groups& grants,
    const DecisionLimits& limits)
{
  const size_t amounts = amountsOf(grants);

  if (amounts > limits.amountsMax) {
    return "grants.amount: has " + std::to_string(amounts) +
        " entries in all groups; at most " + std::to_string(limits.amountsMax) +
        " are taken";
  }

  size_t rows = 0;

  for (int i = 0; i < grants.size(); ++i) {
    const Wrong wrong = checkGroup(grants.Get(i), limits);

    if (!wrong.empty()) {
      return "grants[" + std::to_string(i) + "]." + wrong;
    }

    rows += grants.Get(i).framework_size();
  }

  return atMost(rows, limits.decisionsMax, "grants");
}


std::string checkReclaims(
    const wire::Reclaims& reclaims,
    const DecisionLimits& limits)
{
  const int rows = reclaims.framework_size();
  const Wrong wrong = first(
      {atMost(rows, limits.decisionsMax, "framework"),
       sameLength(reclaims.agent_size(), rows, "agent"),
       inRange(reclaims.framework(), 1, HANDLE_MAX, "framework"),
       inRange(reclaims.agent(), 1, HANDLE_MAX, "agent")});

  return wrong.empty() ? wrong : "reclaims." + wrong;
}


std::string checkGangs(const wire::Gangs& gangs, size_t decisions)
{
  const int rows = gangs.first_size();

  if (gangs.count_size() != rows) {
    return "gangs.count: has " + std::to_string(gangs.count_size()) +
        " entries but first has " + std::to_string(rows);
  }

  // The end of the gangs so far.
  uint64_t end = 0;

  for (int row = 0; row < rows; ++row) {
    const uint64_t first = gangs.first(row);
    const uint32_t count = gangs.count(row);
    const std::string field = "[" + std::to_string(row) + "]: is ";

    if (count < 1 || count > GANG_DECISIONS_MAX) {
      return "gangs.count" + field + std::to_string(count) +
          "; it must be from 1 to " + std::to_string(GANG_DECISIONS_MAX);
    }

    if (first < end || first + count > decisions) {
      return "gangs.first" + field + std::to_string(first) +
          "; gangs must not overlap, and lie within the " +
          std::to_string(decisions) + " decisions of this part";
    }

    end = first + count;
  }

  return std::string();
}


Outcomes::Outcomes(const Decisions& decisions)
  : session(decisions.session), first(decisions.first)
{
}


size_t Outcomes::size() const
{
  size_t rows = 0;

  for (const wire::Outcomes& message : messages) {
    rows += message.reason_size();
  }

  return rows;
}


void Outcomes::begin()
{
  const uint64_t next = first + size();
  messages.emplace_back();
  messages.back().set_first_decision(next);
}


void Outcomes::add(wire::OutcomeReason reason)
{
  if (messages.empty() || messages.back().reason_size() >= ROWS_MAX) {
    begin();
  }

  messages.back().add_reason(reason);
}


void Outcomes::offered()
{
  add(wire::OUTCOME_REASON_OFFERED);
}


void Outcomes::partial(
    const Decision& decision,
    const std::vector<int64_t>& amounts)
{
  if (amounts.size() != decision.kinds()) {
    refused(wire::OUTCOME_REASON_MALFORMED);
    return;
  }

  const auto sameKinds = [&decision](const wire::Outcomes& message) {
    bool same = message.kind_size() == int(decision.kinds());

    for (int i = 0; same && i < message.kind_size(); ++i) {
      same = message.kind(i) == decision.kind(i);
    }

    return same;
  };

  // Set kinds only along with amounts: the sidecar rejects kinds that it does
  // not know.
  if (!messages.empty() && messages.back().kind_size() > 0) {
    const wire::Outcomes& last = messages.back();
    const size_t cells = last.amount_size() + amounts.size();

    if (!sameKinds(last) || cells > CELLS_MAX) {
      begin();
    }
  }

  add(wire::OUTCOME_REASON_PARTIAL);
  wire::Outcomes& message = messages.back();

  for (size_t i = 0; message.kind_size() < int(amounts.size()); ++i) {
    message.add_kind(decision.kind(i));
  }

  for (int64_t amount : amounts) {
    message.add_amount(amount);
  }
}


void Outcomes::refused(wire::OutcomeReason reason)
{
  add(reason);
}

} // namespace session {
} // namespace allocator {
