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


// What came back and what came into use, while it waits to be sent: of
// such calls a master makes thousands at a time, and a row in a column
// costs a tenth of an event.
//
// Between them nothing else is sent, so no new offer is among them. That
// is why all transitions may come before all releases: a task does not
// end before it begins, and what is declined is not what is launched.
class EventCoalescer
{
public:
  void release(
      const Place& place,
      const Amounts& amounts,
      int64_t refuseMs,
      bool allocated);

  void transition(const Place& place, const Amounts& amounts);

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
  using Groups = std::map<std::vector<uint32_t>, std::vector<wire::Event>>;

  // The last event of those kinds that has room for another row.
  wire::Event* event(
      Groups* groups,
      const Amounts& amounts,
      wire::Holdings* (*holdings)(wire::Event*));

  Groups releases;
  Groups transitions;
  std::vector<uint32_t> columns;
  size_t rows = 0;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_MESSAGES_EVENT_COALESCER_HPP__
