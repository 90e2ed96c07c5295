#ifndef __ALLOCATOR_CLIENT_DECISIONS_HPP__
#define __ALLOCATOR_CLIENT_DECISIONS_HPP__

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "allocator/v1/session.pb.h"

namespace allocator {
namespace client {

namespace wire = ::allocator::v1;

// No amount is larger, in thousandths: Mesos keeps amounts in doubles,
// which are exact up to here.
constexpr int64_t AMOUNT_MAX = int64_t(1) << 53;

// No decision and no batch has a larger number.
constexpr uint64_t NUMBER_MAX = uint64_t(1) << 53;


// What is believed of a sidecar at most.
struct DecisionLimits
{
  // Decisions in one answer, and kinds of resources in one decision.
  size_t decisionsMax = 1 << 20;
  size_t kindsMax = 4096;
};


// The answer to one batch, validated: `grants` has rows, its handles are
// not 0, its kinds are distinct and its amounts are from 0 to AMOUNT_MAX.
// Whether the handles are bound, and whether the resources are there, is
// for the owner's books to say.
struct Decisions
{
  size_t size() const { return grants.framework_size(); }
  size_t kinds() const { return grants.kind_size(); }

  uint32_t framework(size_t row) const { return grants.framework(int(row)); }
  uint32_t role(size_t row) const { return grants.role(int(row)); }
  uint32_t agent(size_t row) const { return grants.agent(int(row)); }
  uint32_t kind(size_t column) const { return grants.kind(int(column)); }

  int64_t amount(size_t row, size_t column) const
  {
    return grants.amount(int(row * kinds() + column));
  }

  // The session that the decisions belong to; its outcomes go there.
  uint64_t session = 0;

  // The batch that this answers: every event up to it was known. A handle
  // that was bound later names nothing here.
  uint64_t sequence = 0;

  // The number of the cycle, from 1; 0 where none was asked for.
  uint64_t cycle = 0;

  // Row i is decision `first + i`.
  uint64_t first = 0;

  wire::Holdings grants;
};


// Says what is wrong with the columns of an answer, by the path of the
// field; an empty text where nothing is.
std::string checkGrants(
    const wire::Holdings& grants,
    const DecisionLimits& limits);


// What became of consecutive decisions, in their order.
class Outcomes
{
public:
  // Partial offers are told in the kinds of the decisions.
  explicit Outcomes(const Decisions& decisions);

  // Offered exactly as decided.
  void offered();

  // Offered otherwise: one amount for each kind, in thousandths. Where
  // the number of amounts is another, the decision counts as not offered
  // because it was malformed.
  void partial(const std::vector<int64_t>& amounts);

  // Not offered at all.
  void refused(wire::OutcomeReason reason);

  size_t size() const { return message.reason_size(); }

  uint64_t session = 0;
  wire::Outcomes message;

private:
  // They are told only along with amounts, for the sidecar refuses kinds
  // that it does not know.
  std::vector<uint32_t> kinds;
};

} // namespace client {
} // namespace allocator {

#endif // __ALLOCATOR_CLIENT_DECISIONS_HPP__
