#ifndef __ALLOCATOR_BRAIN_MESSAGES_EVENT_COALESCER_HPP__
#define __ALLOCATOR_BRAIN_MESSAGES_EVENT_COALESCER_HPP__

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "allocator/v1/session.pb.h"

#include "brain/books/resource_classes.hpp"

#include "session/snapshot.hpp"

namespace allocator {
namespace brain {

namespace wire = ::allocator::v1;

using session::addRow;
using session::Place;

void addAmounts(const Amounts& amounts, wire::Amounts* to);


// Collects rows for the sidecar until they are sent: either holdings, or
// releases and transitions. A master makes thousands of such calls at a time,
// and a row costs a tenth of what a separate event would cost.
//
// No other event is sent while rows wait, so no row concerns an offer made
// after the first row. Therefore all transitions may precede all releases: a
// task starts before it ends, and declined resources are not launched.
class EventCoalescer
{
public:
  void release(
      const Place& place,
      const Amounts& amounts,
      int64_t refuseMs,
      bool allocated);

  void transition(const Place& place, const Amounts& amounts);
  void hold(const Place& place, const Amounts& amounts);

  size_t size() const { return rows; }

  // Returns the rows as events of bounded size, and becomes empty.
  std::vector<wire::Event> take();

  void clear();

  // Maximum number of rows per event, and of rows that wait.
  static constexpr int ROWS_MAX = 4096;

  // Maximum number of amounts per event, up to 8 bytes each; a single row may
  // exceed it.
  static constexpr int CELLS_MAX = 1 << 15;

private:
  using Groups = std::map<std::vector<uint32_t>, std::vector<wire::Event>>;

  // The event of these kinds that has room for another row.
  wire::Event* event(
      Groups* groups,
      const Amounts& amounts,
      wire::Holdings* (*holdings)(wire::Event*));

  Groups releases;
  Groups transitions;
  Groups holds;
  std::vector<uint32_t> columns;
  size_t rows = 0;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_MESSAGES_EVENT_COALESCER_HPP__
