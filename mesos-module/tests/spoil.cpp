#include "tests/spoil.hpp"

#include <set>

namespace allocator {
namespace session {
namespace {

// A number that is likely to be near a limit.
int64_t oddNumber(Choices* choices)
{
  const int64_t limits[] = {
      0, 1, 2, 3, AMOUNT_MAX, INT64_MAX, INT64_MIN, UINT32_MAX, -1};
  const bool whole = choices->draw(2) == 0;
  const int64_t limit = limits[choices->draw(9)];

  return whole ? limit : limit / 2 + int64_t(choices->draw(3));
}


void spoilColumns(wire::Holdings* grants, Choices* choices)
{
  const uint32_t rows = choices->draw(4);
  const uint32_t kinds = choices->draw(3);

  grants->Clear();

  for (uint32_t i = 0; i < rows; ++i) {
    grants->add_framework(static_cast<uint32_t>(oddNumber(choices)));
    grants->add_role(static_cast<uint32_t>(oddNumber(choices)));

    if (choices->draw(8) != 0) {
      grants->add_agent(static_cast<uint32_t>(oddNumber(choices)));
    }
  }

  for (uint32_t i = 0; i < kinds; ++i) {
    grants->add_kind(choices->draw(3));
  }

  for (uint32_t i = 0; i < rows * kinds; ++i) {
    grants->add_amount(oddNumber(choices));
  }
}


void spoilBatch(wire::DecisionBatch* batch, Choices* choices)
{
  switch (choices->draw(7)) {
    case 0: spoilColumns(batch->add_grants(), choices); break;
    case 1: batch->set_sequence(oddNumber(choices)); break;
    case 2: batch->set_cycle(oddNumber(choices)); break;
    case 3: batch->set_first_decision(oddNumber(choices)); break;
    case 4:
      batch->set_more(choices->draw(2) == 0);
      batch->mutable_grants()->Clear();
      break;
    case 5:
      batch->mutable_gangs()->add_first(
          static_cast<uint32_t>(oddNumber(choices)));
      batch->mutable_gangs()->add_count(
          static_cast<uint32_t>(oddNumber(choices)));
      break;
    default:
      batch->mutable_reclaims()->add_framework(
          static_cast<uint32_t>(oddNumber(choices)));
      if (choices->draw(4) > 0) {
        batch->mutable_reclaims()->add_agent(
            static_cast<uint32_t>(oddNumber(choices)));
      }
  }
}

} // namespace {


std::string nonsense(size_t end, Choices* choices)
{
  std::string bytes(choices->draw(static_cast<uint32_t>(end)), '\0');

  for (char& byte : bytes) {
    byte = static_cast<char>(choices->draw(256));
  }
  return bytes;
}


std::string spoil(wire::SessionResponse response, Choices* choices)
{
  switch (choices->draw(8)) {
    case 0:
      response.mutable_error()->set_code(
          static_cast<wire::ErrorCode>(choices->draw(20)));
      break;
    case 1: {
      wire::Welcome* welcome = response.mutable_welcome();
      welcome->set_protocol_version(1 + choices->draw(3));
      welcome->set_message_bytes_max(static_cast<uint32_t>(oddNumber(choices)));
      welcome->set_kinds_max(static_cast<uint32_t>(oddNumber(choices)));
      break;
    }
    case 2: break;
    default:
      if (response.has_decisions()) {
        spoilBatch(response.mutable_decisions(), choices);
      }
  }

  std::string bytes = response.SerializeAsString();

  if (choices->draw(3) == 0) {
    for (uint32_t i = choices->draw(4); i > 0 && !bytes.empty(); --i) {
      const uint32_t at = choices->draw(static_cast<uint32_t>(bytes.size()));
      bytes[at] = static_cast<char>(choices->draw(256));
    }
  }

  if (choices->draw(6) == 0) {
    bytes.resize(choices->draw(static_cast<uint32_t>(bytes.size() + 1)));
  }

  return bytes;
}


std::string unsound(const Decisions& decisions)
{
  size_t rows = 0;
  std::string wrong;

  for (const wire::Holdings& group : decisions.grants) {
    if (group.role_size() != group.framework_size() ||
        group.agent_size() != group.framework_size() ||
        group.amount_size() != group.framework_size() * group.kind_size()) {
      return "columns of different lengths";
    }
  }

  decisions.each([&](const Decision& decision) {
    ++rows;
    std::set<uint32_t> kinds;
    if (decision.framework() < 1 || decision.role() < 1 ||
        decision.agent() < 1) {
      wrong = "a handle that is 0";
    }

    for (size_t column = 0; column < decision.kinds(); ++column) {
      if (!kinds.insert(decision.kind(column)).second) {
        wrong = "a kind twice";
      }
      if (decision.amount(column) < 0 || decision.amount(column) > AMOUNT_MAX) {
        wrong = "an amount that cannot be";
      }
    }
  });

  const wire::Reclaims& reclaims = decisions.reclaims;
  if (reclaims.framework_size() != reclaims.agent_size()) {
    wrong = "reclaims of different lengths";
  }

  uint64_t end = 0;
  for (int row = 0; row < decisions.gangs.first_size(); ++row) {
    const uint64_t first = decisions.gangs.first(row);
    const uint64_t count = decisions.gangs.count(row);
    if (first < end || count == 0 || count > GANG_DECISIONS_MAX) {
      wrong = "a gang that overlaps another, is empty, or too large";
    }
    end = first + count;
  }
  if (end > rows) {
    wrong = "a gang without decisions";
  }
  if (rows != decisions.size() || (rows == 0 && decisions.more)) {
    wrong = "another number of decisions";
  }
  return wrong;
}

} // namespace session {
} // namespace allocator {
