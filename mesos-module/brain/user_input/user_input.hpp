#ifndef __ALLOCATOR_BRAIN_USER_INPUT_USER_INPUT_HPP__
#define __ALLOCATOR_BRAIN_USER_INPUT_USER_INPUT_HPP__

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "allocator/v1/session.pb.h"

#include "brain/user_input/bounds.hpp"
#include "brain/events.hpp"
#include "brain/books/names.hpp"
#include "brain/books/tables.hpp"

namespace allocator {
namespace brain {

// Sanitizes the input of frameworks, agents and their users. The results are
// UTF-8, of bounded size, and without duplicates or empty names, so that the
// books and the sidecar can accept them. Invalid input is ignored and reported.
// Time is linear in the input.

// Ignored parts of one message.
class Aside
{
public:
  using Rows = google::protobuf::RepeatedPtrField<wire::SetAside>;

  // `field` is where the input was found; it must outlive this object. Only the
  // first text per field and reason is kept; all are counted.
  void
  add(const char* field, wire::SetAsideReason reason, const std::string& text);

  size_t count() const { return all; }

  // For the sidecar: at most ASIDE_ROWS_MAX.
  Rows rows() const;

private:
  struct Row
  {
    const char* field;
    wire::SetAsideReason reason;
    std::string text; // Of the first input counted.
    size_t count;
  };

  std::vector<Row> kept;
  size_t all = 0;
};


// Appends rows; replaces the last one if there are too many.
void append(const Aside& aside, Aside::Rows* rows);


struct FrameworkInput
{
  wire::Framework info; // Texts, labels, capabilities.

  // By path: how many levels of the tree the role may have.
  std::map<std::string, size_t> roles;
  Footprint footprint;
  std::set<std::string> suppressed;
  std::map<std::string, std::vector<Quantities>> minimum;

  // Whether a role was left out because the cluster has no room for it
  // (`crowded`), or because too many came in one interval (`late`).
  bool crowded = false;
  bool late = false;
};


// The roles a framework already has, and whether it may join others now.
struct Newcomers
{
  const std::set<uint32_t>& before;
  bool mayCome;
};


// The payer of a framework: its principal, or its user if it has none.
std::string payerOf(const wire::Framework& said);

// `others`: the footprint of the payer's other frameworks.
FrameworkInput takeFramework(
    const AddFramework& said,
    const Roles& roles,
    const Footprint& others,
    Newcomers newcomers,
    Aside* aside);

// Host name, attributes, domain and capabilities.
wire::Agent takeAgent(const wire::Agent& said, Aside* aside);

wire::ResourceRequest takeRequest(
    const wire::ResourceRequest& said,
    Aside* aside);

// The number of a framework's roles for which offer constraints are evaluated.
size_t constrainedRoles(size_t agents);

// Shrinks a message to the sidecar's size limit, by dropping informational
// fields.
void fit(size_t bytesMax, wire::Framework* message);
void fit(size_t bytesMax, wire::Agent* message);
void fit(size_t bytesMax, wire::UpdateAgent* message);
void fit(size_t bytesMax, wire::ResourceRequest* message);

// Text for a log line.
std::string describe(const Aside::Rows& rows);

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_USER_INPUT_USER_INPUT_HPP__
