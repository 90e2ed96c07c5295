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

// Largest amount in thousandths: Mesos keeps amounts in doubles, which are
// exact up to here.
constexpr int64_t AMOUNT_MAX = int64_t(1) << 53;

// Largest number of a decision or batch.
constexpr uint64_t NUMBER_MAX = uint64_t(1) << 53;


// The number of kinds a sidecar distinguishes if it does not state one.
constexpr size_t KINDS_DEFAULT = 512;


// Limits on what is accepted from a sidecar.
struct DecisionLimits
{
  // Maximum number of decisions in one answer, over all its parts, and of kinds
  // in one decision. The sidecar's own limit on kinds also applies.
  size_t decisionsMax = 1 << 20;
  size_t kindsMax = 4096;

  // Amounts in one answer: 65,536 decisions on 512 kinds each. An amount may
  // take one byte in a message but takes eight in memory.
  size_t amountsMax = 1 << 25;
};


// Maximum number of decisions in a gang: all of them are judged in one slice.
constexpr uint32_t GANG_DECISIONS_MAX = 8192;


// One decision: a row of `group`. The group must outlive it.
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


// A validated answer to one batch, or one part of it: groups have rows, handles
// are not 0, kinds are distinct, and amounts are from 0 to AMOUNT_MAX. Whether
// handles are bound and resources exist is for the books to check.
struct Decisions
{
  using Groups = google::protobuf::RepeatedPtrField<wire::Holdings>;

  size_t size() const;

  size_t amounts() const;

  // Visits the decisions in order of their numbers.
  template <typename Visitor>
  void each(const Visitor& visit) const
  {
    for (const wire::Holdings& group : grants) {
      for (int row = 0; row < group.framework_size(); ++row) {
        visit(Decision(group, row));
      }
    }
  }

  // Session of the decisions; their outcomes belong to it.
  uint64_t session = 0;

  // Number of the batch that this answers. The sidecar knew all events up to
  // it, and no handle that was bound later.
  uint64_t sequence = 0;

  // Revision of the last message that was sent with that batch or before it.
  uint64_t revision = 0;

  // Number of the cycle, from 1; 0 if none was requested.
  uint64_t cycle = 0;

  // Whether the sidecar holds free resources back on purpose.
  bool holdsBack = false;

  // Number of the first decision; the rest are consecutive.
  uint64_t first = 0;

  // Whether another part of this answer follows.
  bool more = false;

  Groups grants;

  // Which framework is asked to leave which agent, one per row; only in the
  // last part.
  wire::Reclaims reclaims;

  // Which decisions are offered together or not at all.
  wire::Gangs gangs;
};


// The number of decisions in all groups.
size_t rowsOf(const Decisions::Groups& grants);


// Returns the first error, with the path of its field, or an empty string.
std::string checkGrants(
    const Decisions::Groups& grants,
    const DecisionLimits& limits);


// Likewise checks reclaims.
std::string checkReclaims(
    const wire::Reclaims& reclaims,
    const DecisionLimits& limits);


// Likewise checks gangs, in an answer of `decisions` decisions.
std::string checkGangs(const wire::Gangs& gangs, size_t decisions);


// Outcomes of consecutive decisions, in order.
//
// Amounts of partial offers are columns, one per kind. A new message begins
// when a partial offer has other kinds, or when the message would become too
// large.
class Outcomes
{
public:
  explicit Outcomes(const Decisions& decisions);

  // Offered exactly as decided.
  void offered();

  // Offered with other amounts: one per kind of the decision, in thousandths.
  // Recorded as malformed if the number of amounts differs.
  void partial(const Decision& decision, const std::vector<int64_t>& amounts);

  void refused(wire::OutcomeReason reason);

  size_t size() const;

  uint64_t session = 0;

  // Decision numbers are consecutive from one message to the next.
  std::vector<wire::Outcomes> messages;

  // Limits per message on rows and amounts (a single row may exceed CELLS_MAX).
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
