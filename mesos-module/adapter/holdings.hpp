#ifndef __ALLOCATOR_ADAPTER_HOLDINGS_HPP__
#define __ALLOCATOR_ADAPTER_HOLDINGS_HPP__

#include "adapter/handles.hpp"
#include "adapter/types.hpp"

namespace allocator {
namespace adapter {

// Amounts by kind, in the order of the kinds. Copies of a shared volume
// count each. Resources that no kind can be bound for are left out.
Amounts toAmounts(const Resources& resources, KindTable* kinds);

wire::Amounts toSparse(const Resources& resources, KindTable* kinds);

// Resources by the role they are allocated to; what is not is left out.
std::map<std::string, Resources> byRole(const Resources& resources);


// Collects rows of holdings. A group is of rows of the same kinds, for its
// columns are dense: a row of few kinds beside one of 500 would cost as
// much as that. A row without an amount is left out.
class HoldingsWriter
{
public:
  explicit HoldingsWriter(Handles* _handles) : handles(_handles) {}

  // A row for each role.
  void add(
      const FrameworkID& frameworkId,
      const SlaveID& agentId,
      const Resources& resources);

  using Groups = std::map<std::vector<uint32_t>, wire::Holdings>;

  const Groups& groups() const { return rows; }

private:
  Handles* handles;
  Groups rows;
};


// Collects refusals in the same way.
class FiltersWriter
{
public:
  void add(
      uint32_t framework,
      uint32_t role,
      uint32_t agent,
      const Amounts& refused,
      int64_t expiresMs);

  using Groups = std::map<std::vector<uint32_t>, wire::OfferFilters>;

  const Groups& groups() const { return rows; }

private:
  Groups rows;
  std::vector<uint32_t> columns;
};


// What came back and what came into use, while it waits to be told: of
// such calls a master makes thousands at a time, and a row in a column
// costs a tenth of an event.
//
// Between them nothing else is told, so no new offer is among them. That
// is why all transitions may come before all releases: a task does not
// end before it begins, and what is declined is not what is launched.
class Pending
{
public:
  void release(
      uint32_t framework,
      uint32_t role,
      uint32_t agent,
      const Amounts& amounts,
      int64_t refuseMs,
      bool allocated);

  void transition(
      uint32_t framework,
      uint32_t role,
      uint32_t agent,
      const Amounts& amounts);

  size_t size() const { return rows; }

  // Gives it as events of bounded size, and is empty then.
  std::vector<wire::Event> take();

  void clear();

  // Nothing waits for more rows than this, and no event has more.
  static constexpr int ROWS_MAX = 4096;

  // Nor has an event more amounts, which take up to 8 bytes each, unless
  // one row has.
  static constexpr int CELLS_MAX = 1 << 15;

private:
  // The last event of those kinds that has room for another row.
  wire::Event* place(
      std::map<std::vector<uint32_t>, std::vector<wire::Event>>* groups,
      const Amounts& amounts,
      wire::Holdings* (*holdings)(wire::Event*));

  std::map<std::vector<uint32_t>, std::vector<wire::Event>> releases;
  std::map<std::vector<uint32_t>, std::vector<wire::Event>> transitions;
  std::vector<uint32_t> columns;
  size_t rows = 0;
};

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_HOLDINGS_HPP__
