#ifndef __ALLOCATOR_BRAIN_WORDS_WORDS_HPP__
#define __ALLOCATOR_BRAIN_WORDS_WORDS_HPP__

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "allocator/v1/session.pb.h"

#include "brain/words/bounds.hpp"
#include "brain/events.hpp"
#include "brain/books/names.hpp"
#include "brain/books/tables.hpp"

namespace allocator {
namespace brain {

// Whatever frameworks, agents and their users may tell a master comes here as
// they said it, and what is given is what the books and a sidecar can take: of
// bounded size, UTF-8, with names where names must be, nothing twice. Who says
// nonsense is served as if it had not said it. The cost is linear in what was
// said.

// What was set aside of the words of one message.
class Aside
{
public:
  using Rows = google::protobuf::RepeatedPtrField<wire::SetAside>;

  // `field` is where the words stood. Only the first of a field and a reason
  // is told in full; all are counted.
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
    std::string text; // The first one's.
    size_t count;
  };

  std::vector<Row> told;
  size_t all = 0;
};


// Behind other rows, of which the last gives way where there are too many.
void append(const Aside& aside, Aside::Rows* rows);


// What is taken of a framework.
struct FrameworkWords
{
  wire::Framework info; // Texts, labels, capabilities.

  // By path, with the number of levels of the tree that it may have.
  std::map<std::string, size_t> roles;
  Footprint footprint;
  std::set<std::string> suppressed;
  std::map<std::string, std::vector<Quantities>> minimum;

  // Whether a role was left out for want of room in the cluster, or for too
  // many came in one interval.
  bool crowded = false;
  bool late = false;
};


// Roles that come to a framework: those it has already, and whether others may
// come now.
struct Newcomers
{
  const std::set<uint32_t>& before;
  bool mayCome;
};


// Who pays for what a framework takes of the room for all.
std::string payerOf(const wire::Framework& said);

// `others` is what other frameworks of its payer take.
FrameworkWords takeFramework(
    const AddFramework& said,
    const Roles& roles,
    const Footprint& others,
    Newcomers newcomers,
    Aside* aside);

// The host's name, attributes, domain and capabilities.
wire::Agent takeAgent(const wire::Agent& said, Aside* aside);

wire::ResourceRequest takeRequest(
    const wire::ResourceRequest& said,
    Aside* aside);

// How many of a framework's roles offer constraints are evaluated for.
size_t constrainedRoles(size_t agents);

// Makes a message fit for a sidecar that reads only so many bytes: what only
// informs is left out then.
void fit(size_t bytesMax, wire::Framework* message);
void fit(size_t bytesMax, wire::Agent* message);
void fit(size_t bytesMax, wire::UpdateAgent* message);
void fit(size_t bytesMax, wire::ResourceRequest* message);

// For a line of the log.
std::string describe(const Aside::Rows& rows);

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_WORDS_WORDS_HPP__
