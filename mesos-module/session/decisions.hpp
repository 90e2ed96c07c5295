#ifndef __ALLOCATOR_SESSION_DECISIONS_HPP__
#define __ALLOCATOR_SESSION_DECISIONS_HPP__

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "allocator/v1/session.pb.h"

namespace allocator {
namespace session {

namespace wire = ::allocator::v1;

// No amount is larger, in thousandths: Mesos keeps amounts in doubles,
// which are exact up to here.
constexpr int64_t AMOUNT_MAX = int64_t(1) << 53;

// No decision and no batch has a larger number.
constexpr uint64_t NUMBER_MAX = uint64_t(1) << 53;


// A sidecar that does not say how many kinds it keeps apart takes so many.
constexpr size_t KINDS_DEFAULT = 512;


// What is believed of a sidecar at most.
struct DecisionLimits
{
  // Decisions in one answer, all of its parts together, and kinds of
  // resources in one decision; no more than the sidecar keeps apart.
  size_t decisionsMax = 1 << 20;
  size_t kindsMax = 4096;

  // Amounts in one answer: of 65,536 decisions on all kinds that sidecars
  // keep apart by default. In a message each may be a byte; then it is eight.
  size_t amountsMax = 1 << 25;
};


// One decision: a row of a group. It refers to the group.
class Decision
{
public:
  Decision(const wire::Holdings& _group, int _row) : group(_group), row(_row) {}

  uint32_t framework() const { return group.framework(row); }
  uint32_t role() const { return group.role(row); }
  uint32_t agent() const { return group.agent(row); }

  size_t kinds() const { return group.kind_size(); }
  uint32_t kind(size_t column) const { return group.kind(int(column)); }

  int64_t amount(size_t column) const
  {
    return group.amount(row * group.kind_size() + int(column));
  }

private:
  const wire::Holdings& group;
  const int row;
};


// The answer to one batch, or a part of it, validated: every group has
// rows, its handles are not 0, its kinds are distinct and its amounts are
// from 0 to AMOUNT_MAX. Whether the handles are bound, and whether the
// resources are there, is for the owner's books to say.
struct Decisions
{
  using Groups = google::protobuf::RepeatedPtrField<wire::Holdings>;

  size_t size() const;

  // How many amounts they have.
  size_t amounts() const;

  // Visits the decisions in the order of their numbers.
  template <typename Visitor>
  void each(const Visitor& visit) const
  {
    for (const wire::Holdings& group : grants) {
      for (int row = 0; row < group.framework_size(); ++row) {
        visit(Decision(group, row));
      }
    }
  }

  // The session that the decisions belong to; its outcomes go there.
  uint64_t session = 0;

  // The batch that this answers: every event up to it was known. A handle
  // that was bound later names nothing here.
  uint64_t sequence = 0;

  // The revision of the last message that was sent by then.
  uint64_t revision = 0;

  // The number of the cycle, from 1; 0 where none was asked for.
  uint64_t cycle = 0;

  // Whether the sidecar means to give no more than this.
  bool holdsBack = false;

  // The number of the first decision; the others follow it.
  uint64_t first = 0;

  // Whether another part of the same answer follows.
  bool more = false;

  Groups grants;

  // Who is asked to leave which agent, one a row; in the last part.
  wire::Reclaims reclaims;
};


// Says what is wrong with the groups of an answer, by the path of the
// field; an empty text where nothing is.
std::string checkGrants(
    const Decisions::Groups& grants,
    const DecisionLimits& limits);


// The same of its reclaims.
std::string checkReclaims(
    const wire::Reclaims& reclaims,
    const DecisionLimits& limits);


// What became of consecutive decisions, in their order.
//
// The amounts of partial offers are columns of the kinds of their
// decision; so a message ends where a partial offer has other kinds, or
// where the message would become too large.
class Outcomes
{
public:
  explicit Outcomes(const Decisions& decisions);

  // Offered exactly as decided.
  void offered();

  // Offered otherwise: one amount for each kind of the decision, in
  // thousandths. Where the number of amounts is another, the decision
  // counts as not offered because it was malformed.
  void partial(const Decision& decision, const std::vector<int64_t>& amounts);

  // Not offered at all.
  void refused(wire::OutcomeReason reason);

  size_t size() const;

  uint64_t session = 0;

  // They number the decisions without a gap.
  std::vector<wire::Outcomes> messages;

  // No message has more rows, nor more amounts (unless one row has).
  static constexpr int ROWS_MAX = 1 << 16;
  static constexpr int CELLS_MAX = 1 << 15;

private:
  void add(wire::OutcomeReason reason);
  void begin();

  uint64_t first;
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_DECISIONS_HPP__
